"""Updates to workflows: what was accepted, what was refused in the workflow's own words, and no answer in time."""

from datetime import timedelta
from typing import TypeVar

from pydantic import BaseModel
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from adapters.temporal import answering_within

UPDATE_SECONDS = 5

#: The workflows' refusals, by the type of their ApplicationError.
_CONFLICTS = {
    "TooLate": "too-late",
    "NoSuchWait": "no-such-wait",
    "AlreadyDecided": "already-decided",
    "NotAllowed": "not-allowed",
    "OutcomeUnknown": "outcome-unknown",
}
#: Made by the SDK: the run returned while the update was in its hands.
_ENDED_MEANWHILE = "AcceptedUpdateCompletedWorkflow"

Answer = TypeVar("Answer", bound=BaseModel)


class NotRunning(Exception):
    """No open run takes updates: it was never started, or it has ended."""


class UpdateRefused(Exception):
    """The workflow said no: `kind` is one stable word for it, the message the workflow's own words."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(words)
        self.kind = kind


async def send_update(
    client: Client,
    workflow_id: str,
    name: str,
    message: BaseModel,
    *,
    key: str | None,
    result_type: type[Answer] | None = None,
) -> Answer:
    """The workflow's answer. The same `key` is the same update, however often it is sent.

    Raises NotRunning, UpdateRefused, or TemporalUnavailable when no answer comes within 5 s; the update may be carried
    out later then.
    """
    handle = client.get_workflow_handle(workflow_id)
    try:
        async with answering_within(UPDATE_SECONDS):
            answer: Answer = await handle.execute_update(
                name,
                message,
                id=f"{name}:{key}" if key else None,
                result_type=result_type,
                rpc_timeout=timedelta(seconds=UPDATE_SECONDS),
            )
            return answer
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise NotRunning from None
        raise
    except WorkflowUpdateFailedError as error:
        refusal = error.cause
        if isinstance(refusal, ApplicationError) and refusal.type in _CONFLICTS:
            raise UpdateRefused(_CONFLICTS[refusal.type], refusal.message) from None
        if isinstance(refusal, ApplicationError) and refusal.type == _ENDED_MEANWHILE:
            raise NotRunning from None
        raise
