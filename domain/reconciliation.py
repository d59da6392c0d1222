"""What the guard and the nightly reconciliation look for, and what they tell: ids, amounts and enums only."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from domain.keys import Step
from domain.messages import BegunEffect
from domain.order import OrderStatus


class RunKind(StrEnum):
    """The guard looks every few minutes at what changed lately; once a night everything of a month is compared."""

    GUARD = "guard"
    NIGHTLY = "nightly"


class Part(StrEnum):
    """What a run reads, each by the worker that may. One that does not answer leaves the others to be compared."""

    GATEWAY = "gateway"
    COURIER = "courier"
    RUNS = "runs"


class FindingKind(StrEnum):
    """Each kind of difference. `docs/operating.md` says of each what it means and what to do."""

    NOT_STARTED = "not_started"
    DEAD_RUN = "dead_run"
    LAGGING_ORDER = "lagging_order"
    RUN_DIFFERS = "run_differs"
    RUN_WITHOUT_ORDER = "run_without_order"
    OVERDUE = "overdue"
    MONEY_KEPT = "money_kept"
    OPEN_HOLD = "open_hold"
    CAPTURE_DIFFERS = "capture_differs"
    REFUND_UNSETTLED = "refund_unsettled"
    UNKNOWN_PAYMENT = "unknown_payment"
    PARCEL_LEFT = "parcel_left"
    PARCEL_MISSING = "parcel_missing"
    UNKNOWN_PARCEL = "unknown_parcel"
    STOCK_DIFFERS = "stock_differs"
    POINTS_DIFFER = "points_differ"
    CREDIT_DIFFERS = "credit_differs"
    WEBHOOKS_WAIT = "webhooks_wait"
    STARTS_WAIT = "starts_wait"
    NOT_COMPARED = "not_compared"


class RunState(StrEnum):
    """Where the newest run of an order stands."""

    MISSING = "missing"
    RUNNING = "running"
    COMPLETED = "completed"
    DEAD = "dead"


@dataclass(frozen=True)
class SeenRun:
    """The newest run of one order. `told`: the status that it showed last. `ended`: Temporal's word for its end."""

    order_id: str
    state: RunState
    told: OrderStatus | None = None
    ended: str = ""


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True)


class ReconciliationInput(_Message):
    """Starts one run. An order that changed less than `grace_seconds` ago is still moving and not judged.

    `days`: how far back a nightly run looks.
    """

    kind: RunKind
    grace_seconds: float = 60
    days: int = 30


class BeginRun(ReconciliationInput):
    """Opens a run under this id; a nightly one is known by its day instead."""

    run_id: str


class RunResult(_Message):
    """How a run ended. The findings themselves stay in the database."""

    run_id: str
    complete: bool
    checked: int
    findings: int


class BegunRun(_Message):
    """An opened run and where its reading begins. `kept`: how this night's run ended that is complete already."""

    run_id: str
    since: datetime
    parcels_after: str | None = None
    grace_seconds: float
    kept: RunResult | None = None


class PartRead(_Message):
    """One part was read. `cursor`: where the next run goes on."""

    cursor: str | None = None


class CompareRun(_Message):
    """What of the run could be read, and the error of what could not."""

    run_id: str
    grace_seconds: float
    failed: dict[Part, str] = {}


class EndRun(_Message):
    """Closes a run. `complete`: all parts were read, so the next one need not look back further."""

    run_id: str
    complete: bool
    cursor: str | None = None


class LeftoversInput(_Message):
    """Starts `LeftoversWorkflow`: an order that is undone still has something, which these undos give back."""

    order_id: str
    undos: list[BegunEffect]


class Finding(_Message):
    """One difference. `action`: what was sent to repair it; None where only a person can decide."""

    subject: str
    kind: FindingKind
    detail: str
    action: str | None = None


class Report(_Message):
    """One run as it is kept."""

    run_id: str
    kind: RunKind
    started_at: datetime
    finished_at: datetime | None
    complete: bool
    checked: int
    findings: list[Finding]


#: The undo that gives back what an undone order still has.
UNDO_OF_FINDING = {
    FindingKind.PARCEL_LEFT: Step.CANCEL_SHIPMENT,
    FindingKind.STOCK_DIFFERS: Step.RELEASE_STOCK,
    FindingKind.POINTS_DIFFER: Step.RESTORE_POINTS,
    FindingKind.CREDIT_DIFFERS: Step.REFUND_STORE_CREDIT,
}
