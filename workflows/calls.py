"""One call of a step, from the first try to its end: the only place that catches Temporal's failures.

A call ends with the step's result or with one of four endings. Everything else that is raised here is a bug and
leaves the workflow open for a fixed worker.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, cast

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, FailureError

from workflows.options import StepOptions, options_for

with workflow.unsafe.imports_passed_through():
    from pydantic import BaseModel

    from domain.errors import REFUSALS, NotServed, OnHold, TransientError, names_under
    from domain.keys import Step
    from domain.order import CancelReason
    from domain.policy import OrderPolicy

_TRANSIENT = names_under(TransientError)

#: Who has waited long may wait a little longer: an hour's outage is seventy calls, not thousands in the history.
SHARE_OF_THE_WAIT = 0.1


class StepEnded(Exception):
    """How a call ended when it did not end well."""

    error: str


class Refused(StepEnded):
    """A business answer: final."""

    def __init__(self, reason: CancelReason) -> None:
        self.reason = reason
        self.error = reason.value


class RunOut(StepEnded):
    """Tries or patience ran out. What happened is unknown until a look-up says."""

    def __init__(self, error: str) -> None:
        self.error = error

    @property
    def not_served(self) -> bool:
        """The provider did not take our calls at all: another key would not change that."""
        return self.error == NotServed.__name__


class Contradicted(StepEnded):
    """Facts that do not fit, or an error nobody classified: a person must decide."""

    def __init__(self, error: str) -> None:
        self.error = error


class Interrupted(StepEnded):
    """A cancel woke a wait: nothing was sent since."""

    error = "Interrupted"


def _never() -> bool:
    return False


def _ignore(_: str | None) -> None:
    pass


async def call(
    step: Step,
    argument: BaseModel,
    policy: OrderPolicy,
    *,
    summary: str = "",
    interrupted: Callable[[], bool] = _never,
    not_served: Callable[[str | None], None] = _ignore,
    patience_seconds: float | None = None,
) -> Any:
    """Calls the step's activity until it answers, refuses or runs out, and returns its result.

    "Not served" is no try: it is waited for by a timer of the workflow, which `interrupted` wakes. Never shorter than
    the provider asked for, and no longer in all than `patience_seconds`, or what the step's policy says; while an
    operator holds the provider, without end. `not_served` is told why when such a wait begins, and None when it ends.
    Raises Refused, RunOut, Contradicted, or Interrupted.
    """
    options = options_for(step, policy)
    patience = _Patience(options.not_served_seconds if patience_seconds is None else patience_seconds, policy)
    tries_left = options.tries
    while True:
        try:
            return await _execute(step, argument, options, tries_left, summary)
        except FailureError as failure:
            wait = _wait_or_raise(failure, policy)
        tries_left -= wait.tries_used
        pause = patience.pause(wait)
        if tries_left <= 0 or pause is None:
            raise RunOut(NotServed.__name__)
        not_served(wait.why)
        woken = await sleep_unless(interrupted, pause, summary=f"{step} waits {wait.why}")
        not_served(None)
        if woken:
            raise Interrupted


async def sleep_unless(woken: Callable[[], bool], seconds: float, *, summary: str) -> bool:
    """Sleeps by a timer of the workflow; returns whether `woken` ended it early. The wake-up counts first."""
    try:
        await workflow.wait_condition(woken, timeout=timedelta(seconds=seconds), timeout_summary=summary)
    except TimeoutError:
        return woken()
    return True


async def _execute(step: Step, argument: BaseModel, options: StepOptions, tries: int, summary: str) -> Any:
    jitter = 0.8 + 0.4 * workflow.random().random()
    return await workflow.execute_activity(
        step.value,
        argument,
        task_queue=options.queue.value,
        result_type=cast(Any, options.result_type),
        start_to_close_timeout=timedelta(seconds=options.timeout_seconds),
        retry_policy=options.retry_policy(tries, jitter),
        summary=summary or None,
    )


class _Wait:
    """How long the provider wants us to wait, and how many tries were used up before it said so.

    `held`: the provider did not say so, an operator holds it.
    """

    def __init__(self, seconds: float, tries_used: int, held: str | None = None) -> None:
        self.seconds = seconds
        self.tries_used = tries_used
        self.held = held

    @property
    def why(self) -> str:
        """In words for whoever looks at the order meanwhile."""
        return f"because the {self.held} is on hold" if self.held else "because it is not served"


class _Patience:
    """How long a call may wait for a provider that does not serve it. Time on hold does not count."""

    def __init__(self, seconds: float, policy: OrderPolicy) -> None:
        self._seconds = seconds
        self._policy = policy
        self._begun = workflow.now()
        self._on_hold = timedelta()
        self._held_since: datetime | None = None
        self._hold_pause = policy.hold_first_look_seconds

    def pause(self, wait: _Wait) -> float | None:
        """Seconds until the next look; None when patience is over."""
        now = workflow.now()
        if self._held_since is not None:
            self._on_hold += now - self._held_since
        self._held_since = now if wait.held else None
        if wait.held:
            growing, longest = self._hold_pause, self._policy.hold_longest_look_seconds
            self._hold_pause = min(2 * growing, longest)
            return min(growing, longest)
        waited = (now - self._begun - self._on_hold).total_seconds()
        pause = max(wait.seconds, waited * SHARE_OF_THE_WAIT)
        return pause if waited + pause <= self._seconds else None


def _wait_or_raise(failure: FailureError, policy: OrderPolicy) -> _Wait:
    """Turns a failure into the call's ending, or into a wait when the provider was just not serving."""
    cause = failure.cause if isinstance(failure, ActivityError) else failure
    if not isinstance(cause, ApplicationError):
        raise RunOut(type(cause).__name__) from None
    name = cause.type or "UnclassifiedError"
    if name in REFUSALS:
        raise Refused(REFUSALS[name].reason) from None
    if name == OnHold.__name__:
        _, attempt = cause.details
        return _Wait(0, attempt - 1, held=cause.message)
    if name == NotServed.__name__:
        retry_after, attempt = cause.details
        return _Wait(policy.not_served_wait_seconds if retry_after is None else retry_after, attempt - 1)
    if name in _TRANSIENT:
        raise RunOut(name) from None
    raise Contradicted(cause.message if name == "UnclassifiedError" else name) from None
