"""From which warehouses an order is served. Pure and deterministic: the same stock gives the same answer."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Allocation:
    """So many pieces of one SKU from one warehouse."""

    sku: str
    warehouse: str
    quantity: int


def allocate(wanted: Mapping[str, int], available: Mapping[str, Mapping[str, int]]) -> tuple[Allocation, ...] | None:
    """How to serve `wanted` (SKU → pieces) from `available` (SKU → warehouse → pieces); None: there is not enough.

    All or nothing. One warehouse that has everything serves alone, the first by name. Otherwise each SKU comes whole
    from one warehouse where one has it, from one that sends a parcel anyway before another; only what no warehouse
    has whole is split. That is few parcels, not provably the fewest: that would be a set cover.
    """
    if any(sum(available.get(sku, {}).values()) < pieces for sku, pieces in wanted.items()):
        return None
    warehouses = sorted({warehouse for sku in wanted for warehouse in available[sku]})
    for warehouse in warehouses:
        if all(available[sku].get(warehouse, 0) >= pieces for sku, pieces in wanted.items()):
            return tuple(Allocation(sku, warehouse, pieces) for sku, pieces in sorted(wanted.items()))
    found: list[Allocation] = []
    for sku, pieces in sorted(wanted.items()):
        found += _serve(sku, pieces, available[sku], {allocation.warehouse for allocation in found})
    return tuple(found)


def _serve(sku: str, pieces: int, available: Mapping[str, int], sending: set[str]) -> list[Allocation]:
    whole = [warehouse for warehouse, there in available.items() if there >= pieces]
    if whole:
        return [Allocation(sku, min(whole, key=lambda warehouse: (warehouse not in sending, warehouse)), pieces)]
    parts: list[Allocation] = []
    for warehouse, there in sorted(available.items(), key=lambda item: (item[0] not in sending, -item[1], item[0])):
        if there > 0 and pieces > 0:
            parts.append(Allocation(sku, warehouse, min(there, pieces)))
            pieces -= parts[-1].quantity
    return parts
