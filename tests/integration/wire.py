"""A wire to the database that can be cut without anybody being told: nothing is refused, ends or comes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import make_url

from adapters.database import Database


class Wire:
    """Passes on what both ends say, until it is cut; what is opened after `mend` is passed on again."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._pumps: set[asyncio.Task[None]] = set()
        self._ends: list[asyncio.StreamWriter] = []
        self._whole = asyncio.Event()
        self._whole.set()

    async def serve(self) -> asyncio.Server:
        """A server on a free port."""
        return await asyncio.start_server(self._connect, "127.0.0.1", 0)

    def cut(self) -> None:
        """Both ends of each connection stay open and hear nothing more; new connections are not answered."""
        self._whole.clear()
        for pump in self._pumps:
            pump.cancel()

    def mend(self) -> None:
        """New connections are answered again."""
        self._whole.set()

    async def _connect(self, ours: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        self._ends.append(back)
        await self._whole.wait()
        theirs, forth = await asyncio.open_connection(*self._address)
        self._ends.append(forth)
        for reader, writer in ((ours, forth), (theirs, back)):
            pump = asyncio.create_task(self._pump(reader, writer))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    @staticmethod
    async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    def close(self) -> None:
        """Lets go of all ends."""
        self.cut()
        for end in self._ends:
            end.close()


@asynccontextmanager
async def a_wire_to(database: Database) -> AsyncIterator[tuple[Wire, Database]]:
    """A wire, and the same database at its other end."""
    url = make_url(database.url)
    wire = Wire(str(url.host), int(url.port or 5432))
    server = await wire.serve()
    behind = url.set(host="127.0.0.1", port=server.sockets[0].getsockname()[1])
    far = Database(behind.render_as_string(hide_password=False), application="tests")
    try:
        yield wire, far
    finally:
        wire.close()
        await far.close()
        server.close()
