"""`python -m tests.replay`: replays every recorded history on the workflows of this checkout."""

import asyncio
import sys

from runtime.entry import leave
from tests.replay.histories import failures, files


def main() -> int:
    """Names each history that the workflows would not repeat; the exit code is 1 then."""
    recorded = files()
    failed = asyncio.run(failures(recorded))
    for name, reason in failed.items():
        print(f"{name}: {reason}", file=sys.stderr)  # noqa: T201 (read by a person)
    print(f"{len(recorded) - len(failed)} of {len(recorded)} histories replay")  # noqa: T201
    return 1 if failed else 0


if __name__ == "__main__":
    leave(main())
