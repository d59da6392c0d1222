"""Every error that a step can end with, as one tree.

    OrderError
    ├── Refusal                    a business answer: final, never retried
    │   ├── InventoryUnavailable     InsufficientPoints     InsufficientCredit
    │   ├── CardDeclined             PaymentFraudBlocked    AuthenticationFailed
    │   ├── AuthorizationExpired     CaptureFailed          NoServiceToAddress
    │   └── UnknownSku
    ├── TransientError             no answer or a broken one: retried, the outcome may be unknown
    │   ├── PaymentServiceUnavailable  CourierUnavailable   FraudServiceUnavailable
    │   ├── DatabaseUnavailable
    │   │   └── DatabaseNotReached     it took no connection: a step tells it as NotServed
    │   └── GatewayProtocolError     an answer that is not understood: unknown, never success
    ├── NotServed                  the provider said "not now": no try, repeated when it says
    │   └── OnHold                   an operator holds the provider: no try either, and waited for without end
    ├── IntakeHeld                 an operator holds the intake: asked at the door only, by no step
    └── ContradictionError         a person must look: parks as DECISION
        ├── PaymentMismatch          our intent carries another amount or currency
        ├── IdempotencyConflict      our key was used with other parameters
        ├── RefundFailed             the provider could not give the money back
        ├── StepFenced               the step's undo has already been here
        ├── OrderNotFound            a run for an order that the database does not have
        └── UnclassifiedError        an error outside this tree: a bug, three tries and stop

Messages carry class names and ids only: they end up in histories. The server matches the exact class name, never a
base class, so the lists that policies use are made from these classes.
"""

from domain.order import CancelReason


class OrderError(Exception):
    """The root: anything an activity may raise on purpose."""


class Refusal(OrderError):
    """A business answer. The subclass says which, `reason` what it means for the order."""

    reason: CancelReason


class InventoryUnavailable(Refusal):
    reason = CancelReason.OUT_OF_STOCK


class InsufficientPoints(Refusal):
    reason = CancelReason.INSUFFICIENT_POINTS


class InsufficientCredit(Refusal):
    reason = CancelReason.INSUFFICIENT_CREDIT


class CardDeclined(Refusal):
    reason = CancelReason.CARD_DECLINED


class PaymentFraudBlocked(Refusal):
    reason = CancelReason.FRAUD_BLOCKED


class AuthenticationFailed(Refusal):
    reason = CancelReason.AUTHENTICATION_FAILED


class AuthorizationExpired(Refusal):
    reason = CancelReason.AUTHORIZATION_EXPIRED


class CaptureFailed(Refusal):
    reason = CancelReason.CAPTURE_FAILED


class NoServiceToAddress(Refusal):
    reason = CancelReason.NO_SERVICE_TO_ADDRESS


class UnknownSku(Refusal):
    reason = CancelReason.UNKNOWN_SKU


class TransientError(OrderError):
    """Worth another try under the same key. The effect may or may not have happened."""


class PaymentServiceUnavailable(TransientError):
    """The gateway broke off, timed out or answered 5xx."""


class CourierUnavailable(TransientError):
    """The courier broke off, timed out or answered 5xx."""


class FraudServiceUnavailable(TransientError):
    """The fraud scorer gave no score."""


class DatabaseUnavailable(TransientError):
    """Our own database gave no answer. The transaction may have been committed: its key tells."""


class DatabaseNotReached(DatabaseUnavailable):
    """It took no connection: the transaction certainly did not begin."""


class GatewayProtocolError(TransientError):
    """A 2xx with a body that is not understood. Unknown, never success."""


class NotServed(OrderError):
    """429, 503, 409 in flight or a refused connection: certainly no effect, and no try.

    `retry_after_seconds` is the provider's own word where it gave one.
    """

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class OnHold(NotServed):
    """An operator holds this provider: nothing was sent, and nothing will be until the hold is released.

    The message is the provider's name in `domain.holds.Held`.
    """


class IntakeHeld(OrderError):
    """An operator holds the intake: no new order is taken."""


class ContradictionError(OrderError):
    """Facts that do not fit together: nothing moves until a person decides."""


class PaymentMismatch(ContradictionError):
    """The order's own intent carries another amount or currency than the order."""


class IdempotencyConflict(ContradictionError):
    """The provider knows our key with other parameters."""


class RefundFailed(ContradictionError):
    """A refund of ours ended as failed at the provider: the shopper's money is still owed."""


class PaymentDisputed(ContradictionError):
    """The shopper's bank disputes a captured payment, or has taken it back for one."""


class CaptureContradicted(ContradictionError):
    """The gateway said that the money was taken, and now says that it is not there."""


class StepFenced(ContradictionError):
    """A forward attempt arrived after its undo: it must not take effect."""


class OrderNotFound(ContradictionError):
    """The run's order is not in the database: a dead claim check. Nothing can be undone or refused for it."""


class UnclassifiedError(ContradictionError):
    """An error outside the tree, named by its class. Made by the worker, not raised by a step."""


def _under(root: type[OrderError]) -> dict[str, type[OrderError]]:
    found = {root.__name__: root}
    for child in root.__subclasses__():
        found.update(_under(child))
    return found


def names_under(root: type[OrderError]) -> frozenset[str]:
    """The class names of one branch, its root included, as they travel in Temporal failures."""
    return frozenset(_under(root))


#: Error type names as they travel, by the branch of the tree.
REFUSALS: dict[str, type[Refusal]] = {
    name: cls for name, cls in _under(Refusal).items() if issubclass(cls, Refusal) and cls is not Refusal
}

#: What Temporal must never retry by itself: answers, contradictions, and "not now" (the workflow's own timer waits).
#: An unclassified error is not here: the worker lets it have three tries.
NON_RETRYABLE: tuple[str, ...] = tuple(
    sorted({*REFUSALS, *names_under(ContradictionError), *names_under(NotServed)} - {UnclassifiedError.__name__})
)
