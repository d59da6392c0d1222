"""`python -m simulators`: all simulators in the foreground until SIGTERM or SIGINT.

Secrets come from the environment (`SIM_WEBHOOK_SECRET`, `SIM_COURIER_WEBHOOK_SECRET`), because anyone on the machine
can read a command line.
"""

import argparse
import asyncio
import logging
import os
import signal
import sqlite3
import sys
from pathlib import Path

from simulators import Config, Endpoint, Ports, PortTaken, Simulators


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port (0 to 65535)")
    return int(text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=".venv/bin/python -m simulators",
        description="Payment gateway (Stripe's dialect), courier, fraud scorer and mail sink, to try out and to test.",
        epilog="Environment: SIM_WEBHOOK_SECRET and SIM_COURIER_WEBHOOK_SECRET sign the webhooks.",
    )
    for name, port in (("gateway", 12111), ("courier", 12112), ("fraud", 12113), ("smtp", 12125), ("mail", 12126)):
        parser.add_argument(
            f"--{name}-port", type=_port, default=port, metavar="PORT", help=f"default {port}, 0: a free one"
        )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="keep the books here over a restart (default: in memory)"
    )
    parser.add_argument("--webhook-url", metavar="URL", help="where the gateway's events go (default: nowhere)")
    parser.add_argument("--courier-webhook-url", metavar="URL", help="where the courier's events go (default: nowhere)")
    parser.add_argument(
        "--settle-seconds",
        type=float,
        default=0.05,
        metavar="S",
        help="until a payment is authorized (default %(default)s)",
    )
    return parser.parse_args()


def _config(arguments: argparse.Namespace) -> Config:
    default_secret = Endpoint("").secret
    return Config(
        ports=Ports(
            gateway=arguments.gateway_port,
            courier=arguments.courier_port,
            fraud=arguments.fraud_port,
            smtp=arguments.smtp_port,
            mail=arguments.mail_port,
        ),
        host=arguments.host,
        data=arguments.data,
        gateway_webhook=Endpoint(
            "Stripe-Signature", arguments.webhook_url, os.environ.get("SIM_WEBHOOK_SECRET") or default_secret
        ),
        courier_webhook=Endpoint(
            "Courier-Signature",
            arguments.courier_webhook_url,
            os.environ.get("SIM_COURIER_WEBHOOK_SECRET") or default_secret,
        ),
        settle_seconds=arguments.settle_seconds,
    )


async def _run(config: Config) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Simulators(config) as simulators:
        sys.stdout.write(
            f"simulators ready: gateway {simulators.gateway_url} courier {simulators.courier_url} "
            f"fraud {simulators.fraud_url} smtp {simulators.smtp_url} mail {simulators.mail_url}\n"
        )
        sys.stdout.flush()
        await stop.wait()


def main() -> int:
    """Runs until a signal: 0; 1 with one line when a port is taken or the books cannot be kept."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    try:
        asyncio.run(_run(_config(_arguments())))
    except (PortTaken, OSError, sqlite3.Error) as error:
        sys.stderr.write(f"simulators: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
