"""A whole shop in one process: real database, Temporal server, simulators, API and workers; nothing is a mock.

Tests share one shop and keep apart by ids: each makes its own products and customers.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Interceptor

from adapters.database import Database
from adapters.loyalty import CustomerLevel, put_customer
from adapters.orders import read_results
from adapters.stock import StockLevel, put_stock
from api.app import build_apps
from api.deps import Deps
from api.metrics import Metrics
from api.starts import DirectStarts
from domain.messages import OrderResult
from domain.policy import OrderPolicy
from domain.views import OrderView
from runtime.settings import Settings
from runtime.workers import running_workers
from simulators import Config, Simulators
from tests.baskets import Basket, fresh
from tests.gates import Gates
from tests.ledgers import Ledgers
from tests.polling import eventually
from workflows.names import Queue, order_workflow_id
from workflows.order import OrderWorkflow

SECRET = "whsec_of_the_tests"

#: Real waits are short; what is long is the workflow's own time, which the test server skips.
QUICK = OrderPolicy(
    first_wait_seconds=0.02,
    stock_first_wait_seconds=0.02,
    undo_first_wait_seconds=0.02,
    longest_wait_seconds=0.1,
    capture_longest_wait_seconds=0.04,
    hold_longest_look_seconds=14_400,
    step_timeout_seconds=2,
    several_requests_timeout_seconds=2,
)

Http = TestClient[web.Request, web.Application]


@dataclass
class Shop(Ledgers):
    """The shop's doors, and the books behind them."""

    client: Client
    settings: Settings
    shopper: Http
    operator: Http
    gates: Gates
    #: Sagas that start in such a block live by the real clock: no wait of theirs is skipped.
    standing_still: Callable[[], AbstractContextManager[None]]

    async def basket(self, *, on_hand: int = 5, points: int = 500, credit: int = 0, suffix: str = "") -> Basket:
        """Fresh products and a fresh customer, whose id ends in `suffix`."""
        basket = Basket(fresh("A"), fresh("B"), fresh("customer") + suffix, on_hand, points, credit)
        for sku, price in ((basket.a, 3000), (basket.b, 2000)):
            await self.put_stock(sku, price, on_hand)
        await put_customer(
            self.database, basket.customer, CustomerLevel(points=points, store_credit={"EUR": credit}), "tests"
        )
        return basket

    async def put_stock(
        self, sku: str, price: int, on_hand: int, warehouse: str = "main", currency: str = "EUR"
    ) -> None:
        """Pieces of one SKU in one warehouse."""
        level = StockLevel(warehouse=warehouse, on_hand=on_hand, unit_price=price, currency=currency)
        await put_stock(self.database, sku, level, "tests")

    async def order(self, document: dict[str, Any], key: str | None = None) -> str:
        """Places an order as a shopper does; returns its id."""
        headers = {"Idempotency-Key": key or fresh("key")}
        answer = await self.shopper.post("/orders", json=document, headers=headers)
        body = await answer.json()
        assert answer.status in {200, 202}, body
        return str(body["order_id"])

    async def place(self, basket: Basket, **changes: Any) -> str:
        """Places the basket's own order, whose id is `basket.order_id`."""
        return await self.order(basket.document(**changes), basket.key)

    async def place_in_real_time(self, basket: Basket, **changes: Any) -> str:
        """As `place`, for an order whose waits are not skipped (until the environment's `fast_forward`)."""
        with self.standing_still():
            order_id = await self.place(basket, **changes)
            await self.started(order_id)
        return order_id

    def saga(self, order_id: str) -> WorkflowHandle[OrderWorkflow, OrderResult]:
        """The order's workflow."""
        return self.client.get_workflow_handle_for(OrderWorkflow.run, order_workflow_id(order_id))

    async def started(self, order_id: str) -> WorkflowHandle[OrderWorkflow, OrderResult]:
        """The order's workflow, once it is there."""
        handle = self.saga(order_id)

        async def look() -> bool:
            try:
                await handle.describe()
            except Exception:
                return False
            return True

        await eventually(look)
        return handle

    async def ended(self, order_id: str) -> OrderView:
        """The order after its saga has ended."""
        handle = await self.started(order_id)
        await handle.result()
        return await self.view(order_id)

    async def reaches(self, order_id: str, status: str) -> OrderView:
        """The order, once it has this status."""

        async def look() -> OrderView | None:
            if (await read_results(self.database, [order_id]))[order_id].status != status:
                return None
            view = await self.view(order_id)
            return view if view.status == status else None

        view = await eventually(look)
        assert view is not None
        return view

    async def cancel(self, order_id: str) -> tuple[int, dict[str, Any]]:
        """Asks for a cancel as the shopper does."""
        return await _answer(self.shopper, f"/orders/{order_id}/cancel", {})

    async def redrive(
        self, order_id: str, step: str, action: str, reason: str = "a test", *, item: str | None = None
    ) -> int:
        """An operator's word on a parked step; the answer's status."""
        body = {"step": step, "action": action, "reason": reason, "item": item}
        return (await _answer(self.operator, f"/ops/orders/{order_id}/redrive", body))[0]

    async def retry(self, order_id: str, step: str) -> None:
        """An operator's retry of a parked step that a payment event may be moving already."""

        async def look() -> bool:
            accepted = await self.redrive(order_id, step, "retry") == 202
            return accepted or step not in [item.step for item in (await self.view(order_id)).needs_review]

        await eventually(look)

    async def review(self, order_id: str, decision: str) -> int:
        """A reviewer's decision; the answer's status."""
        body = {"decision": decision, "reason": "a test"}
        return (await _answer(self.operator, f"/ops/orders/{order_id}/review", body))[0]

    async def fault(self, op: str, mode: str, *, on: str = "gateway", **more: Any) -> str:
        """Posts a fault to one of the simulators; returns its id."""
        async with self.http.post(f"{self.base(on)}/_sim/faults", json={"op": op, "mode": mode, **more}) as answer:
            assert answer.ok, await answer.text()
            return str((await answer.json())["id"])

    async def heal(self, fault_id: str, *, on: str = "gateway") -> None:
        """Ends a fault."""
        async with self.http.delete(f"{self.base(on)}/_sim/faults/{fault_id}") as answer:
            assert answer.ok, await answer.text()

    async def sim(self, path: str, *, on: str = "gateway", **body: Any) -> dict[str, Any]:
        """A control route of a simulator."""
        async with self.http.post(f"{self.base(on)}/_sim/{path}", json=body) as answer:
            assert answer.ok, await answer.text()
            found: dict[str, Any] = await answer.json()
            return found


async def _answer(door: Http, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """The answer to a request, which is sent again as long as the saga is too busy for one (503)."""
    headers = {"Idempotency-Key": fresh("key")}

    async def ask() -> tuple[int, dict[str, Any]] | None:
        answer = await door.post(path, json=body, headers=headers)
        return None if answer.status == 503 else (answer.status, await answer.json(content_type=None))

    found = await eventually(ask)
    assert found is not None
    return found


@asynccontextmanager
async def open_shop(
    client: Client,
    database: Database,
    database_url: str,
    policy: OrderPolicy = QUICK,
    standing_still: Callable[[], AbstractContextManager[None]] = nullcontext,
    parties: Mapping[str, str] | None = None,
    gateway_url: str | None = None,
    provider_timeout_seconds: float = 0.5,
    interceptors: Sequence[Interceptor] = (),
    queues: Collection[Queue] = tuple(Queue),
) -> AsyncIterator[Shop]:
    """The shop is open until the block ends. `standing_still` comes from an environment that skips time.

    `parties`: each works by its own database role, which its URL names. `gateway_url`: its payments go there, and none
    to the simulator. `interceptors` stand inside the gates. `queues` that are left out have no worker.
    """
    gates = Gates()
    async with AsyncExitStack() as stack:
        simulators = await stack.enter_async_context(Simulators(Config(settle_seconds=0)))
        settings = Settings(
            _env_file=None,
            database_url=database_url,
            stripe_api_key="sk_test_of_the_tests",
            stripe_api_base=gateway_url or simulators.gateway_url,
            stripe_webhook_secrets=(SECRET,),
            courier_api_base=simulators.courier_url,
            courier_webhook_secrets=(SECRET,),
            fraud_api_base=simulators.fraud_url,
            provider_timeout_seconds=provider_timeout_seconds,
            **{f"database_url_{party}": url for party, url in (parties or {}).items()},  # type: ignore[arg-type]
        )
        metrics = Metrics(reading_seconds=0)
        roles = [database] * 3
        if parties:
            roles = [Database(parties[name], application="api") for name in ("orders", "inventory", "loyalty")]
            for role in roles:
                stack.push_async_callback(role.close)
        starts = DirectStarts(roles[0], client, metrics)
        apps = build_apps(Deps(roles[0], client, settings, metrics, starts, *roles[1:]))
        shopper, operator = [
            await stack.enter_async_context(TestClient(TestServer(app))) for app in (apps.shopper, apps.operator)
        ]
        stack.push_async_callback(starts.close)
        for endpoint, path in ((simulators.gateway_webhook, "stripe"), (simulators.courier_webhook, "courier")):
            endpoint.url, endpoint.secret = str(shopper.make_url(f"/webhooks/{path}")), SECRET
        http = await stack.enter_async_context(aiohttp.ClientSession())
        await stack.enter_async_context(running_workers(client, settings, queues, policy, [gates, *interceptors]))
        yield Shop(database, simulators, http, client, settings, shopper, operator, gates, standing_still)
