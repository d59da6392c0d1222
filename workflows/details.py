"""What the Web UI shows of an order, for a reader who never saw the code: ids and amounts only."""

from datetime import datetime
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeUpdate

from workflows.names import CANCEL_REASON, ORDER_STATUS, PARKED_STEP

with workflow.unsafe.imports_passed_through():
    from domain.keys import Step
    from domain.messages import OpenedOrder, OrderState, TimelineEntry
    from domain.money import format_minor
    from domain.order import CancelReason, OrderStatus, PaymentStatus
    from domain.words import STEP_WORDS, told

_MARKS = {"done": "✓ done", "begun": "… under way"}
#: The gateway took the payment and has not said yet whether it holds the money.
_NOT_HELD_YET = frozenset({PaymentStatus.PROCESSING, PaymentStatus.REQUIRES_ACTION})

_MONEY = {
    PaymentStatus.NONE: "nothing is held or taken",
    PaymentStatus.REQUIRES_ACTION: "nothing is held; the shopper's bank wants a confirmation",
    PaymentStatus.PROCESSING: "nothing is held yet; the bank is working on it",
    PaymentStatus.AUTHORIZED: "{due} are held, nothing is taken",
    PaymentStatus.CAPTURED: "{due} are taken",
    PaymentStatus.VOIDED: "nothing is taken, nothing is held any more",
    PaymentStatus.DECLINED: "declined: nothing is held or taken",
    PaymentStatus.REFUND_PENDING: "{due} were taken; the refund is on its way",
    PaymentStatus.REFUNDED: "{due} were taken and given back",
    PaymentStatus.DISPUTED: "{due} were taken and are in dispute",
    PaymentStatus.UNKNOWN: "unknown until the gateway answers",
}


def describe(order: OpenedOrder | None, state: OrderState, timeline: list[TimelineEntry], waiting: list[str]) -> str:
    """Markdown: where the order stands and why, what it waits for, its money, and the newest state of each step."""
    lines = [f"### {_headline(state.status, state.reason)}", ""]
    lines += [f"- **Waiting** {what}" for what in waiting]
    if order is not None:
        lines.append(f"- **Money**: {_money(order, state.payment)}")
    lines += [
        f"- **Parked** at `{item.step}` ({item.kind}: {item.error}) since {_clock(item.since)} UTC: "
        + ("an operator decides" if item.kind == "DECISION" else "tried again by itself, or at once by an operator")
        for item in state.needs_review
    ]
    lines += ["", "| step | state | since (UTC) |", "|---|---|---|"]
    newest = {entry.step: entry for entry in timeline}
    lines += [
        f"| {entry.step} | {_mark(entry, state.payment)} | {_clock(datetime.fromisoformat(entry.at))} |"
        for entry in newest.values()
    ]
    return "\n".join(lines)


def summarize(step: Step, item: str, order: OpenedOrder | None) -> str:
    """What the step does, in a few words beside its name."""
    if order is None:
        return STEP_WORDS.get(step, item)
    due, credit = format_minor(order.amount_due, order.currency), format_minor(order.store_credit, order.currency)
    return told(step, item, due=due, credit=credit, points=order.points)


def search_attributes(state: OrderState, parked: list[str]) -> list[SearchAttributeUpdate[Any]]:
    """What the list of workflows is filtered by. Parked steps cover the stage until the order is sold."""
    attributes: list[SearchAttributeUpdate[Any]] = [
        ORDER_STATUS.value_set(state.status),
        PARKED_STEP.value_set(parked),
    ]
    return attributes + ([CANCEL_REASON.value_set(state.reason)] if state.reason else [])


def _mark(entry: TimelineEntry, payment: PaymentStatus) -> str:
    if entry.step == Step.AUTHORIZE_PAYMENT and entry.state == "done" and payment in _NOT_HELD_YET:
        return "… waits for the gateway"
    return _MARKS.get(entry.state, f"✗ {entry.state}")


def _headline(status: OrderStatus, reason: CancelReason | None) -> str:
    return f"{status}: {reason}" if reason else status.value


def _money(order: OpenedOrder, payment: PaymentStatus) -> str:
    due = format_minor(order.amount_due, order.currency)
    paid = [f"{order.points} points"] if order.points else []
    paid += [f"{format_minor(order.store_credit, order.currency)} of store credit"] if order.store_credit else []
    beside = f", beside {' and '.join(paid)}" if paid else ""
    return f"{due} to pay by card{beside}; {_MONEY[payment].format(due=due)}"


def _clock(at: datetime) -> str:
    return f"{at:%d %b %H:%M:%S}"
