"""docs/operating.md names only what is there: requests that are accepted, findings."""

import json
import re

import pytest
from pydantic import BaseModel, ValidationError

from api.ops import RedriveRequest, ReviewRequest
from domain.intake import request_problem
from domain.keys import PARKING
from domain.order import DEAD_RUN
from domain.reconciliation import FindingKind
from tests.imports import ROOT
from workflows.names import SEARCH_ATTRIBUTES

TEXT = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
BODIES = re.findall(r"/(redrive|review) .*\n +-d '([^']+)'", TEXT)


def test_each_request_that_it_shows_is_one_that_the_operators_port_takes() -> None:
    models: dict[str, type[BaseModel]] = {"redrive": RedriveRequest, "review": ReviewRequest}
    assert {route for route, _ in BODIES} == set(models)
    for route, body in BODIES:
        models[route].model_validate(json.loads(body))


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


def test_what_is_parked_is_found_in_the_web_ui_by_an_attribute_that_orders_have() -> None:
    assert "ParkedStep IS NOT NULL" in TEXT
    assert "ParkedStep" in {key.name for key in SEARCH_ATTRIBUTES}
