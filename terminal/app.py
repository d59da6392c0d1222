"""How a command line of ours begins and ends: one line for what was typed wrong, exit code 2."""

import sys
from typing import NoReturn

import typer
from rich.console import Console

from runtime.entry import EXIT_USAGE, leave
from runtime.settings import SettingsError

#: Ids and Web UI links stay on one line where nobody looks at a terminal.
PLAIN_WIDTH = 200


class BadInput(SettingsError):
    """What was typed, or the file that was named, cannot be used: one line that says where. Exit code 2."""


def run_app(app: typer.Typer) -> NoReturn:
    """Runs the command that was typed and ends the process. Without a command: its help, and exit code 2."""
    words = sys.argv[1:]
    try:
        code = app(words or ["--help"], standalone_mode=False)
    except typer.TyperException as error:
        line = " ".join(error.format_message().split())
        print(f"error: {line} (see --help)", file=sys.stderr)  # noqa: T201 (read by a person)
        leave(error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        leave(130)
    leave((code or 0) if words else EXIT_USAGE)


def screen() -> Console:
    """Where tables and lines go: the terminal in its own width, a file or pipe in a wide one."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)
