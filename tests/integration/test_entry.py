"""How a command ends: exit code, and what a person reads."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runtime.ports import free_port

HEAD = """
import asyncio
from domain.errors import DatabaseUnavailable
from runtime.entry import EntryError, run_entry
from runtime.settings import SettingsError, load_settings
from runtime.temporal import connect
"""

#: Who runs the tests in the background makes their children deaf to Ctrl-C: this makes one listen again.
LISTEN = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"


def _run(body: str, *, head: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    code = f"{HEAD}{head}async def main():\n    {body}\nrun_entry(main)"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}
    return subprocess.run(  # noqa: S603 (our own code)
        [sys.executable, "-c", code],
        env={**clean, "PYTHONPATH": str(Path.cwd()), "ORDERS_HOME": "/nowhere", **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize(
    ("body", "code", "line"),
    [
        ("raise SettingsError('HTTP_PORT is wrong')", 2, "error: HTTP_PORT is wrong"),
        ("raise EntryError('no room')", 1, "error: no room"),
        (
            "raise DatabaseUnavailable('OperationalError')",
            1,
            "error: the database does not answer (OperationalError): "
            "is `make up` running on /nowhere (ORDERS_HOME)? See DATABASE_URL",
        ),
    ],
)
def test_a_known_trouble_is_one_line(body: str, code: int, line: str) -> None:
    ended = _run(body)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", f"{line}\n")


def test_a_bug_keeps_its_traceback() -> None:
    ended = _run("1 / 0")
    assert ended.returncode == 1
    assert "ZeroDivisionError" in ended.stderr


def test_the_exit_code_is_what_the_command_says() -> None:
    ended = _run("print('done'); return 4")
    assert (ended.returncode, ended.stdout, ended.stderr) == (4, "done\n", "")


def test_an_interrupt_is_quiet() -> None:
    ended = _run("signal.raise_signal(signal.SIGINT); await asyncio.sleep(9)", head=LISTEN)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGINT, "")


def test_a_temporal_server_that_is_down_is_one_line_within_ten_seconds() -> None:
    address = f"127.0.0.1:{free_port()}"
    began = time.monotonic()
    ended = _run("await connect(load_settings())", TEMPORAL_ADDRESS=address)
    assert time.monotonic() - began < 10
    assert ended.returncode == 1
    assert ended.stderr == f"error: Temporal at {address} does not answer: is `make up` running?\n"


def test_no_temporal_server_named_is_one_line() -> None:
    ended = _run("await connect(load_settings())")
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: TEMPORAL_ADDRESS is not set")
    assert ended.stderr.count("\n") == 1
