"""What steps and errors are, in a few plain words: for the Web UI, the command line, whoever is new here."""

from domain.keys import Step

STEP_WORDS = {
    Step.OPEN_ORDER: "take the accepted order",
    Step.SCREEN_ORDER: "ask the fraud scorer",
    Step.RESERVE_STOCK: "set the basket aside",
    Step.BURN_POINTS: "take {points} points",
    Step.APPLY_STORE_CREDIT: "take {credit} of store credit",
    Step.AUTHORIZE_PAYMENT: "hold {due}",
    Step.READ_PAYMENT: "ask the gateway",
    Step.ABANDON_PAYMENT: "end what was not paid in time",
    Step.AWAIT_PAYMENT: "wait for the payment",
    Step.BOOK_SHIPMENT: "book a parcel",
    Step.CAPTURE_PAYMENT: "take {due}",
    Step.CONFIRM_ORDER: "the order is sold",
    Step.COMMIT_STOCK: "the goods leave the shelf",
    Step.RELEASE_STOCK: "put the basket back",
    Step.RESTORE_POINTS: "give {points} points back",
    Step.REFUND_STORE_CREDIT: "give {credit} of store credit back",
    Step.RELEASE_PAYMENT: "give back what is held or taken",
    Step.CANCEL_SHIPMENT: "cancel the parcel",
    Step.SETTLE_LATE_MONEY: "see to what came too late",
    Step.OPEN_REFUND: "take the refund in",
    Step.REFUND_PAYMENT: "give money back",
    Step.RECORD_REFUND: "tell that money is back",
    Step.RECORD_DECISION: "keep the reviewer's word",
    Step.PARK_STEP: "tell what is parked",
    Step.CLOSE_PARK: "tell what goes on",
}


def told(step: Step, item: str, *, due: str, credit: str, points: int) -> str:
    """The step's words with the order's own amounts, and what tells it apart from others of its kind."""
    words = STEP_WORDS.get(step, item).format(due=due, credit=credit, points=points)
    return f"{words}: {item}" if item and item != words else words


#: What stands behind an error that parks a step, and what to do about it (docs/runbook.md has the long form).
ERROR_WORDS = {
    "PaymentServiceUnavailable": "the gateway breaks off, times out or answers 5xx, or the bank has not decided yet",
    "CourierUnavailable": "the courier breaks off, times out or answers 5xx",
    "FraudServiceUnavailable": "the fraud scorer gives no score",
    "DatabaseUnavailable": "our database gave no answer",
    "GatewayProtocolError": "a provider answers something that we do not understand",
    "NotServed": 'the other side says "not now", or refuses the connection',
    "TimeoutError": "an attempt ended without a word: its worker was killed, or hangs",
    "StillProcessing": "the bank has not decided about the payment in 24 hours",
    "RefundFailed": "the bank sent the refund back: the shopper's money is still with us",
    "PaymentDisputed": "the shopper's bank disputes the payment, or has taken the money back for it",
    "CaptureContradicted": "the gateway said that it took the money, and now says that it has not",
    "PaymentMismatch": "the payment is over another amount or currency than the order, or was taken in part",
    "IdempotencyConflict": "the provider knows our key with other parameters",
    "StepFenced": "a step was called after its own undo: it had no effect",
    "OrderNotFound": "the database does not have this order: it was restored to an older time",
    "DeadRun": "somebody ended its run before the order was closed; the new run goes on, or back, as you say",
    "UnclassifiedError": "a bug of ours: the worker's log has the place",
    "ProviderRequestRefused": "the provider refuses our request as such: a wrong key, or a changed API",
}
#: For the class of any exception that nobody classified.
BUG_WORDS = "a bug of ours, or a provider that refuses our request: the worker's log has the place"
