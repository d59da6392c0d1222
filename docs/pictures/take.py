"""Takes the pictures of the documentation: three orders in Temporal's Web UI, and a view, by headless Chromium.

    .venv/bin/python -m docs.pictures.take        needs `chromium` on the PATH (or CHROMIUM=…)

A shop of its own runs meanwhile: one order is confirmed, one is refused by the courier and undone, and one is parked at
its capture, since the gateway refuses our key. Text on the pictures is what the workflows tell; nothing is drawn in.
"""

import asyncio
import base64
import itertools
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp

from demo.cases import CASES
from demo.doors import Doors
from runtime.entry import EntryError, run_entry
from runtime.ports import free_port
from runtime.stack import Stack
from runtime.stack_env import isolated_settings

FOLDER = Path(__file__).parent
SIZE = (1280, 1400)
#: A list of one order needs no more of it.
LIST_HEIGHT = 340
PATIENCE_SECONDS = 60
#: The page polls for ever; what has come is drawn well before this.
DRAWN_AFTER_SECONDS = 2
#: The query of `docs/operating.md` for everything that is parked.
PARKED = "ParkedStep IS NOT NULL"
REFUSED_KEY = {"op": "capture", "mode": "error", "status": 401, "times": 100}
#: Picture, the demo's case that it shows, a fault that meets it, and the status at which it is taken.
ORDERS: tuple[tuple[str, str, dict[str, Any] | None, str], ...] = (
    ("confirmed", "confirmed", None, "CONFIRMED"),
    ("compensated", "no-courier", None, "CANCELLED_COMPENSATED"),
    ("parked", "confirmed", REFUSED_KEY, "NEEDS_REVIEW"),
)


async def main() -> int:
    """Writes `<order>-timeline.png` and `<order>-story.png` beside this file, and `parked-view.png`."""
    with tempfile.TemporaryDirectory() as home:
        async with (
            Stack(isolated_settings(Path(home)), tell=lambda *_: None) as stack,
            aiohttp.ClientSession() as session,
        ):
            doors = Doors(stack.settings, session)
            base = f"http://127.0.0.1:{stack.settings.temporal_ui_port}/namespaces/default/workflows"
            async with _chromium(session) as page:
                for name, case, fault, status in ORDERS:
                    order_id = await _order(doors, case, fault, status)
                    await page.open(f"{base}/order-{order_id}", "open_order")
                    await page.shoot(FOLDER / f"{name}-timeline.png")
                    await page.click("User Metadata", texts=3)
                    await page.shoot(FOLDER / f"{name}-story.png")
                await page.open(f"{base}?query={quote(PARKED)}", order_id)
                await page.shoot(FOLDER / "parked-view.png", height=LIST_HEIGHT)
    return 0


async def _order(doors: Doors, name: str, fault: dict[str, Any] | None, status: str) -> str:
    """Places an order of the demo and waits until it has this status."""
    case = next(one for one in CASES if one.name == name)
    customer = f"{name}-{free_port()}"
    await doors.put_stock(case.sku, case.stock, 1000, "EUR")
    await doors.put_customer(customer, 1000, {"EUR": 1000})
    if fault:
        await doors.fault(fault)
    order_id = await doors.post_order(case.document(customer), f"picture-{customer}")
    async with asyncio.timeout(60):
        while (await doors.order(order_id)).status != status:  # noqa: ASYNC110 (the shop is another process)
            await asyncio.sleep(0.2)
    return order_id


class Page:
    """One tab of Chromium, driven by its DevTools protocol."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)

    async def open(self, url: str, shows: str) -> None:
        """Opens a page, until it shows this text."""
        await self._ask("Page.navigate", url=url)
        await self._until(f"document.body?.textContent.includes({shows!r})")

    async def click(self, tab: str, texts: int) -> None:
        """Clicks one of the page's tabs, until it shows so many texts: each has a frame of its own."""
        link = f"[...document.querySelectorAll('a,button')].find(e => e.innerText.trim() === {tab!r})"
        await self._until(f"Boolean({link})")
        await self._ask("Runtime.evaluate", expression=f"{link}.click()")
        await self._until(f"document.querySelectorAll('iframe').length === {texts}")

    async def shoot(self, file: Path, *, height: int | None = None) -> None:
        """Writes a picture of the page, or of so many pixels at its top."""
        await asyncio.sleep(DRAWN_AFTER_SECONDS)
        top = {"clip": {"x": 0, "y": 0, "width": SIZE[0], "height": height, "scale": 1}} if height else {}
        answer = await self._ask("Page.captureScreenshot", format="png", **top)
        await asyncio.to_thread(file.write_bytes, base64.b64decode(answer["data"]))

    async def _until(self, script: str) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (await self._ask("Runtime.evaluate", expression=script))["result"].get("value"):  # noqa: ASYNC110 (a page)
                await asyncio.sleep(0.5)

    async def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            answer: dict[str, Any] = await self._socket.receive_json()
            if answer.get("id") == number:
                return dict(answer["result"])


@asynccontextmanager
async def _chromium(session: aiohttp.ClientSession) -> AsyncIterator[Page]:
    port = free_port()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        words = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking"]
        words += [f"--user-data-dir={profile}", f"--remote-debugging-port={port}", f"--window-size={SIZE[0]},{SIZE[1]}"]
        try:
            browser = await asyncio.create_subprocess_exec(
                os.environ.get("CHROMIUM", "chromium"), *words, "about:blank", stderr=asyncio.subprocess.DEVNULL
            )
        except OSError as error:
            raise EntryError(f"chromium cannot be started ({error.strerror}): install it or set CHROMIUM") from None
        try:
            async with session.ws_connect(await _address(session, port), max_msg_size=0) as socket:
                yield Page(socket)
        finally:
            browser.terminate()
            await browser.wait()


async def _address(session: aiohttp.ClientSession, port: int) -> str:
    async with asyncio.timeout(30):
        while True:
            try:
                async with session.get(f"http://127.0.0.1:{port}/json") as answer:
                    pages = [page for page in await answer.json(content_type=None) if page["type"] == "page"]
                    return str(pages[0]["webSocketDebuggerUrl"])
            except (aiohttp.ClientError, IndexError):
                await asyncio.sleep(0.1)


if __name__ == "__main__":
    run_entry(main)
