"""The two applications of the API process: the shopper's port and the operator's."""

from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web

from api import health, openapi, ops, orders, refunds, webhooks
from api.bodies import LARGEST_BODY_BYTES
from api.deps import DEPS, Deps
from api.edge import edge
from api.operations import Operation

SHOPPER_OPERATIONS = (*orders.OPERATIONS, *webhooks.OPERATIONS, *health.OPERATIONS)
OPERATOR_OPERATIONS = (*ops.OPERATIONS, *refunds.OPERATIONS, *health.OPERATIONS, health.METRICS)


@dataclass(frozen=True)
class Apps:
    """One application a port: what belongs to the operator does not exist on the shopper's."""

    shopper: web.Application
    operator: web.Application


def build_apps(needs: Deps) -> Apps:
    """Both applications on the same dependencies. They close nothing: that is up to who made the dependencies."""
    return Apps(
        shopper=_build(needs, SHOPPER_OPERATIONS, "Orders"),
        operator=_build(needs, OPERATOR_OPERATIONS, "Orders: operator"),
    )


def _build(needs: Deps, operations: Sequence[Operation], title: str) -> web.Application:
    app = web.Application(middlewares=[edge], client_max_size=LARGEST_BODY_BYTES)
    app[DEPS] = needs
    described = openapi.document(operations, title)

    async def get_openapi(_: web.Request) -> web.Response:
        return web.json_response(described)

    app.router.add_get("/openapi.json", get_openapi, allow_head=False)
    for operation in operations:
        app.router.add_route(operation.method, operation.path, operation.handler)
    return app
