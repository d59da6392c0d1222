"""`ops.py redrive`: one word to one parked step, or to many."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer
from rich.console import Console

from adapters.parked import ParkedItem, Wanted, read_parked
from domain.keys import Step, actions_at
from domain.messages import RedriveStep
from domain.order import RedriveAction
from events.requests import redrive as send_redrive
from runtime.entry import run_entry
from runtime.logs import configure_logs
from runtime.settings import load_settings
from terminal.app import OPS, BadInput, screen
from terminal.operator.batches import CauseResult, Outcome, Redriver
from terminal.operator.flags import Actor, checked_actor, checked_reason
from terminal.operator.parked import ErrorFlag, KindFlag, OlderFlag, StepFlag, show_parked, wanted
from terminal.shop import Shop, known_order, open_database, open_shop

#: Half of them broken: ten that are broken all by chance come once in a thousand times.
FIRST_BATCH = 10
WAIT_SECONDS = 120.0


@dataclass(frozen=True)
class Word:
    """What is said to the parked steps, and in what portions."""

    action: RedriveAction
    actor: str
    reason: str
    first: int
    wait_seconds: float


def redrive(
    order: Annotated[str | None, typer.Argument(metavar="ORDER", help="Only this order.")] = None,
    *,
    step: StepFlag = None,
    item: Annotated[str | None, typer.Option(metavar="ITEM", help="Only this shipment's warehouse.")] = None,
    kind: KindFlag = None,
    error: ErrorFlag = None,
    older_than: OlderFlag = None,
    action: Annotated[RedriveAction, typer.Option(help="What the parked step should do.")] = RedriveAction.RETRY,
    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Why: it stays in the timeline. No personal data.")
    ] = None,
    actor: Actor = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many.")] = None,
    first: Annotated[int, typer.Option(min=1, help="Size of the first batch of each cause.")] = FIRST_BATCH,
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long a batch may take to show what became of it.")
    ] = WAIT_SECONDS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be redriven.")] = False,
) -> None:
    """Tell parked steps to retry, to compensate (undo the order) or to skip: of one order, or of many by their cause.

    * `.venv/bin/python ops.py redrive ORDER --reason 'the gateway is back'`
    * `.venv/bin/python ops.py redrive --step capture_payment --older-than 1h --dry-run`
    * `.venv/bin/python ops.py redrive --step capture_payment --error GatewayProtocolError --reason 'ticket 4711'`
    * `.venv/bin/python ops.py redrive ORDER --step cancel_shipment --item berlin --action skip --reason 'by phone'`

    `ops.py show ORDER` tells beforehand what each word does. Of many, each is redriven once: a few at first, then more.
    What comes back with its error is not tried again, and when a whole batch of one cause comes back, the rest of that
    cause is left alone. Run it again to go on: it begins with those that were not tried.

    Exit code: **0** all went on, **3** refused, with the reason, **4** some are parked still, **1** a server does not
    answer, **2** wrong flags.
    """

    async def main() -> int:
        which = replace(wanted(step, kind, error, older_than, item), order_id=order)
        if not any((order, step, kind, error, older_than)):
            raise BadInput("name an ORDER, or which ones: --step, --kind, --error, --older-than")
        if dry_run:
            return await _dry_run(which, action, limit)
        if reason is None:
            raise BadInput("--reason: say why, it stays in the timeline")
        return await _redrive(which, Word(action, checked_actor(actor), checked_reason(reason), first, wait), limit)

    run_entry(main)


async def _dry_run(which: Wanted, action: RedriveAction, limit: int | None) -> int:
    settings = load_settings()
    configure_logs("ERROR")
    async with open_database(settings) as database:
        if which.order_id is not None:
            await known_order(database, which.order_id)
        items = _allowed(await read_parked(database, which), action)[:limit]
    show_parked(screen(), items, limit or len(items))
    screen().print(f"dry run: {action} would be sent to {len(items)}, nothing was", markup=False)
    return 0


async def _redrive(which: Wanted, word: Word, limit: int | None) -> int:
    settings = load_settings()
    configure_logs("ERROR")
    async with open_shop(settings) as shop:
        if which.order_id is not None:
            await known_order(shop.database, which.order_id)
        items = _allowed(await read_parked(shop.database, which), word.action)[:limit]
        results = await redrive_all(shop, items, word, screen())
    return exit_code(results)


def _allowed(items: Sequence[ParkedItem], action: RedriveAction) -> list[ParkedItem]:
    """Raises BadInput where one of the steps cannot do that."""
    for item in items:
        if action not in (allowed := actions_at(item.step)):
            raise BadInput(f"--action: {item.step} can only {', '.join(sorted(allowed))} (narrow it with --step)")
    return list(items)


async def redrive_all(shop: Shop, items: Sequence[ParkedItem], word: Word, console: Console) -> list[CauseResult]:
    """Redrives them in batches and tells how it goes. Raises DatabaseUnavailable."""

    async def send(item: ParkedItem) -> None:
        message = RedriveStep(
            step=Step(item.step), action=word.action, actor=word.actor, reason=word.reason, item=item.item
        )
        await send_redrive(shop.client, item.order_id, item.intent_id, message)

    def tell(result: CauseResult) -> None:
        console.print(_line(result), markup=False, soft_wrap=True)

    if not items:
        console.print("nothing like that is parked")
    driver = Redriver(shop.database, send, tell, first=word.first, wait_seconds=word.wait_seconds)
    results = await driver.run(items)
    for result in results:
        for line in _rest(result):
            console.print(line, markup=False, soft_wrap=True)
    return results


def _line(result: CauseResult) -> str:
    counts = [f"{number} {outcome}" for outcome in Outcome if (number := result.count(outcome))]
    left = f", {len(result.left)} to go" if result.left else ""
    return f"{result.cause}: {', '.join(counts)}{left}"


def _rest(result: CauseResult) -> list[str]:
    """What is still parked, and why it was left."""
    lines = [f"refused {number} ×: {words}" for words, number in result.words.items()]
    if result.left:
        lines.append(f"stopped at {result.cause}: a whole batch came to nothing, {len(result.left)} were not tried")
    back = [item.order_id for item, outcome in result.outcomes.items() if outcome is Outcome.CAME_BACK]
    if back:
        more = f" and {len(back) - 5} more" if len(back) > 5 else ""
        lines.append(f"came back from {result.cause}: {', '.join(back[:5])}{more}: see {OPS} show")
    return lines


def exit_code(results: Sequence[CauseResult]) -> int:
    """0: all went on. 3: all were refused. 4: some are parked still."""
    outcomes = {outcome for result in results for outcome in result.outcomes.values()}
    if all(result.moved_all for result in results):
        return 0
    return 3 if outcomes == {Outcome.REFUSED} else 4
