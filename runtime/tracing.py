"""Tracing, when OTEL_EXPORTER_OTLP_ENDPOINT says where traces go. Off, nothing of it is imported."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from temporalio.plugin import SimplePlugin

from adapters.trace_marks import listen
from adapters.tracing import use
from runtime.settings import Settings

#: A batch of spans is given up after this long, tries included: a collector that is down must not hold up a stop.
EXPORT_SECONDS = 3


@asynccontextmanager
async def tracing(settings: Settings, process: str, database_url: str) -> AsyncIterator[Sequence[SimplePlugin]]:
    """Traces until the block ends; gives the plugins of the process's Temporal client. Once a process.

    `database_url`: where the processes tell each other which traces are kept whole. The exporter takes headers
    and the like from OpenTelemetry's own variables.
    """
    if settings.otel_exporter_otlp_endpoint is None:
        yield []
        return
    # Not needed, and slow to import, where traces are off.
    from opentelemetry import trace  # noqa: PLC0415
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    from temporalio.contrib.opentelemetry import OpenTelemetryPlugin, create_tracer_provider  # noqa: PLC0415

    from runtime.spans import KeptTraces, OrderIds, OrderTracer  # noqa: PLC0415

    endpoint = settings.otel_exporter_otlp_endpoint.rstrip("/") + "/v1/traces"
    kept = KeptTraces(
        BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_SECONDS)),
        settings.otel_traces_sampler_arg,
    )
    named = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": f"orders-{process}"}
    provider = create_tracer_provider(resource=Resource.create(named), shutdown_on_exit=False, id_generator=OrderIds())
    provider.add_span_processor(kept)
    trace.set_tracer_provider(provider)
    use(OrderTracer())
    listening = asyncio.create_task(listen(database_url, kept.keep), name="traces-listener")
    try:
        yield [OpenTelemetryPlugin(add_temporal_spans=True)]
    finally:
        use(None)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await asyncio.to_thread(provider.shutdown)
