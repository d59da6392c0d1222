"""`ops.py review`, `cancel` and `refund`: an operator's word about one order."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Annotated
from uuid import uuid4

import typer

from adapters.temporal import TemporalUnavailable
from adapters.updates import UpdateRefused
from domain.intake import IntakeProblem, checked_key
from domain.keys import refund_id_for
from domain.messages import CancelOrder, DecideReview, RefundAsked
from domain.money import LARGEST_CHARGE_MINOR, format_minor
from domain.order import CancelReason
from events import requests
from events.refunds import request_refund
from runtime.entry import ServerUnavailable, run_entry
from runtime.logs import configure_logs
from runtime.settings import load_settings
from terminal.app import BadInput, screen
from terminal.operator.flags import Actor, Order, Reason, checked_actor, checked_reason
from terminal.shop import Shop, known_order, open_shop

EXIT_REFUSED = 3


class Decision(StrEnum):
    """What a reviewer may say."""

    APPROVE = "approve"
    REJECT = "reject"


def review(
    order: Order,
    decision: Annotated[Decision, typer.Argument(metavar="approve|reject", help="What becomes of it.")],
    reason: Reason,
    actor: Actor = None,
) -> None:
    """Approve or reject an order in AWAITING_REVIEW: its score is high, or its total.

    * `.venv/bin/python ops.py review b3peowq5n7rtbghveapkno2l approve --reason 'known customer'`

    Exit code: **0** it arrived, **3** the order does not wait for a reviewer, **1** a server does not answer.
    """

    async def ask(shop: Shop, who: str, why: str) -> str:
        message = DecideReview(approve=decision is Decision.APPROVE, actor=who, reason=why)
        await requests.decide_review(shop.client, order, message)
        return f"{decision} arrived"

    run_entry(lambda: asked(order, ask, actor, reason))


def cancel(order: Order, reason: Reason, actor: Actor = None) -> None:
    """Cancel an order in the shop's name: accepted means undone.

    * `.venv/bin/python ops.py cancel b3peowq5n7rtbghveapkno2l --reason 'recalled product, ticket 4711'`

    `ops.py show ORDER` tells beforehand what is undone. Exit code: **0** accepted, **3** too late, **1** a server does
    not answer.
    """

    async def ask(shop: Shop, who: str, why: str) -> str:
        message = CancelOrder(reason=CancelReason.CANCELLED_BY_OPERATOR, actor=who, note=why)
        answer = await requests.cancel(shop.database, shop.client, order, message)
        return f"cancel accepted; the order is {answer.status} now"

    run_entry(lambda: asked(order, ask, actor, reason))


def refund(
    order: Order,
    *,
    amount: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=LARGEST_CHARGE_MINOR,
            metavar="MINOR",
            help="In the smallest unit (500 is 5.00 EUR); else all left.",
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="The same key is the same refund, however often it is typed. Else a new one.")
    ] = None,
    reason: Reason,
    actor: Actor = None,
) -> None:
    """Give captured money of a confirmed order back, all of it or a part.

    * `.venv/bin/python ops.py refund b3peowq5n7rtbghveapkno2l --amount 500 --key ticket-4711 --reason 'broken cup'`

    Exit code: **0** taken: the provider decides when the money is back, **3** refused, with the reason, **1** a server
    does not answer: type the same with the key that it names.
    """

    async def ask(shop: Shop, who: str, why: str) -> str:
        view = await known_order(shop.database, order)
        name = refund_id_for(_checked_key(key))
        message = RefundAsked(refund_id=name, amount=amount, actor=who, reason=why)
        try:
            opened = await request_refund(shop.client, order, view.payment.id, message)
        except TemporalUnavailable:
            raise ServerUnavailable(f"no answer in time: type the same with --key {name}, it is done once") from None
        return f"refund {name} of {format_minor(opened.amount, view.currency)} is taken: ops.py show tells how it goes"

    run_entry(lambda: asked(order, ask, actor, reason))


def _checked_key(key: str | None) -> str:
    try:
        return str(uuid4()) if key is None else checked_key(key)
    except IntakeProblem:
        raise BadInput("--key: 1 to 255 visible ASCII characters") from None


#: Asks the order's workflow in somebody's name and for a reason, and says in words what it answered.
Ask = Callable[[Shop, str, str], Awaitable[str]]


async def asked(order_id: str, ask: Ask, actor: str | None, reason: str) -> int:
    """Asks, and tells the answer; the exit code. Raises EntryError or BadInput."""
    who, why = checked_actor(actor), checked_reason(reason)
    settings = load_settings()
    configure_logs("ERROR")
    async with open_shop(settings) as shop:
        await known_order(shop.database, order_id)
        try:
            told = await ask(shop, who, why)
        except UpdateRefused as refusal:
            screen().print(f"refused, {refusal.kind}: {refusal}", markup=False)
            return EXIT_REFUSED
        except TemporalUnavailable:
            raise ServerUnavailable("the order gave no answer in time: type the same again, it is done once") from None
    screen().print(told, markup=False)
    return 0
