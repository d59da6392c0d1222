#!/bin/sh
# Brings Temporal's own two databases to the schema of this server version. Harmless again.
set -eu

tool() {
    temporal-sql-tool --plugin postgres12 --ep "$POSTGRES_SEEDS" -p "$DB_PORT" -u "$POSTGRES_USER" "$@"
}

for pair in temporal:temporal temporal_visibility:visibility; do
    database=${pair%:*}
    tool --db "$database" create
    tool --db "$database" setup-schema -v 0.0
    tool --db "$database" update-schema -d "/etc/temporal/schema/postgresql/v12/${pair#*:}/versioned"
done
