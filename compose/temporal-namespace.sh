#!/bin/sh
# The namespace, 30 days of closed histories, and the search attributes of workflows/names.py. Harmless again.
# The address and the namespace come from TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE.
set -eu

# A server needs some seconds to see a namespace that was just created.
patiently() {
    tries=30
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 1
    done
}

temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
    temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE"
patiently temporal operator namespace update --namespace "$TEMPORAL_NAMESPACE" --retention 30d

for pair in OrderStatus=Keyword CustomerId=Keyword CancelReason=Keyword OrderTotal=Int ParkedStep=KeywordList; do
    patiently temporal operator search-attribute create --namespace "$TEMPORAL_NAMESPACE" \
        --name "${pair%=*}" --type "${pair#*=}"
done
