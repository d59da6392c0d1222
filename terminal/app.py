"""What every command shares: how it refuses what was typed, and where it writes."""

from rich.console import Console

from runtime.settings import SettingsError

#: Ids and Web UI links stay on one line where nobody looks at a terminal.
PLAIN_WIDTH = 200
#: How the operator's commands are typed in a checkout.
OPS = ".venv/bin/python ops.py"


class BadInput(SettingsError):
    """What was typed, or the file that was named, cannot be used: one line that says where. Exit code 2."""


def screen() -> Console:
    """Where tables and lines go: the terminal in its own width, a file or pipe in a wide one."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)
