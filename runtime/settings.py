"""What a process is told from outside: one frozen object, read once at its entry point and passed down.

Sources, the first one wins: the environment, `.env`, `$ORDERS_HOME/stack.env` (written by `make up`).
`.env.example` lists every name with its meaning.
"""

import ipaddress
import os
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from domain.money import CURRENCIES

Port = Annotated[int, Field(ge=1, le=65_535)]


class SettingsError(Exception):
    """A setting is missing or wrong: one line that names it. Exit code 2."""


class Settings(BaseSettings):
    """All settings of all processes; each party's worker needs only its own part of them."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", env_ignore_empty=True)

    orders_home: Path = Path(".local")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    #: Where traces go, as OTLP over HTTP; None: nothing is traced.
    otel_exporter_otlp_endpoint: str | None = None
    #: The share of orders whose traces are kept; those of undone orders always are.
    otel_traces_sampler_arg: float = Field(default=1, ge=0, le=1)
    auth_mode: Literal["open"] = "open"
    open_beyond_loopback: bool = False

    database_url: str | None = None
    database_url_orders: str | None = None
    database_url_inventory: str | None = None
    database_url_loyalty: str | None = None
    database_url_payments: str | None = None
    database_url_shipping: str | None = None

    temporal_address: str | None = None
    temporal_namespace: str | None = None
    temporal_ui_url: str | None = None
    #: Which build of the code the workers run; None: unversioned, as `make up` runs them. Not BUILD_ID: CI servers set
    #: that in every job, and a worker started there would be pinned to the job's number.
    worker_build_id: str | None = None
    deployment_name: str = "orders"

    stripe_api_key: str | None = None
    stripe_api_base: str | None = None
    stripe_webhook_secrets: Annotated[tuple[str, ...], NoDecode] = ()
    courier_api_base: str | None = None
    courier_webhook_secrets: Annotated[tuple[str, ...], NoDecode] = ()
    fraud_api_base: str | None = None
    smtp_url: str | None = None
    #: At most half of a step's start_to_close (10 s, `domain.policy`): an attempt has to end with our own error and
    #: write it down, or it is cut off and its outcome stays unknown.
    provider_timeout_seconds: float = Field(default=5, gt=0, le=5)

    payment_deadline_seconds: float = Field(default=1800, gt=0)
    review_deadline_seconds: float = Field(default=172_800, gt=0)
    review_limits: Annotated[dict[str, int], NoDecode] = Field(
        default_factory=lambda: {"EUR": 50_000, "USD": 50_000, "JPY": 80_000, "KWD": 150_000}
    )
    points_currency: str = "EUR"
    #: In whose nights the books are reconciled.
    reconcile_time_zone: str = "Europe/Berlin"
    default_payment_method: str = "pm_card_visa"

    bind_host: str = "127.0.0.1"
    http_port: Port = 8080
    ops_port: Port = 8081
    #: Each worker process on this machine needs one of its own; None: it serves no metrics.
    worker_metrics_port: Port | None = None
    temporal_port: Port = 7233
    temporal_ui_port: Port = 8233
    postgres_port: Port = 5433
    sim_gateway_port: Port = 12111
    sim_courier_port: Port = 12112
    sim_fraud_port: Port = 12113
    sim_smtp_port: Port = 12125
    sim_mail_port: Port = 12126

    @field_validator("stripe_webhook_secrets", "courier_webhook_secrets", mode="before")
    @classmethod
    def _split_secrets(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("review_limits", mode="before")
    @classmethod
    def _split_limits(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        pairs = [part.split("=", 1) for part in value.split(",") if part.strip()]
        if any(len(pair) != 2 or not pair[1].strip().isdigit() for pair in pairs):
            raise ValueError("write CURRENCY=AMOUNT,CURRENCY=AMOUNT in smallest units")
        return {code.strip(): int(limit) for code, limit in pairs}

    @field_validator("temporal_ui_url")
    @classmethod
    def _web_address(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("an address like https://temporal.example.com")
        return value

    @field_validator("points_currency")
    @classmethod
    def _known_currency(cls, value: str) -> str:
        if value not in CURRENCIES:
            raise ValueError(f"one of {', '.join(CURRENCIES)}")
        return value

    @field_validator("reconcile_time_zone")
    @classmethod
    def _known_time_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (KeyError, ValueError, OSError):
            raise ValueError("a name of the time zone database, like Europe/Berlin") from None
        return value

    def database_for(self, party: str) -> str:
        """The database URL of one party's role, or the common one. Raises SettingsError when neither is set."""
        url: str | None = getattr(self, f"database_url_{party}", None) or self.database_url
        return self.need(url, "DATABASE_URL")

    def host_to_bind(self) -> str:
        """The address that the HTTP API binds to.

        Raises SettingsError for one that others reach while anybody may call the API, unless that is asked for.
        """
        if self.auth_mode == "open" and not self.open_beyond_loopback and not _is_loopback(self.bind_host):
            raise SettingsError(
                f"BIND_HOST {self.bind_host} is reached from elsewhere and AUTH_MODE=open lets anybody in: "
                "bind to 127.0.0.1, or set OPEN_BEYOND_LOOPBACK=true where something else keeps others out"
            )
        return self.bind_host

    def party_urls(self) -> dict[str, str]:
        """The database URLs of the parties' own roles, by party: those that are set."""
        prefix = "database_url_"
        return {name.removeprefix(prefix): value for name, value in self if name.startswith(prefix) and value}

    @staticmethod
    def need(value: str | None, name: str) -> str:
        """`value`, or a SettingsError that names the setting."""
        if not value:
            raise SettingsError(f"{name} is not set: run `make up` (it writes stack.env) or set {name}")
        return value


def load_settings(*, from_stack: bool = True, **overrides: object) -> Settings:
    """Reads all sources, or those that people write (`from_stack=False`).

    Raises SettingsError with one line naming the first wrong setting.
    """
    home = home_in_use()
    try:
        return Settings(_env_file=(*([home / "stack.env"] if from_stack else []), ".env"), **overrides)  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).upper() if first["loc"] else "a setting"
        raise SettingsError(f"{name} is wrong: {first['msg'].removeprefix('Value error, ')}") from None


def home_in_use() -> Path:
    """The home whose `stack.env` is read: ORDERS_HOME of the environment or of `.env`, else `.local`."""
    return Path(os.environ.get("ORDERS_HOME") or _home_from_dotenv() or ".local")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _home_from_dotenv() -> str | None:
    path = Path(".env")
    if not path.is_file():
        return None
    for line in path.read_text().splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "ORDERS_HOME":
            return value.strip().strip("\"'")
    return None
