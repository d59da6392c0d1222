"""Payment gateway, courier, fraud scorer and mail sink: real HTTP and SMTP servers that decide by their input."""

from simulators.server import Config, Ports, PortTaken, Simulators
from simulators.webhooks import Endpoint, Pace

__all__ = ["Config", "Endpoint", "Pace", "PortTaken", "Ports", "Simulators"]
