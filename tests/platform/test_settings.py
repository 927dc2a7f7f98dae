"""Settings reject unsafe values and name the variable to fix."""

import base64
import json
import os
from contextlib import suppress
from ipaddress import ip_network
from pathlib import Path

import pytest
import typer
from pydantic import ValidationError

from rota.cli.runtime import load_settings
from rota.platform.settings import (
    DEVELOPMENT_AUDIT_KEY,
    DEVELOPMENT_SECRET_KEY,
    OperatorSettings,
    Settings,
    unknown_variables,
)
from tests import forks

KEY, AUDIT_KEY = (base64.b64encode(letter * 32).decode() for letter in (b"k", b"a"))
ISSUER = {"issuer": "https://id.example.test", "clientId": "rota", "name": "Example"}
PRODUCTION: dict[str, str] = {
    "ROTA_ENV": "production",
    "ROTA_SECRET_KEY": KEY,
    "ROTA_AUDIT_KEY": AUDIT_KEY,
    "ROTA_OIDC_ISSUERS": json.dumps([ISSUER]),
    "ROTA_METRICS_PORT": "9100",
    "ROTA_PUBLIC_URL": "https://rota.example.test",
}
ZERO_KEY = base64.b64encode(bytes(32)).decode()


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in [name for name in os.environ if name.startswith("ROTA_")]:
        monkeypatch.delenv(name)
    return monkeypatch


def read(environment: pytest.MonkeyPatch, **variables: str | None) -> Settings:
    for name, value in variables.items():
        if value is not None:
            environment.setenv(name, value)
    return Settings()


def error_of(environment: pytest.MonkeyPatch, **variables: str | None) -> str:
    """The field and the message of the validation error."""
    with pytest.raises(ValidationError) as raised:
        read(environment, **variables)
    (error,) = raised.value.errors()
    return " ".join(["_".join(map(str, error["loc"])), error["msg"]])


def test_production_with_everything_set_starts(environment: pytest.MonkeyPatch) -> None:
    settings = read(environment, **PRODUCTION)
    assert settings.oidc_issuers[0].client_id == "rota"
    assert settings.secret_key_bytes == b"k" * 32


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ROTA_SECRET_KEY", None),
        ("ROTA_SECRET_KEY", DEVELOPMENT_SECRET_KEY),
        ("ROTA_OIDC_ISSUERS", None),
        ("ROTA_OIDC_ISSUERS", "[]"),
        ("ROTA_OIDC_ISSUERS", json.dumps([ISSUER, ISSUER | {"issuer": "http://id.example.test"}])),
        ("ROTA_METRICS_PORT", None),
        ("ROTA_SECRET_KEY", ZERO_KEY),
        ("ROTA_AUDIT_KEY", None),
        ("ROTA_AUDIT_KEY", DEVELOPMENT_AUDIT_KEY),
        ("ROTA_AUDIT_KEY", ZERO_KEY),
        ("ROTA_AUDIT_KEY", KEY),
        ("ROTA_PUBLIC_URL", None),
        ("ROTA_PUBLIC_URL", "http://rota.example.test"),
        ("ROTA_DATABASE_URL", "postgresql://rota@db.example.test/rota"),
        ("ROTA_DATABASE_URL", "postgresql://rota@127.0.0.1,10.0.0.7:5433/rota?sslmode=prefer"),
        ("ROTA_DATABASE_URL", "postgresql:///rota?host=db.example.test"),
        ("ROTA_MIGRATION_DATABASE_URL", "postgres://rota@[2001:db8::1]:5432/rota?sslmode=allow"),
        ("ROTA_REDIS_URL", "redis://:word@redis.example.test:6379/0"),
        ("ROTA_TEMPORAL_TLS", None),
    ],
)
def test_production_rejects_unsafe_values_and_names_the_variable(
    environment: pytest.MonkeyPatch, variable: str, value: str | None
) -> None:
    away = {"ROTA_TEMPORAL_ADDRESS": "temporal.example.test:7233", "ROTA_TEMPORAL_TLS": "true"}
    environment.delenv(variable, raising=False)
    changed = PRODUCTION | away | {variable: value}
    assert variable in error_of(environment, **changed)


def test_production_shows_all_problems_at_once(environment: pytest.MonkeyPatch) -> None:
    error = error_of(
        environment,
        ROTA_ENV="production",
        ROTA_DATABASE_URL="postgresql://rota@db.example.test/rota",
        ROTA_REDIS_URL="redis://redis.example.test:6379/0",
        ROTA_TEMPORAL_ADDRESS="temporal.example.test:7233",
    )
    for name in (
        *("SECRET_KEY", "AUDIT_KEY", "OIDC_ISSUERS", "METRICS_PORT", "PUBLIC_URL"),
        *("DATABASE_URL", "REDIS_URL", "TEMPORAL_TLS", "ALLOW_PLAINTEXT"),
    ):
        assert f"ROTA_{name}" in error


@pytest.mark.parametrize(
    "variables",
    [
        {"ROTA_DATABASE_URL": "postgresql://rota@db.example.test/rota?sslmode=verify-full"},
        {"ROTA_DATABASE_URL": "postgresql://rota@/rota?host=/run/postgresql"},
        {"ROTA_DATABASE_URL": "postgresql://rota@%2Frun%2Fpostgresql/rota"},
        {"ROTA_DATABASE_URL": "postgres://rota@[::1]:5432,127.0.0.1/rota"},
        {"ROTA_DATABASE_URL": "postgres://rota@db/rota", "PGSSLMODE": "require"},
        {"ROTA_REDIS_URL": "rediss://redis.example.test:6379/0"},
        {"ROTA_REDIS_URL": "unix:///run/redis.sock"},
        {"ROTA_TEMPORAL_ADDRESS": "temporal.example.test:7233", "ROTA_TEMPORAL_API_KEY": "word"},
        {
            "ROTA_ALLOW_PLAINTEXT": "true",
            "ROTA_DATABASE_URL": "postgresql://rota@10.0.0.7/rota",
            "ROTA_REDIS_URL": "redis://10.0.0.8:6379/0",
            "ROTA_TEMPORAL_ADDRESS": "10.0.0.9:7233",
        },
    ],
)
def test_production_accepts_encrypted_local_and_private_connections(
    environment: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    assert read(environment, **PRODUCTION | variables).env == "production"


@pytest.mark.parametrize("env", ["development", "test", "production"])
@pytest.mark.parametrize(
    ("name", "key"),
    [("ROTA_SECRET_KEY", DEVELOPMENT_SECRET_KEY), ("ROTA_AUDIT_KEY", DEVELOPMENT_AUDIT_KEY)],
)
def test_the_development_keys_are_refused_on_other_addresses(
    environment: pytest.MonkeyPatch, env: str, name: str, key: str
) -> None:
    variables = PRODUCTION | {"ROTA_ENV": env, name: key}
    assert f"{name} must be set" in error_of(environment, **variables, ROTA_HOST="0.0.0.0")


@pytest.mark.parametrize("env", ["development", "production"])
def test_a_command_of_an_operator_needs_no_audit_key(
    environment: pytest.MonkeyPatch, env: str
) -> None:
    for name, value in (PRODUCTION | {"ROTA_ENV": env, "ROTA_HOST": "0.0.0.0"}).items():
        environment.setenv(name, value)
    environment.delenv("ROTA_AUDIT_KEY")
    assert OperatorSettings().has_public_audit_key


def test_a_client_certificate_needs_its_key(
    environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cert.pem").write_text("x")
    error = error_of(environment, ROTA_TEMPORAL_TLS_CERT_FILE=str(tmp_path / "cert.pem"))
    assert "ROTA_TEMPORAL_TLS_KEY_FILE" in error
    absent = str(tmp_path / "absent.pem")
    assert "temporal_tls_ca_file" in error_of(environment, ROTA_TEMPORAL_TLS_CA_FILE=absent)


@pytest.mark.parametrize(
    "value", ["", "short", "not base64 !", base64.b64encode(b"k" * 31).decode()]
)
def test_an_invalid_secret_key_is_rejected(environment: pytest.MonkeyPatch, value: str) -> None:
    error = error_of(environment, ROTA_SECRET_KEY=value)
    assert error.startswith("secret_key")
    assert "openssl rand -base64 32" in error


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ROTA_OIDC_ISSUERS", "not json"),
        ("ROTA_OIDC_ISSUERS", '{"issuer": "x"}'),
        ("ROTA_TRUSTED_PROXIES", "10.0.0.0/8, nonsense"),
        ("ROTA_PORT", "http"),
        ("ROTA_VARIANT", "c"),
        ("ROTA_PROCESSES", "0"),
        ("ROTA_DATABASE_POOL_SIZE", "0"),
        ("ROTA_LOG_LEVEL", "loud"),
    ],
)
def test_an_invalid_value_is_rejected_with_its_name(
    environment: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    assert error_of(environment, **{variable: value}).startswith(
        variable.removeprefix("ROTA_").lower()
    )


@pytest.mark.parametrize(
    ("variable", "value", "place", "suggestion"),
    [
        (
            "ROTA_MODELS",
            {"default": {"model": "m", "apikey": "sk-hush"}},
            "models_default_apikey",
            "`apiKey`",
        ),
        (
            "ROTA_OIDC_ISSUERS",
            [ISSUER | {"clientID": "x"}],
            "oidc_issuers_0_clientID",
            "`clientId`",
        ),
    ],
)
def test_an_unknown_field_inside_json_is_refused_with_the_nearest_name(
    environment: pytest.MonkeyPatch, variable: str, value: object, place: str, suggestion: str
) -> None:
    error = error_of(environment, **{variable: json.dumps(value)})
    assert error == f"{place} Unknown field. Did you mean {suggestion}?"
    with pytest.raises(ValidationError) as raised:
        Settings()
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(
    ("prices", "error"),
    [
        ({"inputUsdPerMillion": 1}, "or neither"),
        ({"outputUsdPerMillion": 1}, "or neither"),
        ({"cachedInputUsdPerMillion": 0.1}, "cachedInputUsdPerMillion needs inputUsdPerMillion"),
        ({"inputUsdPerMillion": -1, "outputUsdPerMillion": 1}, "greater than or equal to 0"),
        ({"inputUsdPerMillion": "NaN", "outputUsdPerMillion": 1}, "finite"),
        ({"free": True, "inputUsdPerMillion": 1, "outputUsdPerMillion": 1}, "cannot have prices"),
        ({"free": True, "cachedInputUsdPerMillion": 1}, "cannot have prices"),
        ({"cacheWriteUsdPerMillion": 0.1}, "cacheWriteUsdPerMillion needs inputUsdPerMillion"),
        ({"free": True, "cacheWriteUsdPerMillion": 1}, "cannot have prices"),
    ],
)
def test_an_incomplete_or_contradictory_price_of_a_model_is_refused(
    environment: pytest.MonkeyPatch, prices: dict[str, object], error: str
) -> None:
    models = json.dumps({"fast": {"model": "m"} | prices})
    refused = error_of(environment, ROTA_MODELS=models)
    assert refused.startswith("models_fast")
    assert error in refused


def test_a_model_name_can_have_a_list_of_models(environment: pytest.MonkeyPatch) -> None:
    listed = [{"model": "first"}, {"model": "second", "apiKey": "k"}, {"model": "third"}]
    chain = read(environment, ROTA_MODELS=json.dumps({"fast": listed})).models["fast"]
    assert chain.model == "first"
    assert [choice.model for choice in chain.fallbacks] == ["second", "third"]
    listed[1] = {"model": "second", "apikey": "k"}
    error = error_of(environment, ROTA_MODELS=json.dumps({"fast": listed}))
    assert error == "models_fast_fallbacks_0_apikey Unknown field. Did you mean `apiKey`?"
    assert error_of(environment, ROTA_MODELS='{"fast": []}').startswith("models_fast")


@pytest.mark.parametrize(
    "nested",
    [
        [{"model": "first", "fallbacks": [{"model": "second"}]}, {"model": "third"}],
        [{"model": "first"}, {"model": "second", "fallbacks": [{"model": "third"}]}],
        {
            "model": "first",
            "fallbacks": [{"model": "second", "fallbacks": [{"model": "third"}]}],
        },
    ],
)
def test_a_chain_inside_a_chain_is_refused(environment: pytest.MonkeyPatch, nested: object) -> None:
    error = error_of(environment, ROTA_MODELS=json.dumps({"fast": nested}))
    assert error.startswith("models")
    assert "put all models into one list" in error


def test_the_prices_of_a_model_can_be_zero(environment: pytest.MonkeyPatch) -> None:
    prices = {"inputUsdPerMillion": 0, "outputUsdPerMillion": 0, "cachedInputUsdPerMillion": 0}
    settings = read(environment, ROTA_MODELS=json.dumps({"fast": {"model": "m"} | prices}))
    assert settings.models["fast"].output_usd_per_million == 0


@pytest.mark.parametrize(
    "value", ["*", "app.example.com", "https://app.example.com/", "https://a.test/x", "null"]
)
def test_a_cors_origin_that_no_browser_sends_is_refused(
    environment: pytest.MonkeyPatch, value: str
) -> None:
    assert error_of(environment, ROTA_CORS_ORIGINS=value).startswith("cors_origins")


def test_unknown_variables_are_found_with_the_nearest_setting(
    environment: pytest.MonkeyPatch,
) -> None:
    environment.setenv("ROTA_PROT", "1")
    environment.setenv("ROTA_PORT", "1")
    environment.setenv("ROTA_QQQQQQQQQQQQQQQQQQQQQQ", "1")
    assert unknown_variables() == {"ROTA_PROT": "ROTA_PORT", "ROTA_QQQQQQQQQQQQQQQQQQQQQQ": None}


def test_trusted_proxies_are_separated_by_commas(environment: pytest.MonkeyPatch) -> None:
    settings = read(environment, ROTA_TRUSTED_PROXIES="10.0.0.0/8, ::1,192.0.2.7/24 ,")
    assert settings.trusted_networks == (
        ip_network("10.0.0.0/8"),
        ip_network("::1"),
        ip_network("192.0.2.0/24"),
    )


def test_secrets_are_hidden_in_the_repr(environment: pytest.MonkeyPatch) -> None:
    settings = read(environment, ROTA_DATABASE_URL="postgresql://rota:hush@db/rota")
    assert "hush" not in repr(settings)


SETTINGS = [f"ROTA_{name.upper()}" for name in Settings.model_fields]


@pytest.mark.parametrize("variable", SETTINGS)
def test_a_value_that_is_half_of_a_json_text_is_accepted_or_named(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str
) -> None:
    environment.setenv(variable, "{")
    # Some settings are texts, so they accept it.
    with suppress(typer.Exit):
        load_settings()
    said = capsys.readouterr().err
    assert not said or variable in said
    if variable in ("ROTA_MODELS", "ROTA_ALLOWANCES", "ROTA_OIDC_ISSUERS"):
        assert said.startswith(f"{variable}: the value is not valid JSON: ")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"cliClientSecret": "word"}, "oidc_issuers_0 Value error, cliClientSecret needs"),
        ({"cliClientId": ""}, "oidc_issuers_0_cliClientId String should have at least 1"),
        ({"cliRedirectUri": "http://localhost:65536/callback"}, "oidc_issuers_0_cliRedirectUri"),
        ({"cliRedirectUri": "https://localhost:8400/callback"}, "oidc_issuers_0_cliRedirectUri"),
        ({"cliRedirectUri": "http://example.test:80/callback"}, "oidc_issuers_0_cliRedirectUri"),
    ],
)
def test_a_client_of_the_command_line_that_cannot_work_is_refused(
    environment: pytest.MonkeyPatch, fields: dict[str, str], error: str
) -> None:
    issuers = json.dumps([ISSUER | fields])
    assert error_of(environment, ROTA_OIDC_ISSUERS=issuers).startswith(error)


async def serve_error(**settings: str) -> str:
    """What `rota serve` prints if it has only these settings, and does not start."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("ROTA_")}
    code, _, error = await forks.ended("rota.cli", "serve", env=variables | settings)
    assert code == 2
    return error.strip()


async def test_the_command_names_the_field_inside_a_variable() -> None:
    models = json.dumps({"default": {"model": "m", "apikey": "sk-hush"}})
    expected = "ROTA_MODELS: default.apikey: Unknown field. Did you mean `apiKey`?"
    assert await serve_error(ROTA_MODELS=models) == expected


async def test_the_command_names_the_variable_to_fix() -> None:
    error = await serve_error(ROTA_ENV="production", ROTA_PORT="1")
    assert "ROTA_SECRET_KEY" in error
    assert "Traceback" not in error
