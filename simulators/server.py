"""All simulators in one process: starts their servers, and stops them without losing what they know."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web
from aiosmtpd.smtp import SMTP

from simulators.bulk import add_bulk
from simulators.calls import Party, add_provider
from simulators.clock import Clock
from simulators.control import add_clock, add_faults, add_ledger, bad_request, not_found, read_object
from simulators.courier import STATUSES, Courier
from simulators.disputes import DisputeBook
from simulators.faults import FaultTable
from simulators.fraud_scorer import FraudScorer
from simulators.gateway_control import GatewayControl, add_webhook_control
from simulators.mail_sink import MailSink
from simulators.payment_gateway import IntentBook
from simulators.refunds import RefundBook
from simulators.store import Store
from simulators.stripe_api import StripeApi
from simulators.webhooks import Endpoint, Pace, Webhooks


class PortTaken(Exception):
    """A port cannot be listened on; the message names it and the server that wanted it."""


@dataclass
class Ports:
    """Ports to listen on; 0 takes a free one, and after the start the number stands here."""

    gateway: int = 0
    courier: int = 0
    fraud: int = 0
    smtp: int = 0
    mail: int = 0


@dataclass
class Config:
    """What the simulators are told at start. `settle_seconds`: how long the issuer thinks about a payment."""

    ports: Ports = field(default_factory=Ports)
    host: str = "127.0.0.1"
    data: Path | None = None
    gateway_webhook: Endpoint = field(default_factory=lambda: Endpoint("Stripe-Signature"))
    courier_webhook: Endpoint = field(default_factory=lambda: Endpoint("Courier-Signature"))
    settle_seconds: float = 0.05
    pace: Pace = field(default_factory=Pace)


class Simulators:
    """`async with Simulators(config) as simulators:` runs all servers in the current event loop.

    The endpoints' `url` and `secret` (`gateway_webhook`, `courier_webhook`) may be set at any time.
    """

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or Config()
        self.gateway_webhook = self.config.gateway_webhook
        self.courier_webhook = self.config.courier_webhook
        self.faults = FaultTable()
        self._runners: list[web.AppRunner] = []
        self._smtp: asyncio.Server | None = None
        self._settling: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listens on all ports. Raises PortTaken, with nothing left listening."""
        config = self.config
        self._store = Store(config.data)
        self.clock = Clock(self._store)
        self._build()
        try:
            await self._gateway_webhooks.start()
            await self._courier_webhooks.start()
            for name, app in self._apps().items():
                setattr(config.ports, name, await self._serve(app, name))
            config.ports.smtp = await self._serve_mail()
        except BaseException:
            await self.stop()
            raise
        for intent_id in self._intents.unsettled():
            self._settle_later(intent_id)

    async def stop(self) -> None:
        """Stops listening. Held calls end without effect; undelivered events are kept for the next start."""
        if self._smtp is not None:
            self._smtp.close()
        for runner in self._runners:
            await runner.cleanup()
        self._runners.clear()
        tasks = [*self._settling, *self._gateway.underway, *self._courier.underway, *self._fraud.underway]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._gateway_webhooks.stop()
        await self._courier_webhooks.stop()
        self._store.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def gateway_url(self) -> str:
        """Base address for the Stripe SDK."""
        return self._url("http", self.config.ports.gateway)

    @property
    def courier_url(self) -> str:
        """Base address of the courier."""
        return self._url("http", self.config.ports.courier)

    @property
    def fraud_url(self) -> str:
        """Base address of the fraud scorer."""
        return self._url("http", self.config.ports.fraud)

    @property
    def mail_url(self) -> str:
        """Base address of the mail sink's ledger."""
        return self._url("http", self.config.ports.mail)

    @property
    def smtp_url(self) -> str:
        """Where mail is handed in."""
        return self._url("smtp", self.config.ports.smtp)

    def _url(self, scheme: str, port: int) -> str:
        return f"{scheme}://{self.config.host}:{port}"

    def _build(self) -> None:
        store, clock, config = self._store, self.clock, self.config
        self._gateway_webhooks = Webhooks(
            "gateway", store, clock, faults=self.faults, endpoint=self.gateway_webhook, pace=config.pace
        )
        self._courier_webhooks = Webhooks(
            "courier", store, clock, faults=self.faults, endpoint=self.courier_webhook, pace=config.pace
        )

        def publish(event_type: str, about: dict[str, object], order_id: str | None) -> None:
            self._gateway_webhooks.publish(event_type, about, order_id)

        self._intents = IntentBook(store, clock, publish, self._settle_later)
        refunds = RefundBook(store, clock, publish, self._intents)
        self._gateway = StripeApi(store, clock, self._intents, refunds, DisputeBook(store, clock))
        self._courier = Courier(store, clock, self._courier_webhooks)
        self._fraud = FraudScorer(store, clock)
        self._mail = MailSink(store, clock)

    def _apps(self) -> dict[str, web.Application]:
        gateway = self._provider(self._gateway)
        add_ledger(gateway, lambda request: self._gateway.ledger(request.query.get("order_id")))
        add_webhook_control(gateway, self._gateway_webhooks)
        GatewayControl(self._gateway, self._gateway_webhooks).add_to(gateway)
        add_bulk(gateway, self._store, self.clock, "intents")
        courier = self._provider(self._courier)
        add_ledger(courier, lambda request: self._courier.ledger(request.query.get("order_id")))
        add_webhook_control(courier, self._courier_webhooks)
        courier.router.add_post("/_sim/shipments/{id}/advance", self._advance_shipment)
        add_bulk(courier, self._store, self.clock, "shipments")
        fraud = self._provider(self._fraud)
        add_ledger(fraud, lambda request: self._fraud.ledger())
        mail = self._controlled("mail")
        add_ledger(mail, lambda request: self._mail.ledger())
        return {"gateway": gateway, "courier": courier, "fraud": fraud, "mail": mail}

    def _provider(self, party: Party) -> web.Application:
        app = self._controlled(party.name)
        add_provider(app, party, self.faults)
        return app

    def _controlled(self, name: str) -> web.Application:
        app = web.Application(client_max_size=8 * 2**20)
        add_faults(app, self.faults, name)
        add_clock(app, self.clock, self._advanced)
        return app

    def _advanced(self) -> None:
        with self._store.transaction():
            self._intents.expire_holds()

    async def _advance_shipment(self, request: web.Request) -> web.Response:
        status = (await read_object(request)).get("status")
        if status not in STATUSES:
            raise bad_request(f"status is one of {', '.join(STATUSES)}")
        shipment = self._courier.advance(request.match_info["id"], status)
        if shipment is None:
            raise not_found("no such parcel")
        return web.json_response(shipment)

    def _settle_later(self, intent_id: str) -> None:
        async def settle() -> None:
            await asyncio.sleep(self.config.settle_seconds)
            self._intents.settle(intent_id)

        task = asyncio.create_task(settle())
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def _serve(self, app: web.Application, name: str) -> int:
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        self._runners.append(runner)
        await runner.setup()
        port = getattr(self.config.ports, name)
        with _named(name, port):
            await web.TCPSite(runner, self.config.host, port).start()
        return int(runner.addresses[0][1])

    async def _serve_mail(self) -> int:
        def protocol() -> SMTP:
            return SMTP(self._mail, enable_SMTPUTF8=True, hostname="simulators", ident="mail sink")

        port = self.config.ports.smtp
        with _named("smtp", port):
            self._smtp = await asyncio.get_running_loop().create_server(protocol, self.config.host, port)
        return int(self._smtp.sockets[0].getsockname()[1])


@contextmanager
def _named(name: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PortTaken(f"port {port} ({name}) cannot be listened on: {error.strerror}") from None
