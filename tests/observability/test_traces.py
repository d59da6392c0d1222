"""One trace an order, from its acceptance to its events; none while tracing is off."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest_asyncio
from opentelemetry import trace
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from temporalio.contrib.opentelemetry import ReplaySafeTracerProvider
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer

from runtime.settings import Settings
from runtime.spans import root_span_id_of, trace_id_of
from runtime.tracing import tracing
from runtime.workers import WORKFLOWS, workflow_runner
from tests.baskets import Basket
from tests.conftest import MakeDatabase
from tests.imports import ROOT
from tests.observability.collector import Collector, collector
from tests.polling import eventually
from tests.shop import Shop
from tests.workflows.skipping import shop_on, start_environment

#: Half of all orders are kept anyway; which half, their ids say.
SHARE = 0.5


@dataclass
class Traced:
    """A shop that traces, and where its traces go."""

    shop: Shop
    collector: Collector

    async def basket(self, *, kept: bool) -> Basket:
        """A basket whose order is among those that are kept anyway, or is not."""
        while True:
            basket = await self.shop.basket()
            if (trace_id_of(basket.order_id) & (2**64 - 1) < SHARE * 2**64) is kept:
                return basket

    async def until_told(self, order_id: str, name: str) -> list[Span]:
        """The spans that came of the order, once this one is among them."""

        async def look() -> bool:
            # In a thread: the collector listens in this one.
            await asyncio.to_thread(_flush)
            return any(span.name == name for span in self.collector.of(order_id))

        await eventually(look)
        return self.collector.of(order_id)


def _flush() -> None:
    provider = trace.get_tracer_provider()
    assert isinstance(provider, ReplaySafeTracerProvider)
    provider.force_flush()


@pytest_asyncio.fixture(scope="module")
async def traced(make_database: MakeDatabase) -> AsyncIterator[Traced]:
    """An open shop. The process's tracing is on meanwhile."""
    own = await make_database()

    async def ours() -> object:
        return own

    async with collector() as kept:
        settings = Settings(_env_file=None, otel_exporter_otlp_endpoint=kept.url, otel_traces_sampler_arg=SHARE)
        async with (
            tracing(settings, "tests", own.url) as plugins,
            await start_environment(plugins=plugins) as environment,
            shop_on(environment, ours) as shop,  # type: ignore[arg-type]
        ):
            yield Traced(shop, kept)


async def test_one_trace_leads_from_the_acceptance_over_saga_providers_and_webhook_to_the_event(traced: Traced) -> None:
    basket = await traced.basket(kept=True)
    await traced.shop.place(basket)
    await traced.shop.ended(basket.order_id)
    spans = await traced.until_told(basket.order_id, "RunWorkflow:OrderWorkflow")
    names = {span.name for span in spans}
    assert names >= {
        "accept_order",
        "event OrderSubmitted",
        "start_order",
        "StartWorkflow:OrderWorkflow",
        "StartActivity:capture_payment",
        "RunActivity:capture_payment",
        "provider POST",
        "provider GET",
        "receive_webhook",
        "deliver_webhook",
        "SignalWorkflow:payment_updated",
        "HandleSignal:payment_updated",
        "RunActivity:confirm_order",
        "event OrderConfirmed",
    }
    (root,) = [span for span in spans if not span.parent_span_id]
    assert (root.name, int.from_bytes(root.span_id)) == ("accept_order", root_span_id_of(basket.order_id))
    assert {span.parent_span_id for span in spans} - {b""} <= {span.span_id for span in spans}


async def test_an_undone_order_is_kept_whole_though_its_trace_was_not_to_be_kept(traced: Traced) -> None:
    basket = await traced.basket(kept=False)
    await traced.shop.place(basket, payment_method="pm_card_chargeDeclined")
    await traced.shop.ended(basket.order_id)
    spans = await traced.until_told(basket.order_id, "RunWorkflow:OrderWorkflow")
    names = {span.name for span in spans}
    assert names >= {"accept_order", "RunActivity:reserve_stock", "RunActivity:release_stock", "event OrderCancelled"}
    assert {span.parent_span_id for span in spans} - {b""} <= {span.span_id for span in spans}


async def test_another_order_outside_the_share_is_not_sent(traced: Traced) -> None:
    basket, later = await traced.basket(kept=False), await traced.basket(kept=True)
    for one in (basket, later):
        await traced.shop.place(one)
        await traced.shop.ended(one.order_id)
    await traced.until_told(later.order_id, "RunWorkflow:OrderWorkflow")
    assert traced.collector.of(basket.order_id) == []


async def test_no_span_tells_anything_about_a_person(traced: Traced) -> None:
    basket, mark = await traced.basket(kept=True), "Zaphod"
    address = basket.document()["shipping_address"] | {"name": mark, "line1": mark}
    more = {"email": f"{mark}@example.com", "note": mark, "shipping_address": address}
    await traced.shop.fault("capture", "error", status=500, order_id=basket.order_id)
    await traced.shop.place(basket, **more)
    await traced.shop.ended(basket.order_id)
    spans = await traced.until_told(basket.order_id, "RunWorkflow:OrderWorkflow")
    assert any(span.status.message for span in spans), "one has failed"
    assert mark not in "".join(map(str, spans))


async def test_a_traced_order_is_repeated_by_a_worker_that_does_not_trace(traced: Traced) -> None:
    basket = await traced.shop.basket()
    await traced.shop.place(basket)
    await traced.shop.ended(basket.order_id)
    history = await traced.shop.saga(basket.order_id).fetch_history()
    replayer = Replayer(workflows=WORKFLOWS, workflow_runner=workflow_runner(), data_converter=pydantic_data_converter)
    await replayer.replay_workflow(history)


def test_without_an_endpoint_nothing_of_it_is_imported() -> None:
    look = "import sys, worker, api.__main__; print([name for name in sys.modules if name.startswith('opentelemetry')])"
    ran = subprocess.run([sys.executable, "-c", look], cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603
    assert ran.stdout.strip() == "[]"
