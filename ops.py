"""The operator's command line."""

import json
from typing import Annotated

import typer
from temporalio.common import WorkerDeploymentVersion

from runtime.app import run_app
from runtime.deployment import Build, known_builds, make_current
from runtime.entry import run_entry
from runtime.logs import configure_logs
from runtime.proof import prove as prove_books
from runtime.settings import load_settings
from runtime.temporal import connect
from terminal.app import screen
from terminal.books import as_document, show_books
from terminal.operator.decide import cancel, refund, review
from terminal.operator.holds import hold, release, status
from terminal.operator.order import show
from terminal.operator.parked import parked
from terminal.operator.redrive import redrive
from terminal.reconciliation import reconcile, report
from terminal.shop import known_order, open_shop

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="markdown",
    help="Look after the shop.",
    epilog="Settings come from the environment, `.env`, or what `make up` wrote; `.env.example` lists them.",
)


@app.callback()
def operator() -> None:
    """Look after the shop."""


@app.command()
def prove(
    order: Annotated[str | None, typer.Argument(metavar="ORDER", help="Only what is about this order.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Prove the books: that no money, stock, points or credit is lost or made from nothing. Reads only.

    * `.venv/bin/python ops.py prove`
    * `.venv/bin/python ops.py prove b3peowq5n7rtbghveapkno2l`

    *Always* lines hold at every instant; *settled* lines compare closed orders with the gateway's and the courier's
    own books; *conservation* says that nothing accepted is lost. Steps that an operator waived are listed and do not
    count. Exit code: **0** all lines hold, **1** one does not, with the order named, or a server does not answer.
    """
    run_entry(lambda: _prove(order, as_json))


async def _prove(order_id: str | None, as_json: bool) -> int:
    settings = load_settings()
    configure_logs("ERROR")
    async with open_shop(settings) as shop:
        if order_id is not None:
            await known_order(shop.database, order_id)
        books = await prove_books(settings, shop.client, order_id)
    if as_json:
        print(json.dumps(as_document(books), indent=2))  # noqa: T201 (what was asked for)
    else:
        show_books(screen(), books)
    return 0 if books.hold else 1


@app.command()
def deploy(
    build: Annotated[str | None, typer.Argument(metavar="BUILD", help="WORKER_BUILD_ID of running workers.")] = None,
) -> None:
    """Sends new orders to a build of the workers; without BUILD, shows the builds and what is open on each.

    * `.venv/bin/python ops.py deploy 2026-11-30`
    * `.venv/bin/python ops.py deploy`

    Orders end on the build that began them: keep its workers running while it has open ones. Waits up to a minute until
    workers of BUILD serve every queue. Exit code: **0** it is current, **1** its workers are not there, or the server
    does not answer.
    """
    run_entry(lambda: _deploy(build))


async def _deploy(build: str | None) -> int:
    settings = load_settings()
    configure_logs("ERROR")
    client = await connect(settings)
    if build is not None:
        await make_current(client, WorkerDeploymentVersion(settings.deployment_name, build))
    builds = await known_builds(client, settings.deployment_name)
    for known in builds:
        screen().print(_told(known), markup=False)
    if not builds:
        screen().print("no worker has a build id: each takes whatever comes", markup=False)
    return 0


def _told(build: Build) -> str:
    open_ones = f"{build.open_workflows} open"
    if build.current:
        return f"{build.build_id}  takes new orders, {open_ones}"
    return f"{build.build_id}  {open_ones}: " + ("keep its workers" if build.open_workflows else "its workers may stop")


for command in (status, parked, show, redrive, review, cancel, refund, hold, release, reconcile, report):
    app.command()(command)


if __name__ == "__main__":
    run_app(app, needs_words=True)
