"""How every command and service of ours begins and ends: exit codes, one line for a known trouble, no crash at exit."""

import asyncio
import logging
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import NoReturn

from temporalio.service import RPCError, RPCStatusCode

from domain.errors import DatabaseUnavailable
from runtime.settings import SettingsError, home_in_use

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

_NO_ANSWER = {RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED}


class EntryError(Exception):
    """A trouble that its message explains to the reader completely: one line, exit code 1."""


class ServerUnavailable(EntryError):
    """A server that this process needs does not answer."""


def run_entry(main: Callable[[], Awaitable[int]]) -> NoReturn:
    """Runs `main` and ends the process with the exit code it returns.

    SettingsError ends with 2, EntryError and a database or Temporal server that does not answer with 1, each as one
    line on stderr; Ctrl-C quietly with 130; anything else is a bug and keeps its traceback.
    """
    leave(_exit_code(main))


def _exit_code(main: Callable[[], Awaitable[int]]) -> int:
    async def awaited() -> int:
        return await main()

    try:
        return asyncio.run(awaited())
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of our output has seen enough (`| head`)
        return EXIT_ERROR
    except Exception as error:
        line = _explanation(error)
        print(f"error: {line}" if line else traceback.format_exc(), file=sys.stderr)  # noqa: T201 (read by a person)
        return EXIT_USAGE if isinstance(error, SettingsError) else EXIT_ERROR


def _explanation(error: Exception) -> str | None:
    if isinstance(error, SettingsError | EntryError):
        return str(error)
    if isinstance(error, DatabaseUnavailable):
        home = home_in_use().resolve()
        return f"the database does not answer ({error}): is `make up` running on {home} (ORDERS_HOME)? See DATABASE_URL"
    if isinstance(error, RPCError) and error.status in _NO_ANSWER:
        return f"Temporal stopped answering ({error.status.name}): is `make up` running? See TEMPORAL_ADDRESS"
    return None


def leave(code: int) -> NoReturn:
    """Ends the process at once, its output written.

    Past the interpreter's own end: there the SDK's threads may abort the process with a false exit code
    (temporalio/sdk-python#300).
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            continue
    os._exit(code)
