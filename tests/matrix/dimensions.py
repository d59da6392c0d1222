"""What a case of the matrix is made of: where it breaks and how, how the payment's word comes, who cancels when."""

from dataclasses import dataclass
from enum import StrEnum

from domain.keys import UNDO_OF, Step


class Fault(StrEnum):
    """What happens to one step or undo."""

    REFUSAL = "refused"
    FAILS_BEFORE = "fails_before"
    ANSWER_LOST = "answer_lost"
    TRANSIENT = "heals_at_the_last_try"
    RATE_LIMITED = "rate_limited"
    NOT_REACHED = "not_reached"
    RUNS_OUT = "runs_out"
    OUTAGE = "down_until_mended"
    BUG = "bug"
    #: The attempt stands still before its effect, past its time-out, and goes on when all is over.
    DIES = "dies_before"
    #: So do all attempts that the step has.
    LANDS_LATE = "lands_after_the_end"
    #: The call hangs in the network, and reaches the provider when all is over.
    HANGS = "hangs_at_provider"
    #: The effect is there, and the worker that made it never says so.
    KILLED = "killed_after"


class Payment(StrEnum):
    """How the gateway's word comes."""

    AT_ONCE = "paid_at_once"
    WEBHOOK = "webhook"
    TWICE = "webhook_twice"
    OUT_OF_ORDER = "webhooks_out_of_order"
    LATE = "word_late"
    NEVER = "webhook_never"
    DECLINED = "declined_after_processing"
    SECURE = "secure_finished"
    SECURE_FAILED = "secure_failed"
    ABANDONED = "secure_abandoned"


class Caller(StrEnum):
    """Who cancels. Of two, the first counts."""

    CUSTOMER = "customer"
    TEMPORAL = "temporal"
    BOTH = "customer_then_temporal"
    BOTH_TURNED = "temporal_then_customer"


class Trigger(StrEnum):
    """What sends an order back that would be confirmed."""

    NONE = "goes_well"
    COURIER = "courier_refuses"
    CAPTURE = "capture_refused"


class Word(StrEnum):
    """What the operator says to a step that waits for one."""

    RETRY = "retry"
    COMPENSATE = "compensate"
    SKIP = "skip"
    #: Nobody but the shopper says anything: she cancels.
    CANCEL = "cancel"


@dataclass(frozen=True)
class Place:
    """One activity of the saga; `item` tells the writes of statuses apart."""

    step: Step
    item: str | None = None

    def __str__(self) -> str:
        return f"{self.step.value}.{self.item}" if self.item else self.step.value


@dataclass(frozen=True)
class Moment:
    """When the cancel comes: while an attempt stands before its effect, or after it. No place: before the start."""

    place: Place | None
    after: bool = False

    def __str__(self) -> str:
        return f"{'after' if self.after else 'at'}_{self.place}" if self.place else "before_the_start"


STATUSES = ("AWAITING_PAYMENT", "COMPENSATING", "CANCELLED_COMPENSATED")
WRITES = tuple(Place(Step.RECORD_STATUS, status) for status in STATUSES)
RESERVING = (Step.RESERVE_STOCK, Step.BURN_POINTS, Step.APPLY_STORE_CREDIT)
FORWARD = (
    Place(Step.OPEN_ORDER),
    Place(Step.SCREEN_ORDER),
    *map(Place, RESERVING),
    WRITES[0],
    Place(Step.AUTHORIZE_PAYMENT),
    Place(Step.READ_PAYMENT),
    Place(Step.ABANDON_PAYMENT),
    Place(Step.BOOK_SHIPMENT),
    Place(Step.CAPTURE_PAYMENT),
    Place(Step.CONFIRM_ORDER),
    Place(Step.COMMIT_STOCK),
)
PLACES = FORWARD + WRITES[1:]
UNDOS = tuple(Place(undo) for undo in reversed(UNDO_OF.values()))

AFTER_THE_PIVOT = frozenset({Step.CONFIRM_ORDER, Step.COMMIT_STOCK})
UNDO_STEPS = frozenset(UNDO_OF.values())
#: These ask a provider; all others only our own database.
PROVIDERS = {
    Step.SCREEN_ORDER: "fraud",
    Step.AUTHORIZE_PAYMENT: "gateway",
    Step.READ_PAYMENT: "gateway",
    Step.ABANDON_PAYMENT: "gateway",
    Step.CAPTURE_PAYMENT: "gateway",
    Step.RELEASE_PAYMENT: "gateway",
    Step.BOOK_SHIPMENT: "courier",
    Step.CANCEL_SHIPMENT: "courier",
}
#: Steps that wait as long as several requests may take (`workflows.options`).
SEVERAL_REQUESTS = frozenset(step for step, name in PROVIDERS.items() if name == "gateway") | {Step.BOOK_SHIPMENT}
#: Held past its time-out, which the order's policy makes short.
SLOW = frozenset({Fault.DIES, Fault.LANDS_LATE, Fault.KILLED})
#: Payments that the saga must wait for: the answer to the authorization is not the last word.
WAITED_FOR = frozenset(Payment) - {Payment.AT_ONCE}
#: Before the word has come, the deadline is over.
OVERDUE = (Payment.LATE, Payment.ABANDONED)

MOMENTS = (
    Moment(None),
    *(
        Moment(place, after)
        for place in (*FORWARD, *UNDOS)
        if place.step is not Step.ABANDON_PAYMENT
        for after in (False, True)
    ),
)


def possible(step: Step, fault: Fault) -> bool:
    """Whether this can happen to the step, and is something else than another fault of it."""
    retriable = step in AFTER_THE_PIVOT or step in UNDO_STEPS
    match fault:
        case Fault.REFUSAL:
            return step is not Step.RECORD_STATUS
        case Fault.RATE_LIMITED:
            return step in PROVIDERS
        case Fault.HANGS:
            return step in {
                Step.AUTHORIZE_PAYMENT,
                Step.CAPTURE_PAYMENT,
                Step.RELEASE_PAYMENT,
                Step.BOOK_SHIPMENT,
                Step.CANCEL_SHIPMENT,
            }
        case Fault.OUTAGE:
            parks = {Step.OPEN_ORDER, Step.AUTHORIZE_PAYMENT, Step.ABANDON_PAYMENT, Step.CAPTURE_PAYMENT}
            return step in parks or step in UNDO_STEPS
        case Fault.LANDS_LATE:
            # Elsewhere a later attempt makes the effect, as where one dies before it.
            return not retriable and step in {*RESERVING, Step.SCREEN_ORDER, Step.AUTHORIZE_PAYMENT, Step.BOOK_SHIPMENT}
        case _:
            return True


@dataclass(frozen=True)
class Case:
    """One order's trouble. Its ways to end stand in `tests.matrix.expect`."""

    place: Place | None = None
    fault: Fault | None = None
    undo: Step | None = None
    undo_fault: Fault | None = None
    payment: Payment = Payment.AT_ONCE
    trigger: Trigger = Trigger.NONE
    caller: Caller | None = None
    moment: Moment | None = None
    word: Word = Word.RETRY

    def __str__(self) -> str:
        parts = [
            f"{self.place}_{self.fault}" if self.place else "",
            f"{self.undo}_{self.undo_fault}" if self.undo else "",
            self.payment,
            self.trigger if self.trigger is not Trigger.NONE else "",
            f"{self.caller}_cancels_{self.moment}" if self.caller else "",
            self.word if self.word is not Word.RETRY else "",
        ]
        return "-".join(part for part in parts if part)

    def breaks(self, step: Step, *faults: Fault) -> bool:
        """Whether this step meets one of these faults (or any)."""
        return self.place is not None and self.place.step is step and (not faults or self.fault in faults)
