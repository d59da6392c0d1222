"""The payments party: hold, take and give back the shopper's money.

Idempotent by the gateway's own state: an effect's key is asked again under the same idempotency key, the intent is read
before anything is decided, and every reading is recorded as a whole. A release leaves its tombstone before it looks at
the gateway, and an intent is stored under the same lock before it is confirmed: a late attempt cannot hold money that
nobody knows of.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress

from sqlalchemy.ext.asyncio import AsyncConnection
from temporalio import activity

from adapters.database import Database
from adapters.gateway_effects import GatewayEffects
from adapters.http import ProviderRequestRefused
from adapters.payment_gateway import PaymentGateway, Replayed, UnexpectedState
from adapters.payments import (
    Terms,
    authorize_refund,
    mark_declined,
    read_terms,
    record_reading,
    require_captured,
    require_terms,
    store_intent,
    view_of,
)
from adapters.steps import asking, enter, enter_forward, stamp
from adapters.stripe_answers import Intent, IntentStatus, Refund, RefundStatus
from domain.errors import (
    AuthorizationExpired,
    CaptureFailed,
    OrderError,
    PaymentServiceUnavailable,
    RefundFailed,
    Refusal,
    StepFenced,
)
from domain.keys import EffectKey, Step
from domain.messages import PaymentView, StepInput
from domain.order import CancelReason, PaymentStatus, StepState

#: How often the intent may have moved on while one release deals with it: hold, capture, refund, and some to spare.
ROUNDS = 5

WAITING_FOR_THE_SHOPPER = frozenset(
    {IntentStatus.REQUIRES_PAYMENT_METHOD, IntentStatus.REQUIRES_CONFIRMATION, IntentStatus.REQUIRES_ACTION}
)


class PaymentsActivities:
    """Steps and undos of the payments queue."""

    def __init__(self, database: Database, gateway: PaymentGateway) -> None:
        self._database = database
        self._gateway = gateway
        self._effects = GatewayEffects(gateway)

    @activity.defn
    async def authorize_payment(self, step: StepInput) -> PaymentView:
        """Creates the order's intent, stores it, confirms it once. The view may still be waiting for the gateway.

        Idempotent by the stored intent: one that was ever confirmed is only read. Raises CardDeclined,
        PaymentFraudBlocked, AuthenticationFailed; PaymentMismatch; StepFenced after the release.
        """
        key = _forward(step.order_id, step.revision)
        async with self._database.begin() as connection:
            await enter_forward(connection, key)
            terms = await read_terms(connection, step.order_id)
            if terms.amount == 0:
                return PaymentView(status=PaymentStatus.NONE)
            await _intend(connection, key, terms.intent_id)
        try:
            async with self._asking(key):
                intent = await self._own_intent(key, terms)
                require_terms(intent, step.order_id, terms)
                if intent.unconfirmed:
                    intent = await self._effects.confirm(intent, key=f"{key}:confirm")
                    require_terms(intent, step.order_id, terms)
                refunds = await self._refunds_of(intent)
        except Refusal as refusal:
            async with self._database.begin() as connection:
                await mark_declined(connection, step.order_id)
                await stamp(connection, key, StepState.REFUSED, reason=refusal.reason.value)
            raise
        view = await self._record(key, intent, refunds)
        if view.status is PaymentStatus.DECLINED and intent.refusal is not None:
            raise intent.refusal(str(key))
        return view

    @activity.defn
    async def read_payment(self, step: StepInput) -> PaymentView:
        """The look-up: what the gateway says now, recorded. NONE: certainly no money was asked for.

        Raises PaymentMismatch when the intent is not over the order's own amount.
        """
        async with self._database.begin() as connection:
            terms = await read_terms(connection, step.order_id)
        if terms.intent_id is None:
            # An attempt may have created an intent and lost it; unconfirmed it holds nothing and never will.
            return PaymentView(status=PaymentStatus.NONE)
        return await self._look_up(_forward(step.order_id, step.revision), terms.intent_id, terms)

    @activity.defn
    async def capture_payment(self, step: StepInput) -> PaymentView:
        """The pivot: takes all that is held. Idempotent by the intent's state, read before and decided by after.

        Raises AuthorizationExpired or CaptureFailed when it certainly did not happen; PaymentServiceUnavailable while
        the outcome is unknown; PaymentMismatch; StepFenced after the release.
        """
        forward, key = _forward(step.order_id), EffectKey(step.order_id, Step.CAPTURE_PAYMENT, revision=step.revision)
        async with self._database.begin() as connection:
            await enter_forward(connection, forward)
            terms = await read_terms(connection, step.order_id)
            await _intend(connection, key, terms.intent_id)
        try:
            if terms.intent_id is None:
                raise CaptureFailed(str(key))
            async with self._asking(key):
                intent = await self._gateway.read_intent(terms.intent_id)
                require_terms(intent, step.order_id, terms)
                if intent.status is IntentStatus.REQUIRES_CAPTURE:
                    intent = await self._effects.capture(intent, key=f"{key}:capture")
                    require_terms(intent, step.order_id, terms)
                view = await self._record(forward, intent)
                require_captured(intent, key)
        except (AuthorizationExpired, CaptureFailed) as refusal:
            async with self._database.begin() as connection:
                await stamp(connection, key, StepState.REFUSED, reason=refusal.reason.value)
            raise
        async with self._database.begin() as connection:
            await stamp(connection, key, StepState.DONE, provider_reference=intent.id)
        return view

    @activity.defn
    async def release_payment(self, step: StepInput) -> PaymentView:
        """Undoes whatever became of the payment: cancels what is held, refunds what is captured, once.

        Idempotent by the intent's state and by the list of its refunds. Harmless when nothing was there. Raises
        PaymentServiceUnavailable while the intent still processes, RefundFailed when a refund came back.
        """
        return await self.give_back(step.order_id, step.revision)

    @activity.defn
    async def abandon_payment(self, step: StepInput) -> PaymentView:
        """At the deadline: ends an intent that still waits for the shopper; the gateway's answer decides.

        Idempotent by the intent's state. Anything that is further along is only looked up. The stamps say why the
        intent ended, or what it had become by then. Raises PaymentMismatch.
        """
        key = EffectKey(step.order_id, Step.ABANDON_PAYMENT, revision=step.revision)
        async with self._database.begin() as connection:
            terms = await read_terms(connection, step.order_id)
            asked = StepState.INTENDED in (await enter(connection, key)).states
        if terms.intent_id is None:
            return PaymentView(status=PaymentStatus.NONE)
        async with self._asking(key):
            intent = await self._gateway.read_intent(terms.intent_id)
            if intent.status in WAITING_FOR_THE_SHOPPER:
                asked = True
                async with self._database.begin() as connection:
                    await _intend(connection, key, intent.id)
                intent = await self._effects.cancel(intent, key=f"{key}:cancel")
            if intent.status is not IntentStatus.CANCELED:
                require_terms(intent, step.order_id, terms)
            refunds = await self._refunds_of(intent)
        view = await self._record(_forward(step.order_id), intent, refunds)
        if asked:
            ended = intent.status is IntentStatus.CANCELED
            async with self._database.begin() as connection:
                reason = CancelReason.PAYMENT_TIMED_OUT.value if ended else view.status.value
                await stamp(connection, key, StepState.DONE if ended else StepState.REFUSED, reason=reason)
        return view

    async def give_back(self, order_id: str, revision: int) -> PaymentView:
        """`release_payment`, for whoever has an order to undo: also long after its saga."""
        forward, undo = _forward(order_id), EffectKey(order_id, Step.RELEASE_PAYMENT, revision=revision)
        async with self._database.begin() as connection:
            await enter(connection, forward)
            intent_id = (await read_terms(connection, order_id)).intent_id
            await stamp(connection, forward, StepState.UNDONE, provider_reference=intent_id)
            await _intend(connection, undo, intent_id)
        view = PaymentView(status=PaymentStatus.NONE)
        if intent_id is not None:
            async with self._asking(undo):
                view = await self._give_back(intent_id, forward, undo)
        if view.status is not PaymentStatus.REFUND_PENDING:
            async with self._database.begin() as connection:
                await stamp(connection, undo, StepState.DONE, provider_reference=intent_id)
        return view

    async def look_up(self, order_id: str, intent_id: str) -> PaymentView:
        """What the gateway says of an intent, recorded, whatever its terms are."""
        return await self._look_up(_forward(order_id), intent_id)

    async def _own_intent(self, key: EffectKey, terms: Terms) -> Intent:
        """The order's stored intent; a new one is stored first, unless the release has been here."""
        if terms.intent_id is not None:
            return await self._gateway.read_intent(terms.intent_id)
        intent = await self._effects.create(
            key.order_id, terms.amount, terms.currency, terms.payment_method, key=f"{key}:create"
        )
        require_terms(intent, key.order_id, terms)
        try:
            async with self._database.begin() as connection:
                await enter_forward(connection, key)
                stored = await store_intent(connection, key.order_id, intent)
                await stamp(connection, key, StepState.INTENDED, provider_reference=stored)
        except StepFenced:
            # Nobody will confirm this intent; ending it is tidiness, not safety. One that only could not be stored now
            # holds nothing either, and the next attempt finds it by its key.
            with suppress(OrderError, UnexpectedState, Replayed, ProviderRequestRefused):
                await self._gateway.cancel_intent(intent.id, f"{key}:cancel")
            raise
        return intent if stored == intent.id else await self._gateway.read_intent(stored)

    async def _give_back(self, intent_id: str, forward: EffectKey, undo: EffectKey) -> PaymentView:
        """Asks the gateway until nothing is held and nothing is owed, or a refund is on its way."""
        intent = await self._gateway.read_intent(intent_id)
        for _ in range(ROUNDS):
            refunds = await self._refunds_of(intent)
            view = await self._record(forward, intent, refunds)
            owed = intent.amount_received - sum(r.amount for r in refunds if r.status is not RefundStatus.FAILED)
            if intent.status is IntentStatus.PROCESSING:
                # It cannot be cancelled now and may yet become a hold: asked again until it can.
                raise PaymentServiceUnavailable(str(undo))
            if intent.status is IntentStatus.SUCCEEDED and owed > 0:
                await self._refund(intent, owed, refunds, undo)
            elif intent.status in {IntentStatus.CANCELED, IntentStatus.SUCCEEDED}:
                return view
            else:
                intent = await self._effects.cancel(intent, key=f"{undo}:cancel")
        raise PaymentServiceUnavailable(str(undo))

    async def _refund(self, intent: Intent, owed: int, refunds: Sequence[Refund], undo: EffectKey) -> None:
        """Asks for the refund. The caller lists the intent's refunds again, which is the answer that counts.

        The first one is asked for by anybody. A further one is an operator's decision: a revision above the first of a
        workflow run, which allows the one after those that had failed when it was first attempted, and no other.
        """
        failed, number = sum(refund.status is RefundStatus.FAILED for refund in refunds), 1
        if undo.revision > 1:
            retry = f"{activity.info().workflow_run_id}:{undo.revision}"
            async with self._database.begin() as connection:
                number = await authorize_refund(connection, undo.order_id, retry, failed)
        if failed >= number:
            raise RefundFailed(str(undo))
        refund_key = str(EffectKey(undo.order_id, Step.RELEASE_PAYMENT, revision=number))
        key = f"{refund_key}:refund:{undo.revision}"
        await self._effects.refund(intent, owed, refunds, refund_key=refund_key, key=key)

    async def _look_up(self, forward: EffectKey, intent_id: str, terms: Terms | None = None) -> PaymentView:
        intent = await self._gateway.read_intent(intent_id)
        if terms is not None:
            require_terms(intent, forward.order_id, terms)
        return await self._record(forward, intent, await self._refunds_of(intent))

    async def _refunds_of(self, intent: Intent) -> Sequence[Refund]:
        """Only a captured intent can have refunds."""
        return await self._gateway.list_refunds(intent.id) if intent.status is IntentStatus.SUCCEEDED else ()

    async def _record(self, forward: EffectKey, intent: Intent, refunds: Sequence[Refund] = ()) -> PaymentView:
        """Records a reading and stamps what it says of the authorization, in one transaction."""
        async with self._database.begin() as connection:
            stamps = await enter(connection, forward)
            payment = await record_reading(connection, forward.order_id, intent, refunds)
            view = view_of(intent, payment)
            if stamps.undone:
                return view
            if payment.authorized and not stamps.done:
                await stamp(connection, forward, StepState.DONE, provider_reference=intent.id)
            elif payment.status is PaymentStatus.DECLINED and StepState.REFUSED not in stamps.states:
                reason = view.reason.value if view.reason else None
                await stamp(connection, forward, StepState.REFUSED, provider_reference=intent.id, reason=reason)
        return view

    def _asking(self, key: EffectKey) -> AbstractAsyncContextManager[None]:
        return asking(self._database, key, activity.info().attempt)


async def _intend(connection: AsyncConnection, key: EffectKey, intent_id: str | None) -> None:
    await stamp(connection, key, StepState.INTENDED, attempt=activity.info().attempt, provider_reference=intent_id)


def _forward(order_id: str, revision: int = 1) -> EffectKey:
    return EffectKey(order_id, Step.AUTHORIZE_PAYMENT, revision=revision)
