"""The whole shop on one machine: PostgreSQL, Temporal, simulators, workers and API under one supervisor.

async with Stack(isolated_settings(home)) as stack:
    stack.settings.http_port …
    stack.kill("worker")            # kill -9; it is started again
    await stack.ready("worker")
"""

import asyncio
import signal
from collections.abc import Collection
from types import TracebackType

from migrations import migrate
from migrations.roles import RoleError
from runtime import parts, scraping
from runtime.entry import EntryError
from runtime.home import Home, Lock
from runtime.ports import why_not
from runtime.postgres import PostgresServer
from runtime.seed import seed
from runtime.settings import Settings
from runtime.split import own_environment, party_role
from runtime.stack_env import LOOPBACK, children_environment, own_servers, own_settings, write_stack_env
from runtime.supervisor import Part, Supervisor, Tell
from runtime.temporal import connect, ensure_search_attributes, keep_histories
from workflows.names import Queue

PARTS = ("postgres", "temporal", "simulators", "worker", "api")


class StackError(EntryError):
    """The stack cannot be started: one line that says what to change."""


class Stack:
    """One stack on one home. Servers that the settings name are used, the others are started here.

    `split`: a worker for each party, `worker-payments` and so on, with only its own settings and database role.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        tell: Tell = lambda *_: None,
        without: Collection[str] = (),
        split: bool = False,
    ) -> None:
        given = settings.model_copy(update={"orders_home": settings.orders_home.resolve()})
        self._own = own_servers(given)
        self._given = given
        self._without = frozenset(without)
        self._split = split
        self._home = Home(given.orders_home)
        self._lock = Lock(self._home)
        self._supervisor = Supervisor(tell)
        self.settings = given.model_copy(update=own_settings(given, split=split))
        """All settings, with the addresses and secrets of the servers that are started here."""
        workers: list[Queue | None] = [] if "worker" in self._without else list(Queue) if split else [None]
        self._worker_ports = scraping.worker_ports(given, workers)

    async def start(self) -> None:
        """Returns when everything is started and ready. Raises EntryError or SettingsError, and then nothing runs."""
        if "api" not in self._without:
            self.settings.host_to_bind()
        if not self._lock.take():
            raise StackError(
                f"a stack is running already on {self._home.path} (process {self._lock.holder()}): "
                "`make down` stops it, or set another ORDERS_HOME"
            )
        try:
            self._refuse_missing_roles()
            self._refuse_taken_ports()
            write_stack_env(self._given, split=self._split)
            environment = children_environment(self._given, split=self._split)
            scraping.write_targets(self.settings, self._host(), self._worker_ports, api="api" not in self._without)
            async with asyncio.TaskGroup() as group:
                servers = [
                    group.create_task(self._start_database()),
                    group.create_task(self._start_temporal(environment)),
                ]
                group.create_task(self._start_simulators(environment))
                await asyncio.gather(*servers)
                for part in self._processes(environment):
                    group.create_task(self._supervisor.start(part))
        except BaseException as error:
            await self.stop()
            if isinstance(error, BaseExceptionGroup):
                raise error.exceptions[0] from None
            raise

    async def stop(self) -> None:
        """Ends everything in reverse order."""
        await self._supervisor.stop()
        self._lock.give_back()

    def urls(self) -> dict[str, str]:
        """What a person may open, by name: of the parts that run here."""
        settings, host = self.settings, self._host()
        found: dict[str, str] = {}
        if "api" not in self._without:
            found |= {"shop": f"http://{host}:{settings.http_port}", "operators": f"http://{host}:{settings.ops_port}"}
        if "temporal" in self._own:
            found["Temporal Web UI"] = f"http://{LOOPBACK}:{settings.temporal_ui_port}"
        if "simulators" not in self._without and "gateway" in self._own:
            found["payment gateway"] = f"{settings.stripe_api_base}/_sim/ledger"
        if "simulators" not in self._without and "mail" in self._own:
            found["mail"] = f"http://{LOOPBACK}:{settings.sim_mail_port}/_sim/ledger"
        found["metrics"] = f"scrape what {settings.orders_home / scraping.FILE} lists"
        if "postgres" in self._own:
            found["database"] = f"postgresql://orders@{LOOPBACK}:{settings.postgres_port}/orders"
        return found

    def pids(self) -> dict[str, int]:
        """By part that runs: the process from which all of its processes descend."""
        return self._supervisor.pids()

    async def ready(self, part: str) -> None:
        """Waits until a part does its work (again). Raises PartError after a minute."""
        await self._supervisor[part].ready()

    def kill(self, part: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Sends a part a signal: kill -9 unless told otherwise. It is started again, unless restarts are paused."""
        self._supervisor[part].signal(number)

    def kill_all(self) -> None:
        """kill -9 of everything."""
        self._supervisor.kill()

    def pause_restarts(self, part: str) -> None:
        """A part that ends from now on stays down."""
        self._supervisor[part].hold()

    def resume_restarts(self, part: str) -> None:
        """Undoes `pause_restarts`: a part that is down is started at once."""
        self._supervisor[part].release()

    async def __aenter__(self) -> "Stack":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _start_database(self) -> None:
        if "postgres" in self._own:
            server = PostgresServer(self._home.path, self.settings.postgres_port)
            await server.prepare()
            await self._supervisor.start(parts.postgres(server))
            await server.create_database()
            for party in Queue if self._split else ():
                await server.create_role(party_role(party))
        url = self.settings.need(self.settings.database_url, "DATABASE_URL")
        try:
            await asyncio.to_thread(migrate, url, self.settings.party_urls())
        except RoleError as error:
            raise StackError(str(error)) from None
        if "postgres" in self._own:
            await seed(url)

    async def _start_temporal(self, environment: dict[str, str]) -> None:
        if "temporal" in self._own:
            await self._supervisor.start(parts.temporal(self.settings, environment))
        client = await connect(self.settings)
        if "temporal" in self._own:
            await keep_histories(client)
        await ensure_search_attributes(client)

    async def _start_simulators(self, environment: dict[str, str]) -> None:
        simulated = self._own & {"gateway", "courier", "fraud", "mail"}
        if simulated and "simulators" not in self._without:
            told = self._told(environment, "simulators")
            await self._supervisor.start(parts.simulators(self.settings, told, simulated))

    def _processes(self, environment: dict[str, str]) -> list[Part]:
        """Workers and API."""
        found: list[Part] = []
        for party, port in self._worker_ports.items():
            told = self._told(environment, party) if party else environment
            found.append(parts.worker(self.settings, told, party, metrics_port=port))
        if "api" not in self._without:
            found.append(parts.api(self.settings, self._told(environment, "api")))
        return found

    def _host(self) -> str:
        return parts.reachable(self.settings.bind_host)

    def _told(self, environment: dict[str, str], process: str) -> dict[str, str]:
        return own_environment(environment, process) if self._split else environment

    def _refuse_missing_roles(self) -> None:
        """Raises StackError when the parties of a split stack have no roles of their own in somebody's database."""
        known = self.settings.party_urls()
        missing = [f"DATABASE_URL_{party.upper()}" for party in Queue if party not in known]
        if self._split and missing:
            raise StackError(f"in your own database each party needs its own role: set {', '.join(missing)}")

    def _refuse_taken_ports(self) -> None:
        """Before anything is started: each port is free and used once. Raises StackError naming the setting."""
        seen: dict[int, str] = {}
        for name in self._ports():
            port, setting = getattr(self.settings, name), name.upper()
            if port in seen:
                raise StackError(f"{seen[port]} and {setting} are both {port}: change one of them")
            seen[port] = setting
            ours = name in {"http_port", "ops_port", "worker_metrics_port"}
            host = self.settings.bind_host if ours else LOOPBACK
            if trouble := why_not(port, host):
                raise StackError(f"port {port} {trouble} or set {setting} to another port")

    def _ports(self) -> list[str]:
        used = {
            "postgres": ["postgres_port"],
            "temporal": ["temporal_port", "temporal_ui_port"],
            "gateway": ["sim_gateway_port"],
            "courier": ["sim_courier_port"],
            "fraud": ["sim_fraud_port"],
            "mail": ["sim_smtp_port", "sim_mail_port"],
        }
        names = [] if "api" in self._without else ["http_port", "ops_port"]
        if self._worker_ports and self._given.worker_metrics_port:
            names.append("worker_metrics_port")
        for server, ports in used.items():
            part = server if server in PARTS else "simulators"
            if server in self._own and part not in self._without:
                names += ports
        return names
