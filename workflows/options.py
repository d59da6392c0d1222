"""How each step is called: queue, tries, waits and time-outs, one named policy a dependency.

The waits come from the order's own policy (`domain.policy`), so that its history says what it ran under. No
schedule-to-start and no schedule-to-close anywhere: a missing worker only delays.
"""

from dataclasses import dataclass
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

from workflows.names import Queue

with workflow.unsafe.imports_passed_through():
    from domain.errors import NON_RETRYABLE
    from domain.keys import UNDO_OF, Step
    from domain.messages import (
        OpenedOrder,
        PaymentView,
        RefundOpened,
        RefundView,
        Reservation,
        Screening,
        ShipmentBooked,
        ShipmentCancelled,
        StatusRecorded,
    )
    from domain.policy import OrderPolicy

#: An order that nobody can open stops nobody else: a dozen tries over ten minutes, then a person looks.
OPEN_TRIES = 12
#: Before the pivot a blip is retried, an outage is compensated: three tries in about ten seconds.
STEP_TRIES = 3
#: An undo gives back what the shopper owns: it tries harder before it parks.
UNDO_TRIES = 5
#: The shopper has been promised nothing yet, but the parcel is booked: twenty tries take an hour.
CAPTURE_TRIES = 20
#: After the pivot there is no way back: after this many tries a review item opens, and tries go on.
INSIST_TRIES = 20
#: Questions that the provider does not serve within this have no answer: a payment parks, a person is asked. Parked
#: steps look again with the same patience: their next look is near.
SHORT_PATIENCE_SECONDS = 30.0

_QUEUES: dict[Queue, dict[Step, type | None]] = {
    Queue.ORDERS: {
        Step.OPEN_ORDER: OpenedOrder,
        Step.SCREEN_ORDER: Screening,
        Step.CONFIRM_ORDER: StatusRecorded,
        Step.RECORD_STATUS: StatusRecorded,
        Step.RECORD_DECISION: None,
        Step.RECORD_REFUND: StatusRecorded,
        Step.PARK_STEP: None,
        Step.CLOSE_PARK: None,
    },
    Queue.INVENTORY: {Step.RESERVE_STOCK: Reservation, Step.RELEASE_STOCK: None, Step.COMMIT_STOCK: None},
    Queue.LOYALTY: {
        Step.BURN_POINTS: None,
        Step.RESTORE_POINTS: None,
        Step.APPLY_STORE_CREDIT: None,
        Step.REFUND_STORE_CREDIT: None,
    },
    Queue.PAYMENTS: {
        Step.AUTHORIZE_PAYMENT: PaymentView,
        Step.READ_PAYMENT: PaymentView,
        Step.ABANDON_PAYMENT: PaymentView,
        Step.CAPTURE_PAYMENT: PaymentView,
        Step.RELEASE_PAYMENT: PaymentView,
        Step.SETTLE_LATE_MONEY: PaymentView,
        Step.OPEN_REFUND: RefundOpened,
        Step.REFUND_PAYMENT: RefundView,
    },
    Queue.SHIPPING: {Step.BOOK_SHIPMENT: ShipmentBooked, Step.CANCEL_SHIPMENT: ShipmentCancelled},
}
_QUEUE_OF = {step: queue for queue, steps in _QUEUES.items() for step in steps}
_RESULT_OF = {step: result for steps in _QUEUES.values() for step, result in steps.items()}

_UNDOS = {*UNDO_OF.values(), Step.SETTLE_LATE_MONEY, Step.REFUND_PAYMENT}
_RETRIABLE = {
    Step.CONFIRM_ORDER,
    Step.COMMIT_STOCK,
    Step.RECORD_STATUS,
    Step.RECORD_DECISION,
    Step.OPEN_REFUND,
    Step.RECORD_REFUND,
    Step.PARK_STEP,
    Step.CLOSE_PARK,
}
_LOOK_UPS = {Step.READ_PAYMENT, Step.ABANDON_PAYMENT, Step.SCREEN_ORDER}
#: Two or three requests to a provider in one attempt, each with a time-out of 5 s: look, act, look again.
_SEVERAL_REQUESTS = {
    Step.AUTHORIZE_PAYMENT,
    Step.READ_PAYMENT,
    Step.ABANDON_PAYMENT,
    Step.CAPTURE_PAYMENT,
    Step.RELEASE_PAYMENT,
    Step.SETTLE_LATE_MONEY,
    Step.REFUND_PAYMENT,
    Step.BOOK_SHIPMENT,
}


@dataclass(frozen=True)
class StepOptions:
    """One step's policy, all waits in seconds."""

    queue: Queue
    result_type: type | None
    tries: int
    first_wait_seconds: float
    longest_wait_seconds: float
    timeout_seconds: float
    not_served_seconds: float

    def retry_policy(self, tries: int, jitter: float) -> RetryPolicy:
        """`tries` attempts in all, waits doubled each time. `jitter` (0.8–1.2) keeps a herd from marching in step."""
        return RetryPolicy(
            initial_interval=timedelta(seconds=self.first_wait_seconds * jitter),
            backoff_coefficient=2.0,
            maximum_interval=timedelta(seconds=max(self.longest_wait_seconds, self.first_wait_seconds * jitter)),
            maximum_attempts=tries,
            non_retryable_error_types=list(NON_RETRYABLE),
        )


def options_for(step: Step, policy: OrderPolicy) -> StepOptions:
    """The policy of one step of an order that runs under `policy`."""
    return StepOptions(
        queue=_QUEUE_OF[step],
        result_type=_RESULT_OF[step],
        tries=_tries(step),
        first_wait_seconds=_first_wait(step, policy),
        longest_wait_seconds=(
            policy.capture_longest_wait_seconds if step is Step.CAPTURE_PAYMENT else policy.longest_wait_seconds
        ),
        timeout_seconds=(
            policy.several_requests_timeout_seconds if step in _SEVERAL_REQUESTS else policy.step_timeout_seconds
        ),
        not_served_seconds=_not_served(step, policy),
    )


def _tries(step: Step) -> int:
    if step in _UNDOS:
        return UNDO_TRIES
    if step in _RETRIABLE:
        return INSIST_TRIES
    return {Step.OPEN_ORDER: OPEN_TRIES, Step.CAPTURE_PAYMENT: CAPTURE_TRIES}.get(step, STEP_TRIES)


def _first_wait(step: Step, policy: OrderPolicy) -> float:
    if step in _UNDOS:
        return policy.undo_first_wait_seconds
    return policy.stock_first_wait_seconds if step is Step.RESERVE_STOCK else policy.first_wait_seconds


def _not_served(step: Step, policy: OrderPolicy) -> float:
    if step in _LOOK_UPS:
        return SHORT_PATIENCE_SECONDS
    return policy.booking_not_served_seconds if step is Step.BOOK_SHIPMENT else policy.not_served_seconds
