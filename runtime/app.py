"""How a command line of ours begins and ends: one line for what was typed wrong, exit code 2."""

import sys
from typing import NoReturn

import typer

from runtime.entry import EXIT_INTERRUPTED, EXIT_USAGE, leave


def run_app(app: typer.Typer, *, needs_words: bool = False) -> NoReturn:
    """Runs what was typed and ends the process. `needs_words`: nothing typed gives its help, and exit code 2."""
    words = sys.argv[1:]
    lost = needs_words and not words
    try:
        code = app(["--help"] if lost else words, standalone_mode=False)
    except typer.TyperException as error:
        line = " ".join(error.format_message().split())
        print(f"error: {line} (see --help)", file=sys.stderr)  # noqa: T201 (read by a person)
        leave(error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        leave(EXIT_INTERRUPTED)
    leave(EXIT_USAGE if lost else code or 0)
