"""Runs of the guard in a shop, and what they found."""

from uuid import uuid4

from adapters.reconciliation.runs import read_report
from domain.reconciliation import Finding, FindingKind, ReconciliationInput, Report, RunKind
from tests.shop import Shop
from workflows.names import Queue
from workflows.reconciliation import ReconciliationWorkflow


async def reconcile(shop: Shop, kind: RunKind = RunKind.GUARD) -> Report:
    """One run that looks at everything that stands still now, however short a time."""
    result = await shop.client.execute_workflow(
        ReconciliationWorkflow.run,
        ReconciliationInput(kind=kind, grace_seconds=0),
        id=f"{kind}-{uuid4()}",
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
