"""Every setting of the service, read once from `ROTA_*` environment variables.

Nothing else in the package reads the environment. Composition roots build a
`Settings` and hand the parts of it to whoever needs them.
"""

import base64
import binascii
import json
from decimal import Decimal
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator
from pydantic.alias_generators import to_camel
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

DAY_S = 86_400

# Good enough to sign in on a laptop, refused in production.
DEVELOPMENT_SECRET_KEY = base64.b64encode(b"rota-development-key-not-secret!").decode()


class Issuer(BaseModel):
    """An identity provider whose ID tokens are accepted."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    issuer: str
    client_id: str
    name: str = "Sign in"


class ModelChoice(BaseModel):
    """A model that agents can use, and how to reach it."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, protected_namespaces=()
    )

    provider: Literal["openai", "anthropic", "google"] = "openai"
    model: str
    # Anything that speaks OpenAI's protocol, with the provider `openai`.
    base_url: str | None = None
    api_key: SecretStr | None = None
    # Prices of the operator's own; without them a public table is asked.
    input_usd_per_million: Decimal | None = None
    output_usd_per_million: Decimal | None = None
    free: bool = False
    # No answer is longer than this.
    max_output_tokens: Annotated[int, Field(ge=64)] = 8_192
    # Sent along with every request: {"temperature": 0.2, …}
    settings: dict[str, float] = {}


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="ROTA_", frozen=True, extra="ignore")

    env: Literal["development", "test", "production"] = "development"
    variant: Literal["a", "b"] = "a"

    host: str = "127.0.0.1"
    port: int = 8080
    # /metrics is here and nowhere else; unset, it is on the main port. Production must set it.
    metrics_port: int | None = None
    public_url: str = "http://127.0.0.1:8080"
    # Service processes that run beside each other. The limiter that stands in
    # while Redis is away gives each process its share of a ceiling.
    processes: Annotated[int, Field(ge=1)] = 1
    # Only these peers may say who the client is with X-Forwarded-For.
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = ()
    shutdown_grace_s: float = 20

    database_url: SecretStr = SecretStr("postgresql://rota@127.0.0.1:5432/rota")
    # Who applies migrations, where that is another role than the service's own.
    migration_database_url: SecretStr | None = None
    database_pool_size: Annotated[int, Field(ge=1)] = 10
    redis_url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    temporal_address: str = "127.0.0.1:7233"
    temporal_namespace: str = "default"

    # JSON: [{"issuer": "https://…", "clientId": "…", "name": "…"}]
    oidc_issuers: Annotated[tuple[Issuer, ...], NoDecode] = ()
    # 32 bytes, base64. Wraps everything secret that is kept in the database.
    secret_key: SecretStr = SecretStr(DEVELOPMENT_SECRET_KEY)
    # Keys from before, separated by commas: they still open what they sealed.
    secret_keys_old: Annotated[tuple[SecretStr, ...], NoDecode] = ()
    session_idle_days: Annotated[int, Field(ge=1)] = 30
    # Days that a new account of Variant B may use what the pass gives.
    signup_trial_days: Annotated[int, Field(ge=0)] = 14
    # Days that a first subscription to a plan is free.
    plan_trial_days: Annotated[int, Field(ge=0, le=730)] = 0
    # Days that a plan goes on when a renewal was not paid.
    grace_days: Annotated[int, Field(ge=0)] = 7

    # JSON: {"basic": 500, …}. What accounts of a tier may spend each month, in cents, where it is
    # not the variant's own figure.
    allowances: dict[str, Annotated[int, Field(ge=0)]] = {}

    # Without a key nothing is sold.
    stripe_secret_key: SecretStr | None = None
    # Separated by commas: each is good, so that one can take the place of another.
    stripe_webhook_secrets: Annotated[tuple[SecretStr, ...], NoDecode] = ()
    # Another address than Stripe's own, such as that of a stand-in.
    stripe_api_url: str | None = None
    # Where people come back to after they paid; unset, it is /billing of the public URL.
    billing_return_url: str | None = None

    # How long a task waits for a person before it is cancelled.
    approval_days: Annotated[int, Field(ge=1)] = 7

    # JSON: {"default": {"provider": "openai", "model": "…", "apiKey": "…"}, "fast": …}
    models: dict[str, ModelChoice] = {}
    # The local model of `rota dev`, used for everything while `models` is empty.
    model_url: str | None = None
    run_max_tokens: Annotated[int, Field(ge=1)] = 1_000_000
    run_max_hours: Annotated[int, Field(ge=1)] = 24
    # A worker that is silent for this long in a call is taken for dead.
    run_heartbeat_s: Annotated[float, Field(gt=0)] = 15
    # Model and tool calls under way at once in one worker.
    worker_calls: Annotated[int, Field(ge=1)] = 50

    # Networks (10.1.0.0/16) and host names that tool servers and webhooks may be at although
    # they are not in the open internet.
    egress_allow: Annotated[tuple[str, ...], NoDecode] = ()
    # How long a tool server may take: to be connected to, and to answer a call.
    mcp_connect_s: Annotated[float, Field(gt=0)] = 10
    mcp_call_s: Annotated[float, Field(gt=0)] = 60
    # Open connections to tool servers in one process, and how long one stays unused.
    mcp_sessions: Annotated[int, Field(ge=1)] = 200
    mcp_idle_s: Annotated[float, Field(gt=0)] = 300
    # Each tool server is looked at this often by the workers.
    mcp_check_minutes: Annotated[float, Field(gt=0)] = 15

    # A collector that takes OTLP over HTTP, such as http://127.0.0.1:4318.
    otlp_endpoint: str | None = None
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["json", "console"] = "json"

    @field_validator(
        "trusted_proxies",
        "egress_allow",
        "secret_keys_old",
        "stripe_webhook_secrets",
        mode="before",
    )
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("oidc_issuers", mode="before")
    @classmethod
    def _from_json(cls, value: object) -> object:
        # Here and not by pydantic-settings, whose own error says neither where nor what.
        return json.loads(value) if isinstance(value, str) else value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            ip_network(network, strict=False)
        return value

    @field_validator("secret_keys_old")
    @classmethod
    def _are_keys(cls, value: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        return tuple(cls._is_key(key) for key in value)

    @field_validator("secret_key")
    @classmethod
    def _is_key(cls, value: SecretStr) -> SecretStr:
        try:
            length = len(base64.b64decode(value.get_secret_value(), validate=True))
        except binascii.Error:
            length = 0
        if length != 32:
            raise ValueError("must be 32 bytes in base64; make one with: openssl rand -base64 32")
        return value

    @model_validator(mode="after")
    def _is_safe_in_production(self) -> Self:
        if self.env != "production":
            return self
        if self.secret_key.get_secret_value() == DEVELOPMENT_SECRET_KEY:
            raise ValueError("ROTA_SECRET_KEY must be set in production: openssl rand -base64 32")
        if not self.oidc_issuers:
            raise ValueError("ROTA_OIDC_ISSUERS must name at least one issuer in production")
        if insecure := [i.issuer for i in self.oidc_issuers if not i.issuer.startswith("https://")]:
            raise ValueError(
                f"ROTA_OIDC_ISSUERS must be https in production, and not {', '.join(insecure)}"
            )
        if self.metrics_port is None:
            raise ValueError(
                "ROTA_METRICS_PORT must be set in production: /metrics asks nobody who they are"
            )
        if self.stripe_secret_key and not self.stripe_webhook_secrets:
            raise ValueError(
                "ROTA_STRIPE_WEBHOOK_SECRETS must be set with ROTA_STRIPE_SECRET_KEY: without it "
                "nobody gets what they paid for"
            )
        return self

    @property
    def return_url(self) -> str:
        """Where people come back to from the payment processor's page."""
        return self.billing_return_url or f"{self.public_url}/billing"

    @cached_property
    def trusted_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        return tuple(ip_network(network, strict=False) for network in self.trusted_proxies)

    @cached_property
    def secret_keys(self) -> tuple[bytes, ...]:
        """The key that seals, and those from before it."""
        old = (base64.b64decode(key.get_secret_value()) for key in self.secret_keys_old)
        return (self.secret_key_bytes, *old)

    @cached_property
    def secret_key_bytes(self) -> bytes:
        return base64.b64decode(self.secret_key.get_secret_value())
