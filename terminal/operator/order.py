"""`ops.py show`: what happened to an order, what it holds, and what each word of an operator would do."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console

from adapters.effects import read_effects
from adapters.holds import read_holds
from adapters.http import ProviderRequestRefused
from adapters.orders import read_timeline
from adapters.payment_gateway import PaymentGateway, Replayed
from adapters.stripe_answers import Intent
from domain.errors import OrderError
from domain.holds import Held, Hold
from domain.keys import Step
from domain.money import format_minor
from domain.order import CLOSED_STATUSES, SOLD_STATUSES, OrderStatus, ShipmentStatus
from domain.preview import ActionLine, Effects, UndoLine, actions, undos
from domain.views import NeedsReview, OrderView, TimelineLine
from domain.words import BUG_WORDS, ERROR_WORDS, STEP_WORDS, told
from runtime.entry import run_entry
from runtime.links import web_ui_link
from runtime.logs import configure_logs
from runtime.settings import Settings, load_settings
from terminal.app import OPS, screen
from terminal.operator.flags import AsJson, Order, print_json
from terminal.shop import known_order, open_database
from terminal.steps import plain_line

#: A gateway that is down must not keep the reader.
ASK_SECONDS = 4


@dataclass(frozen=True)
class Seen:
    """Everything about one order that a decision needs."""

    view: OrderView
    timeline: Sequence[TimelineLine]
    effects: Effects
    holds: Sequence[Hold]
    gateway: str
    link: str


def show(order: Order, as_json: AsJson = False) -> None:
    """Show an order: what happened, its money and goods, and what each of your words would do, before you say it.

    * `.venv/bin/python ops.py show b3peowq5n7rtbghveapkno2l`

    Reads only. The gateway is asked what it says now; the rest needs the database alone. Exit code: **0** it is shown,
    **1** there is no such order, or the database does not answer.
    """
    run_entry(lambda: _show(order, as_json))


async def _show(order_id: str, as_json: bool) -> int:
    settings = load_settings()
    configure_logs("ERROR")
    async with open_database(settings) as database:
        view = await known_order(database, order_id)
        timeline = await read_timeline(database, order_id) or []
        effects = await read_effects(database, order_id)
        holds = [one for one in await read_holds(database) if one.party is not Held.INTAKE]
    seen = Seen(view, timeline, effects, holds, await ask_gateway(settings, effects), web_ui_link(settings, order_id))
    if as_json:
        print_json(document(seen))
    else:
        show_seen(screen(), seen)
    return 0


async def ask_gateway(settings: Settings, effects: Effects) -> str:
    """What the gateway says of the payment now, in a line; that it says nothing is an answer too."""
    if effects.money.intent_id is None:
        return "no payment was begun there that we know of"
    if settings.stripe_api_key is None:
        return "not asked: STRIPE_API_KEY is not set here"
    key = settings.need(settings.stripe_api_key, "STRIPE_API_KEY")
    gateway = PaymentGateway(key, base_url=settings.stripe_api_base, timeout_seconds=ASK_SECONDS)
    try:
        async with asyncio.timeout(ASK_SECONDS):
            return _told_by_gateway(await gateway.read_intent(effects.money.intent_id), effects.currency)
    except (OrderError, ProviderRequestRefused, Replayed, TimeoutError) as error:
        return f"does not answer ({type(error).__name__})"
    finally:
        await gateway.close()


def _told_by_gateway(intent: Intent, currency: str) -> str:
    held, taken = format_minor(intent.amount_capturable, currency), format_minor(intent.amount_received, currency)
    return f"{intent.status.value}: {held} held, {taken} taken"


def show_seen(console: Console, seen: Seen) -> None:
    """The order first, then what stands still and what can be said, then the details."""

    def say(*lines: str, style: str = "") -> None:
        for line in lines:
            console.print(line, markup=False, soft_wrap=True, style=style or None)

    view = seen.view
    say(f"order {view.order_id} of customer {view.customer_id}: {view.status}" + _because(view), style="bold")
    say(f"the shopper reads: {view.message}", f"web ui: {seen.link}")
    for hold in seen.holds if view.status not in CLOSED_STATUSES else ():
        since = f"{hold.at:%Y-%m-%d %H:%M:%S} UTC"
        say(f"ON HOLD {hold.party}: by {hold.actor} since {since}: {hold.reason}", style="red")
    for item in view.needs_review:
        say("", *_standing(seen, item))
    if not view.needs_review:
        say("", *_unparked(seen))
    say(
        "",
        "money",
        *_indented(_money(seen)),
        "",
        "what it holds",
        *_indented(_goods(seen.effects)),
        "",
        "what happened",
    )
    say(*_indented(_story(seen)))


def _because(view: OrderView) -> str:
    return f", {view.reason}" if view.reason else ""


def _standing(seen: Seen, item: NeedsReview) -> list[str]:
    since = f"{item.since:%Y-%m-%d %H:%M:%S} UTC"
    means = ERROR_WORDS.get(item.error, BUG_WORDS)
    moves = "it looks again by itself" if item.kind == "TECHNICAL" else "nothing moves until you say so"
    lines = [f"PARKED at {_label(item)} since {since}: {item.kind}, {item.error}", f"  {means}; {moves}"]
    lines.append("  what you can say, and what it does:")
    for action in _actions(seen, item):
        lines += [f"  * {line}" if number == 0 else f"      {line}" for number, line in enumerate(_told(action))]
        lines.append(f"      → {command(seen.view.order_id, item, action)}")
    return lines


def _actions(seen: Seen, item: NeedsReview) -> list[ActionLine]:
    return actions(seen.effects, Step(item.step), item.item, item.kind, item.error)


def _told(action: ActionLine) -> list[str]:
    return [f"{action.action}: {action.words}", *(f"- {line.words}" for line in action.undos)]


def _label(item: NeedsReview) -> str:
    return f"{item.step} {item.item}".rstrip()


def command(order_id: str, item: NeedsReview, action: ActionLine) -> str:
    """What to type."""
    part = f" --item {item.item}" if item.item else ""
    return f"{OPS} redrive {order_id} --step {item.step}{part} --action {action.action} --reason '…'"


def _unparked(seen: Seen) -> list[str]:
    """What can be said about an order of which nothing is parked."""
    view, effects = seen.view, seen.effects
    if view.status is OrderStatus.AWAITING_REVIEW:
        return [
            "waits for a reviewer; nothing is taken yet",
            f"  * approve: it goes on\n      → {OPS} review {view.order_id} approve --reason '…'",
            f"  * reject: REJECTED\n      → {OPS} review {view.order_id} reject --reason '…'",
        ]
    left = effects.money.captured - effects.money.refunded
    if view.status in SOLD_STATUSES and left > 0:
        most = format_minor(left, view.currency)
        typed = f"{OPS} refund {view.order_id} --reason '…'"
        return ["nothing is parked", f"  * refund: gives back up to {most} (--amount, else all)", f"      → {typed}"]
    if view.status in CLOSED_STATUSES:
        return ["nothing is parked, and nothing is left to do"]
    if effects.pivot_passed:
        return ["nothing is parked; the payment is being taken, a cancel comes too late"]
    lines = [f"      - {line.words}" for line in undos(effects)]
    return ["nothing is parked", "  * cancel: undoes the order:", *lines, f"      → {cancelling(view.order_id)}"]


def cancelling(order_id: str) -> str:
    """What to type to cancel."""
    return f"{OPS} cancel {order_id} --reason '…'"


def _money(seen: Seen) -> list[str]:
    view, money, currency = seen.view, seen.effects.money, seen.view.currency
    amounts = (("authorized", money.authorized), ("captured", money.captured), ("refunded", money.refunded))
    ours = ", ".join(f"{format_minor(amount, currency)} {name}" for name, amount in amounts)
    return [
        f"total {format_minor(view.total, currency)}, to pay by card {format_minor(view.amount_due, currency)}",
        f"our books: {money.status}, {ours}",
        f"the gateway now: {seen.gateway}" + (f" ({money.intent_id})" if money.intent_id else ""),
    ]


def _goods(effects: Effects) -> list[str]:
    lines = [f"{one.quantity} × {one.sku} set aside in {one.warehouse}" for one in effects.pieces]
    live = [one for one in effects.parcels if one.status is not ShipmentStatus.CANCELLED]
    lines += [f"parcel {one.shipment_id} from {one.warehouse}: {one.status}" for one in live]
    if effects.points:
        lines.append(f"{effects.points} points of the customer")
    if effects.store_credit:
        lines.append(f"{format_minor(effects.store_credit, effects.currency)} of the customer's store credit")
    return lines or ["no goods, points or credit"]


def _story(seen: Seen) -> list[str]:
    lines = []
    for line in seen.timeline:
        by = "" if line.actor == "system" else f", by {line.actor}"
        words = _words(seen, line)
        lines.append(f"{plain_line(line, seen.view.created_at)}{by}" + (f"  ({words})" if words else ""))
    return lines


def _words(seen: Seen, line: TimelineLine) -> str:
    if line.step not in STEP_WORDS:
        return ""
    effects, currency = seen.effects, seen.view.currency
    credit = format_minor(effects.price_credit, currency)
    due = format_minor(effects.amount_due, currency)
    return told(Step(line.step), line.item, due=due, credit=credit, points=effects.price_points)


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def document(seen: Seen) -> dict[str, Any]:
    """The same for programs."""
    return {
        "order": seen.view.model_dump(mode="json"),
        "gateway_now": seen.gateway,
        "holds": [asdict(one) for one in seen.holds],
        "parked": [_parked(seen, item) for item in seen.view.needs_review],
        "undos": [_undo(line) for line in undos(seen.effects)],
        "timeline": [line.model_dump(mode="json") for line in seen.timeline],
    }


def _parked(seen: Seen, item: NeedsReview) -> dict[str, Any]:
    said = [_action(action, command(seen.view.order_id, item, action)) for action in _actions(seen, item)]
    return item.model_dump(mode="json") | {"actions": said}


def _action(action: ActionLine, typed: str) -> dict[str, Any]:
    return {
        "action": action.action,
        "does": action.words,
        "undos": [_undo(line) for line in action.undos],
        "command": typed,
    }


def _undo(line: UndoLine) -> dict[str, str]:
    return {"step": line.undo, "item": line.item, "does": line.words}
