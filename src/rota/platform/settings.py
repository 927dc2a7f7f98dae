"""All settings of the service, read once from `ROTA_*` environment variables.

No other module reads the environment. Commands create a `Settings`, and the composition passes its
values to the parts that need them.
"""

import base64
import binascii
import json
import os
import re
from collections.abc import Iterator
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Literal, Self

from pydantic import Field, FilePath, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from rota.platform.cell_settings import CellSettings
from rota.platform.issuer import Issuer
from rota.platform.model_choice import ModelChoice, read_chains
from rota.platform.signatures import is_public_key
from rota.platform.start_checks import (
    general_problems,
    is_loopback,
    production_problems,
    storage_problems,
)
from rota.platform.strict import nearest

DAY_S = 86_400
_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]+)?|https?://\[[0-9a-f:]+\](:[0-9]+)?")

Port = Annotated[int, Field(ge=1, le=65_535)]

PREFIX = "ROTA_"
RETENTION = ("retention_days", "retention_min_days", "retention_max_days")
# What clients of a service read: the command line and the SDKs. They are not settings.
CLIENT_VARIABLES = frozenset(
    (
        *("ROTA_URL", "ROTA_BASE_URL", "ROTA_API_KEY", "ROTA_PROFILE", "ROTA_ACCOUNT"),
        *("ROTA_WEBHOOK_SECRET", "ROTA_MAX_RETRIES", "ROTA_TIMEOUT_S", "ROTA_RESTORE_FROM_URL"),
    )
)
# For development only. It is public, so it is accepted on a loopback address only.
DEVELOPMENT_SECRET_KEY = base64.b64encode(b"rota-development-key-not-secret!").decode()
# Also public. What it signs proves nothing.
DEVELOPMENT_AUDIT_KEY = base64.b64encode(b"rota-development-key-for-audits!").decode()

# By what is deleted.
RetentionDays = dict[
    Literal["tasks", "steps", "events", "audit"], Annotated[int, Field(ge=1, le=36_500)]
]


class Settings(CellSettings, BaseSettings):
    # An invalid value can be a secret, so errors do not show it.
    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="ignore", hide_input_in_errors=True
    )

    env: Literal["development", "test", "production"] = "development"
    variant: Literal["a", "b"] = "a"

    host: str = "127.0.0.1"
    port: Port = 8080
    # The port of /metrics. If it is not set, /metrics is on the main port. Required in production.
    metrics_port: Port | None = None
    # Where a worker serves /health/live, /health/ready and /metrics. The defaults are `host` and
    # `metrics_port`. A worker without a port serves nothing.
    worker_host: str | None = None
    worker_port: Port | None = None
    public_url: str = "http://127.0.0.1:8080"
    # How many `rota serve` processes run in total. While Redis is down, each process enforces its
    # share of the rate limits.
    processes: Annotated[int, Field(ge=1)] = 1
    # X-Forwarded-For is trusted only from these addresses and networks.
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = ()
    # The origins whose web pages can call the API from a browser, such as https://app.example.com.
    cors_origins: Annotated[tuple[str, ...], NoDecode] = ()
    # The maximum number of open event streams per process, and of one account's per process.
    streams: Annotated[int, Field(ge=1)] = 1_000
    streams_per_account: Annotated[int, Field(ge=1)] = 100
    # How long requests and calls in progress may take on shutdown. The default is 20 s for
    # `rota serve`, and the time of the longest call for `rota worker`.
    shutdown_grace_s: Annotated[float, Field(ge=0)] | None = None

    database_url: SecretStr = SecretStr("postgresql://rota@127.0.0.1:5432/rota")
    # The login that applies migrations, if it is not the one in `database_url`.
    migration_database_url: SecretStr | None = None
    database_pool_size: Annotated[int, Field(ge=1)] = 10
    # Prepared statements per connection. PgBouncer before 1.21 needs 0.
    database_statement_cache: Annotated[int, Field(ge=0)] = 100
    # The longest waits: for a connection of the pool, for a lock, for one statement, and between
    # two statements of a transaction.
    database_pool_timeout_s: Annotated[float, Field(gt=0)] = 15
    database_lock_timeout_s: Annotated[float, Field(gt=0)] = 5
    database_statement_timeout_s: Annotated[float, Field(gt=0)] = 30
    database_idle_timeout_s: Annotated[float, Field(gt=0)] = 15
    redis_url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    # The authority that signed the certificate of Redis, as a PEM file.
    redis_ca_file: FilePath | None = None
    temporal_address: str = "127.0.0.1:7233"
    temporal_namespace: str = "default"
    # TLS with the system's authorities. Each of the settings below turns TLS on as well.
    temporal_tls: bool = False
    temporal_tls_ca_file: FilePath | None = None
    # The name in the certificate of the server, if it is not the host in `temporal_address`.
    temporal_tls_server_name: str | None = None
    # The client's certificate and its key, as PEM files. Both or neither.
    temporal_tls_cert_file: FilePath | None = None
    temporal_tls_key_file: FilePath | None = None
    temporal_api_key: SecretStr | None = None
    # 32 bytes in base64. If set, payloads in Temporal are encrypted.
    temporal_codec_key: SecretStr | None = None
    # Separated by commas. They only decrypt.
    temporal_codec_keys_old: Annotated[tuple[SecretStr, ...], NoDecode] = ()
    # Lets production use unencrypted connections to other machines.
    allow_plaintext: bool = False

    # JSON: [{"issuer": "https://…", "clientId": "…", "clientSecret": "…", "name": "…"}]
    oidc_issuers: Annotated[tuple[Issuer, ...], NoDecode] = ()
    # 32 bytes in base64. Wraps the data keys of all secrets in the database.
    secret_key: SecretStr = SecretStr(DEVELOPMENT_SECRET_KEY)
    # Previous keys, separated by commas. They still open the values that they sealed.
    secret_keys_old: Annotated[tuple[SecretStr, ...], NoDecode] = ()
    # 32 bytes in base64: the key that signs heads of the audit trail and receipts.
    audit_key: SecretStr = SecretStr(DEVELOPMENT_AUDIT_KEY)
    # Public keys of the past, separated by commas: `x` in /.well-known/audit-keys.json. They stay
    # published, because documents that they signed are still valid.
    audit_keys_old: Annotated[tuple[str, ...], NoDecode] = ()
    session_idle_days: Annotated[int, Field(ge=1)] = 30
    # Variant B: how many days a new account can use the connect pass for free.
    signup_trial_days: Annotated[int, Field(ge=0)] = 14
    # How many days the first subscription to a plan is free.
    plan_trial_days: Annotated[int, Field(ge=0, le=730)] = 0
    # How many days a plan continues after a renewal was not paid.
    grace_days: Annotated[int, Field(ge=0)] = 7

    # JSON: {"basic": 500, …}. A tier's monthly allowance in cents, if it differs from the variant's
    # figure.
    allowances: Annotated[dict[str, Annotated[int, Field(ge=0)]], NoDecode] = {}

    # Without a key, payments are off.
    stripe_secret_key: SecretStr | None = None
    # Separated by commas. All of them are accepted, so that a secret can be rotated.
    stripe_webhook_secrets: Annotated[tuple[SecretStr, ...], NoDecode] = ()
    # Another address with a Stripe-compatible API, such as a test server.
    stripe_api_url: str | None = None
    # Where a checkout sends people afterwards. The default is the dashboard's page about money.
    billing_return_url: str | None = None

    # JSON: {"tasks": 365, "steps": 90, "events": 90, "audit": 730}. After how many days what is
    # finished is deleted, in accounts that have set nothing. What is missing is kept for ever.
    retention_days: Annotated[RetentionDays, NoDecode] = {}
    # JSON: the least and the most days that an account can set. An account that keeps for ever is
    # limited by the most, too.
    retention_min_days: Annotated[RetentionDays, NoDecode] = {}
    retention_max_days: Annotated[RetentionDays, NoDecode] = {}
    # How often a worker looks for what to delete.
    retention_check_minutes: Annotated[float, Field(ge=0.5)] = 5

    # The mail server. Without a host, email is off.
    smtp_host: str | None = None
    smtp_port: Port = 587
    smtp_tls: Literal["starttls", "tls", "none"] = "starttls"
    # The authority that signed the certificate of the mail server, as a PEM file.
    smtp_ca_file: FilePath | None = None
    smtp_user: str | None = None
    smtp_password: SecretStr | None = None
    # The sender, such as `Rota <rota@example.com>`.
    smtp_from: str | None = None
    # After a notification, what happens within this time waits for one message about all of it.
    digest_minutes: Annotated[int, Field(ge=1, le=1_440)] = 15

    # How long a task waits for a person before it is cancelled.
    approval_days: Annotated[int, Field(ge=1)] = 7

    # JSON: {"default": {"provider": "openai", "model": "…", "apiKey": "…"}, "fast": …}
    # A name can also have a list of models: the next one takes over when one is not available.
    models: Annotated[dict[str, ModelChoice], NoDecode] = {}
    # The local model of `rota dev`. It is used for all agents if `models` is empty.
    model_url: str | None = None
    # Input that providers read from their caches does not count.
    run_max_tokens: Annotated[int, Field(ge=1)] = 10_000_000
    run_max_hours: Annotated[int, Field(ge=1)] = 24
    # A worker without a heartbeat for this long during a call is considered dead.
    run_heartbeat_s: Annotated[float, Field(gt=0)] = 15
    # The maximum number of runs that a worker carries forward at the same time.
    worker_calls: Annotated[int, Field(ge=1)] = 50
    # How long, and for how many model calls, a run keeps its place in a worker before another
    # account's run can take it.
    slice_seconds: Annotated[float, Field(gt=0)] = 20
    slice_steps: Annotated[int, Field(ge=1)] = 25

    # Networks (10.1.0.0/16) and host names that tool servers and webhooks can use although they are
    # not on the public internet.
    egress_allow: Annotated[tuple[str, ...], NoDecode] = ()
    # Timeouts for tool servers: to connect, and to respond to a call.
    mcp_connect_s: Annotated[float, Field(gt=0)] = 10
    mcp_call_s: Annotated[float, Field(gt=0)] = 60
    # The maximum number of open connections to tool servers per process, and how long an unused
    # one stays open.
    mcp_sessions: Annotated[int, Field(ge=1)] = 200
    mcp_idle_s: Annotated[float, Field(gt=0)] = 300
    # How often the workers check each tool server.
    mcp_check_minutes: Annotated[float, Field(gt=0)] = 15
    # How many agents the service's own MCP server lists as tools.
    mcp_agent_tools: Annotated[int, Field(ge=0, le=100)] = 20

    # How long an endpoint of a webhook has to respond.
    webhook_timeout_s: Annotated[float, Field(gt=0)] = 15
    # 32 bytes in base64 each, separated by commas. They sign webhooks (`v1a`), all of them, so that
    # a key can be replaced. Without one, the key is derived from `secret_key`.
    webhook_keys: Annotated[tuple[SecretStr, ...], NoDecode] = ()

    # A trace collector that accepts OTLP over HTTP, such as http://127.0.0.1:4318.
    otlp_endpoint: str | None = None
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["json", "console"] = "json"

    @field_validator("models", mode="before")
    @classmethod
    def _read_chains(cls, value: object) -> object:
        return read_chains(value)

    @field_validator(
        "trusted_proxies",
        "cors_origins",
        "egress_allow",
        "secret_keys_old",
        "audit_keys_old",
        "temporal_codec_keys_old",
        "stripe_webhook_secrets",
        "webhook_keys",
        mode="before",
    )
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("oidc_issuers", "models", "allowances", *RETENTION, mode="before")
    @classmethod
    def _from_json(cls, value: object) -> object:
        # The error of pydantic-settings for invalid JSON would not say what is wrong.
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except json.JSONDecodeError as error:
            raise ValueError(f"the value is not valid JSON: {error}") from None

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            ip_network(network, strict=False)
        return value

    @field_validator("cors_origins")
    @classmethod
    def _are_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            if not _ORIGIN.fullmatch(origin):
                raise ValueError(
                    f"{origin!r} is not an origin; write it as a browser sends it, such as "
                    "https://app.example.com"
                )
        return value

    @field_validator("secret_keys_old", "temporal_codec_keys_old", "webhook_keys")
    @classmethod
    def _are_keys(cls, value: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        return tuple(cls._is_key(key) for key in value)

    @field_validator("temporal_codec_key")
    @classmethod
    def _is_key_or_none(cls, value: SecretStr | None) -> SecretStr | None:
        return cls._is_key(value) if value is not None else None

    @field_validator("audit_keys_old")
    @classmethod
    def _are_public_keys(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for key in value:
            if not is_public_key(key):
                raise ValueError("must be public keys: copy `x` from /.well-known/audit-keys.json")
        return value

    @field_validator("secret_key", "audit_key")
    @classmethod
    def _is_key(cls, value: SecretStr) -> SecretStr:
        try:
            length = len(base64.b64decode(value.get_secret_value(), validate=True))
        except binascii.Error:
            length = 0
        if length != 32:
            raise ValueError("must be 32 bytes in base64; create one with: openssl rand -base64 32")
        return value

    @model_validator(mode="after")
    def _is_safe(self) -> Self:
        problems = list(general_problems(self))
        if self.env == "production":
            problems += self._production_problems()
        elif not is_loopback(self.host):
            problems += (
                f"{name} must be set if ROTA_HOST is {self.host}: the default is public. "
                "Create one with: openssl rand -base64 32"
                for name in self._public_keys()
            )
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _production_problems(self) -> Iterator[str]:
        return production_problems(self)

    def _public_keys(self) -> Iterator[str]:
        """The variables of keys that must be secret and have a public default."""
        if self.has_public_secret_key:
            yield "ROTA_SECRET_KEY"
        if self.has_public_audit_key:
            yield "ROTA_AUDIT_KEY"

    @property
    def has_public_secret_key(self) -> bool:
        return self.secret_key.get_secret_value() == DEVELOPMENT_SECRET_KEY

    @property
    def has_public_audit_key(self) -> bool:
        return self.audit_key.get_secret_value() == DEVELOPMENT_AUDIT_KEY

    @property
    def uses_temporal_tls(self) -> bool:
        return self.temporal_tls or any(
            (
                self.temporal_tls_ca_file,
                self.temporal_tls_server_name,
                self.temporal_tls_cert_file,
                self.temporal_api_key,
            )
        )

    @cached_property
    def temporal_codec_keys(self) -> tuple[bytes | None, ...]:
        """The key that encrypts, if any, then those that only decrypt."""
        keys = (self.temporal_codec_key, *self.temporal_codec_keys_old)
        return tuple(base64.b64decode(key.get_secret_value()) if key else None for key in keys)

    @property
    def return_url(self) -> str:
        """Where the payment processor sends people after a checkout."""
        return self.billing_return_url or f"{self.public_url}/money"

    @cached_property
    def trusted_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        return tuple(ip_network(network, strict=False) for network in self.trusted_proxies)

    @cached_property
    def secret_keys(self) -> tuple[bytes, ...]:
        """The current key, then the previous ones."""
        old = (base64.b64decode(key.get_secret_value()) for key in self.secret_keys_old)
        return (self.secret_key_bytes, *old)

    @cached_property
    def audit_key_bytes(self) -> bytes:
        return base64.b64decode(self.audit_key.get_secret_value())

    @cached_property
    def secret_key_bytes(self) -> bytes:
        return base64.b64decode(self.secret_key.get_secret_value())


class OperatorSettings(Settings):
    """The settings of a command that uses the database and serves nothing: it needs only what
    protects the database and its secrets."""

    def _production_problems(self) -> Iterator[str]:
        return storage_problems(self)

    def _public_keys(self) -> Iterator[str]:
        if self.has_public_secret_key:
            yield "ROTA_SECRET_KEY"


def unknown_variables() -> dict[str, str | None]:
    """The ROTA_* variables that are not settings, each with the setting that was probably meant."""
    known = [f"{PREFIX}{name.upper()}" for name in Settings.model_fields]
    found = [name for name in os.environ if name.startswith(PREFIX)]
    return {
        name: nearest(name, known)
        for name in found
        if name not in known and name not in CLIENT_VARIABLES
    }
