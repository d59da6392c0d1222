"""docs/operating.md names only what is there: requests that are accepted, errors, steps, flags."""

import json
import re

import pytest
from pydantic import BaseModel, ValidationError

from api.ops import RedriveRequest, ReviewRequest
from domain.errors import ContradictionError, NotServed, TransientError, names_under
from domain.intake import request_problem
from domain.keys import PARKING, Step
from domain.order import DEAD_RUN
from domain.reconciliation import FindingKind
from tests.imports import ROOT
from workflows.names import SEARCH_ATTRIBUTES, Queue
from workflows.order import OrderWorkflow

TEXT = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
#: Tried until they are done: nothing is parked there, and no operator has to know of them.
OWN_WRITES = {Step.RECORD_STATUS, Step.RECORD_DECISION, Step.OPEN_REFUND, Step.RECORD_REFUND}
BODIES = re.findall(r"/(redrive|review) .*\n +-d '([^']+)'", TEXT)


def test_each_request_that_it_shows_is_one_that_the_operators_port_takes() -> None:
    models: dict[str, type[BaseModel]] = {"redrive": RedriveRequest, "review": ReviewRequest}
    assert {route for route, _ in BODIES} == set(models)
    for route, body in BODIES:
        models[route].model_validate(json.loads(body))


def test_every_error_that_can_park_an_order_is_explained() -> None:
    roots = {"OrderError", "ContradictionError", "TransientError"}
    parking = names_under(ContradictionError) | names_under(TransientError) | {NotServed.__name__}
    assert {name for name in parking - roots if f"`{name}`" not in TEXT} == set()


@pytest.mark.parametrize("step", [step for step in Step if step not in OWN_WRITES])
def test_every_step_that_an_order_can_be_parked_at_is_in_the_table_of_actions(step: Step) -> None:
    asked_only = {Step.SCREEN_ORDER, Step.READ_PAYMENT, Step.ABANDON_PAYMENT, Step.PARK_STEP, Step.CLOSE_PARK}
    told = f"`{step}`" in TEXT or (step.startswith("release_") and "`release_…`" in TEXT)
    assert told is (step not in asked_only)
    assert told is (step in PARKING)


@pytest.mark.parametrize("step", ["dance", "park_step", "record_status", "screen_order", ["open_order"], None])
def test_a_step_where_nothing_can_be_parked_is_answered_with_those_where_it_can(step: object) -> None:
    with pytest.raises(ValidationError) as refusal:
        RedriveRequest.model_validate({"step": step, "action": "retry", "reason": "ticket"})
    (error,) = request_problem(refusal.value).errors
    assert (error.field, error.problem) == ("step", f"one of {', '.join(PARKING)}")
    assert RedriveRequest.model_json_schema()["properties"]["step"]["enum"] == list(PARKING)


def test_everything_that_the_guard_can_find_is_explained() -> None:
    assert [kind for kind in FindingKind if f"`{kind}`" not in TEXT] == []
    assert f"`{DEAD_RUN}`" in TEXT


def test_a_run_is_started_anew_under_the_names_that_it_has() -> None:
    assert f"--type {OrderWorkflow.__name__} --task-queue {Queue.ORDERS} " in TEXT
    assert "ParkedStep" in {key.name for key in SEARCH_ATTRIBUTES}
