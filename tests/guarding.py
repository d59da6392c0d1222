"""Runs of the guard in a shop, and what they found."""

from uuid import uuid4

from adapters.reconciliation.runs import read_report
from domain.keys import Step
from domain.reconciliation import Finding, FindingKind, ReconciliationInput, Report, RunKind
from tests.baskets import Basket
from tests.gates import Gate
from tests.shop import Shop
from workflows.names import Queue
from workflows.reconciliation import ReconciliationWorkflow


async def reconcile(shop: Shop, kind: RunKind = RunKind.GUARD, run_id: str | None = None) -> Report:
    """One run that looks at everything that stands still now, however short a time."""
    result = await shop.client.execute_workflow(
        ReconciliationWorkflow.run,
        ReconciliationInput(kind=kind, grace_seconds=0),
        id=run_id or f"{kind}-{uuid4()}",
        task_queue=Queue.ORDERS,
    )
    async with shop.database.begin() as connection:
        report = await read_report(connection, result.run_id)
    assert report is not None
    assert report.finished_at is not None
    return report


def about(report: Report, *subjects: str) -> list[Finding]:
    """What was found about these."""
    return [finding for finding in report.findings if finding.subject in subjects]


def kinds(report: Report, *subjects: str) -> list[FindingKind]:
    """The kinds of what was found about these."""
    return [finding.kind for finding in about(report, *subjects)]


async def terminated(shop: Shop, basket: Basket, step: Step, *, after: bool = False, **changes: object) -> Gate:
    """The order's run, ended by hand while this step is under way or its answer is."""
    gate = shop.gates.hold(basket.order_id, step, after=after)
    await shop.place(basket, **changes)
    await gate.reached()
    await shop.saga(basket.order_id).terminate("a test")
    return gate


async def book(shop: Shop, reference: str) -> None:
    """A booking lands at the courier."""
    body = {"reference": reference, "warehouse": "main", "address": {"postcode": "SW1Y 4JH", "country": "GB"}}
    async with shop.http.post(f"{shop.base('courier')}/shipments", json=body) as answer:
        assert answer.status == 201, await answer.text()
