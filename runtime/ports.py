"""Which TCP ports are free."""

import socket


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


def is_taken(port: int, host: str = "127.0.0.1") -> bool:
    """Whether somebody listens there. A port in TIME_WAIT is free, as it is for a server."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return True
    return False
