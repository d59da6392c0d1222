"""Money after an order's end, on the payments queue: what moves by itself, and what an operator gives back.

Idempotent by the gateway's own books, as `activities.payments`: everything is read before and after, a refund is found
again by our key in its metadata, and one row a refund, written before the gateway is asked, keeps all under one cap.
"""

from temporalio import activity

from activities.payments import PaymentsActivities
from adapters.database import Database
from adapters.gateway_effects import GatewayEffects
from adapters.payment_gateway import PaymentGateway
from adapters.payments import read_terms, record_reading, store_intent, view_of
from adapters.refunds import Numbered, newest_number, next_number, open_refund, refund_under_way
from adapters.settlement import record_contradiction, record_disputes
from adapters.steps import asking, enter, stamp
from adapters.stripe_answers import Intent, IntentStatus, Refund, RefundStatus
from domain.errors import CaptureContradicted, PaymentDisputed, PaymentServiceUnavailable, RefundFailed
from domain.keys import EffectKey, Step
from domain.messages import MoneyInput, PaymentView, RefundAsked, RefundOpened, RefundView
from domain.order import SOLD_STATUSES, UNDONE_STATUSES, PaymentStatus, StepState


class LateMoneyActivities:
    """`settle_late_money` and an operator's refund."""

    def __init__(self, database: Database, gateway: PaymentGateway, payments: PaymentsActivities) -> None:
        self._database = database
        self._gateway = gateway
        self._effects = GatewayEffects(gateway)
        self._payments = payments

    @activity.defn
    async def settle_late_money(self, money: MoneyInput) -> PaymentView:
        """Money on an intent whose order is closed: given back when the order was undone, else compared and recorded.

        Idempotent as `release_payment`, whose keys it shares: both together give the money back once. An intent that is
        not this order's own is left alone; one that names the order becomes its own where our books have none, since
        they were restored to an older time. Raises, for an order that is sold, PaymentDisputed while a dispute is
        open or lost, and CaptureContradicted when the captured money is not there any more.
        """
        async with self._database.begin() as connection:
            terms = await read_terms(connection, money.order_id)
        intent_id = terms.intent_id or await self._adopted(money)
        if intent_id != money.intent_id:
            return PaymentView(status=PaymentStatus.NONE)
        if terms.order_status in UNDONE_STATUSES:
            return await self._payments.give_back(money.order_id, money.revision)
        view = await self._payments.look_up(money.order_id, intent_id)
        return await self._compare(money, view) if terms.order_status in SOLD_STATUSES else view

    @activity.defn
    async def open_refund(self, money: MoneyInput) -> RefundOpened:
        """Takes an operator's refund under its name, or says why not. Nothing is asked of the gateway.

        Idempotent by the refund's row: its first answer stands. All refunds of an order pass under the lock of its
        payment, so that together they never exceed what was captured.
        """
        asked = _asked(money)
        async with self._database.begin() as connection:
            terms = await read_terms(connection, money.order_id)
            opened = await open_refund(connection, money.order_id, terms, asked)
            if opened.refusal is None and opened.asked == asked:
                await stamp(connection, _key(money), StepState.INTENDED, actor=asked.actor, reason=asked.reason)
        return opened

    @activity.defn
    async def refund_payment(self, money: MoneyInput) -> RefundView:
        """Asks the gateway for an opened refund, or looks what became of it.

        Idempotent by our key in the refund's metadata. Raises RefundFailed when the provider could not carry it out:
        an operator's retry (the next `revision`) asks for a new one, the one after those that had failed by then.
        Raises PaymentServiceUnavailable while the outcome is unknown.
        """
        key = _key(money)
        async with self._database.begin() as connection:
            newest = await newest_number(connection, key)
        async with asking(self._database, key, activity.info().attempt):
            intent = await self._gateway.read_intent(newest.intent_id)
            known = await self._read(money.order_id, intent)
            mine = _find(known, newest)
            if mine is not None and mine.status is RefundStatus.FAILED:
                newest, mine = await self._after_failed(key, newest), None
                mine = _find(known, newest)
            if mine is None:
                refund_key = newest.refund_key
                await self._effects.refund(
                    intent, newest.amount, known, refund_key=refund_key, key=f"{refund_key}:{money.revision}"
                )
                mine = _find(await self._read(money.order_id, intent), newest)
        if mine is None:
            # A refusal that is kept under the key, say: what the list does not show did not happen.
            raise PaymentServiceUnavailable(str(key))
        return await self._told(key, mine)

    async def _told(self, key: EffectKey, refund: Refund) -> RefundView:
        if refund.status is RefundStatus.PENDING:
            return RefundView(pending=True)
        failed = refund.status is RefundStatus.FAILED
        async with self._database.begin() as connection:
            state = StepState.REFUSED if failed else StepState.DONE
            await stamp(connection, key, state, provider_reference=refund.id)
        if failed:
            raise RefundFailed(str(key))
        return RefundView(pending=False)

    async def _after_failed(self, key: EffectKey, failed: Numbered) -> Numbered:
        """The refund that an operator's retry allows after a failed one."""
        async with self._database.begin() as connection:
            await stamp(connection, key, StepState.REFUSED, reason=RefundFailed.__name__)
            retry = f"{activity.info().workflow_run_id}:{key.revision}" if key.revision > 1 else None
            following = await next_number(connection, key, failed, retry)
        if following is None:
            raise RefundFailed(str(key))
        return following

    async def _adopted(self, money: MoneyInput) -> str | None:
        intent = await self._gateway.read_intent(money.intent_id)
        if intent.order_id != money.order_id:
            return None
        async with self._database.begin() as connection:
            await enter(connection, EffectKey(money.order_id, Step.AUTHORIZE_PAYMENT))
            return await store_intent(connection, money.order_id, intent)

    async def _compare(self, money: MoneyInput, view: PaymentView) -> PaymentView:
        """What a sold order's captured money has become: there, disputed, or not there."""
        intent = await self._gateway.read_intent(money.intent_id)
        disputes = await self._gateway.list_disputes(money.intent_id) if view.captured else []
        gone = view.captured > 0 and (intent.status is not IntentStatus.SUCCEEDED or not intent.amount_received)
        async with self._database.begin() as connection:
            if gone:
                await record_contradiction(connection, money.order_id)
            else:
                disputed = await record_disputes(connection, money.order_id, disputes)
                under_way = await refund_under_way(connection, money.order_id)
        if gone:
            raise CaptureContradicted(f"{money.order_id} {money.intent_id}")
        if disputed:
            raise PaymentDisputed(f"{money.order_id} {money.intent_id}")
        return view.model_copy(update={"refund_under_way": under_way})

    async def _read(self, order_id: str, intent: Intent) -> list[Refund]:
        """All refunds at the gateway, recorded."""
        refunds = await self._gateway.list_refunds(intent.id)
        async with self._database.begin() as connection:
            view_of(intent, await record_reading(connection, order_id, intent, refunds))
        return refunds


def _find(refunds: list[Refund], wanted: Numbered) -> Refund | None:
    return next((refund for refund in refunds if refund.refund_key == wanted.refund_key), None)


def _asked(money: MoneyInput) -> RefundAsked:
    assert money.refund is not None, "the workflow of a refund has one"
    return money.refund


def _key(money: MoneyInput) -> EffectKey:
    return EffectKey(money.order_id, Step.REFUND_PAYMENT, item=_asked(money).refund_id, revision=money.revision)
