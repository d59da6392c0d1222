"""A collector of traces: a real HTTP server that takes what the exporter sends, and keeps it."""

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import TestServer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from runtime.spans import trace_id_of


@dataclass
class Collector:
    """Spans by the order's trace that they belong to."""

    url: str = ""
    spans: dict[int, list[Span]] = field(default_factory=lambda: defaultdict(list))

    def of(self, order_id: str) -> list[Span]:
        """What has come of the order's trace."""
        return self.spans[trace_id_of(order_id)]

    async def take(self, request: web.Request) -> web.Response:
        """The route of OTLP over HTTP."""
        told = ExportTraceServiceRequest.FromString(await request.read())
        for resource in told.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.spans[int.from_bytes(span.trace_id)].append(span)
        return web.Response()


@asynccontextmanager
async def collector() -> AsyncIterator[Collector]:
    """Listens until the block ends."""
    one = Collector()
    app = web.Application()
    app.router.add_post("/v1/traces", one.take)
    async with TestServer(app) as server:
        one.url = str(server.make_url("")).rstrip("/")
        yield one
