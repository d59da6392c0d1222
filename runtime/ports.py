"""Which TCP ports are free, and why one is not."""

import errno
import random
import socket
from itertools import islice


def free_port(host: str = "127.0.0.1") -> int:
    """A port that nobody listens on now."""
    return free_ports(1, host)[0]


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Different ports that nobody listens on now."""
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind((host, 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


def lasting_ports(count: int) -> list[int]:
    """Different ports that nobody listens on now, and that no outgoing connection is given while nobody does.

    For processes that are started later, or again: systems take the ports of connections from 32768 upwards.
    """
    shuffled = random.SystemRandom().sample(range(20_000, 30_000), 1000)
    return list(islice((port for port in shuffled if why_not(port) is None), count))


def why_not(port: int, host: str = "127.0.0.1") -> str | None:
    """Why a server cannot listen there, as the middle of a sentence; None: it can."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        # As servers do: a port whose last connections are in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen()
        except PermissionError:
            return "needs the rights of root: run with them"
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            return "is taken: stop what listens there" if taken else f"of {host} cannot be used: set BIND_HOST"
    return None
