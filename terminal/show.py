"""One order, or many, as a person wants to see them."""

from collections.abc import Iterable

from rich.console import Console, Group, RenderableType
from rich.table import Table

from domain.money import format_minor
from domain.order import OrderStatus
from domain.views import OrderSummary, OrderView, TimelineLine
from terminal.app import OPS
from terminal.steps import steps_table

_STYLES = {
    OrderStatus.CONFIRMED: "green",
    OrderStatus.CANCELLED_COMPENSATED: "red",
    OrderStatus.REJECTED: "red",
    OrderStatus.NEEDS_REVIEW: "bold magenta",
}


def show_order(console: Console, view: OrderView, timeline: Iterable[TimelineLine], link: str) -> None:
    """Everything about one order but who it is for; of a parked one also what makes it go on."""
    console.print(Group(_facts(view, link), *_parts(view), steps_table(timeline, view.created_at, "timeline")))
    if view.needs_review:
        console.print(f"\nwhat to do about it: {OPS} show {view.order_id}", markup=False, soft_wrap=True)


def orders_table(found: Iterable[OrderSummary]) -> Table:
    """The newest orders."""
    table = Table("order", "customer", "status", "reason", "total", "to pay", "accepted", box=None)
    for order in found:
        table.add_row(
            order.order_id,
            order.customer_id,
            _status(order.status),
            order.reason or "",
            format_minor(order.total, order.currency),
            format_minor(order.amount_due, order.currency),
            f"{order.created_at:%Y-%m-%d %H:%M:%S} UTC",
        )
    return table


def _status(status: OrderStatus) -> str:
    style = _STYLES.get(status)
    return f"[{style}]{status.value}[/]" if style else status.value


def _facts(view: OrderView, link: str) -> Table:
    table = Table.grid(padding=(0, 2))
    reason = f" · {view.reason}" if view.reason else ""
    table.add_row("order", view.order_id)
    table.add_row("customer", view.customer_id)
    table.add_row("status", _status(view.status) + reason)
    table.add_row("message", view.message)
    lines = ", ".join(f"{line.quantity} × {line.sku}" for line in view.lines[:10])
    more = f" and {len(view.lines) - 10} more lines" if len(view.lines) > 10 else ""
    table.add_row("lines", lines + more)
    total, due = format_minor(view.total, view.currency), format_minor(view.amount_due, view.currency)
    table.add_row("total", f"{total}, to pay {due}")
    money = view.payment
    amounts = (("authorized", money.authorized), ("captured", money.captured), ("refunded", money.refunded))
    told = ", ".join(f"{name} {format_minor(amount, view.currency)}" for name, amount in amounts)
    table.add_row("payment", f"{money.status.value} {money.id or ''}: {told}")
    table.add_row("web ui", link)
    return table


def _parts(view: OrderView) -> list[RenderableType]:
    parts: list[RenderableType] = []
    if view.shipments:
        table = Table("shipment", "warehouse", "status", box=None)
        for shipment in view.shipments:
            table.add_row(shipment.id, shipment.warehouse, shipment.status.value)
        parts.append(table)
    if view.needs_review:
        table = Table("needs review", "kind", "error", "since", box=None, style="magenta")
        for item in view.needs_review:
            step = f"{item.step} {item.item}".rstrip()
            table.add_row(step, item.kind.value, item.error, f"{item.since:%Y-%m-%d %H:%M:%S} UTC")
        parts.append(table)
    return parts
