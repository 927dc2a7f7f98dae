"""`rota admin doctor` and the start of a process name what is wrong and what to do."""

import asyncio
import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from typer.testing import CliRunner

from rota.app import create_app
from rota.cli import cli
from rota.platform.database_errors import EXPLAINED, explain
from rota.platform.settings import Settings
from rota.platform.start_checks import StartRefused
from rota.worker import run_worker
from tests.doctor.conftest import Installation

OTHER_KEY = base64.b64encode(b"o" * 32).decode()
# Port 1 of this machine, where nothing listens.
NOWHERE = "127.0.0.1:1"
Variables = dict[str, str]
Change = Callable[[Installation], Variables]


def setting(**variables: str) -> Change:
    return lambda _: {f"ROTA_{name}": value for name, value in variables.items()}


def database(**changes: str) -> Change:
    return lambda installed: {"ROTA_DATABASE_URL": installed.database(**changes)}


def models(**changes: Any) -> Change:
    return lambda installed: {"ROTA_MODELS": installed.models(**changes)}


# What is changed in an installation that works, the check that fails, and what its line contains.
INVALID: dict[str, tuple[Change, str, str]] = {
    "a port that is not a number": (setting(PORT="http"), "settings", "ROTA_PORT"),
    "a port that is too large": (setting(PORT="99999"), "settings", "ROTA_PORT"),
    "a key that is too short": (setting(SECRET_KEY="c2hvcnQ="), "settings", "openssl rand"),
    "models that are not JSON": (setting(MODELS="gpt-5"), "settings", "ROTA_MODELS: the value is"),
    "a typo in a model": (
        setting(MODELS='{"default": {"model": "m", "apikey": "k"}}'),
        "settings",
        "ROTA_MODELS: default.apikey: Unknown field. Did you mean `apiKey`?",
    ),
    "allowances that are not JSON": (
        setting(ALLOWANCES="basic=500"),
        "settings",
        "ROTA_ALLOWANCES: the value is not valid JSON",
    ),
    "issuers that are not JSON": (
        setting(OIDC_ISSUERS="https://id.example.test"),
        "settings",
        "ROTA_OIDC_ISSUERS: the value is not valid JSON",
    ),
    "a typo in an issuer": (
        setting(OIDC_ISSUERS='[{"issuer": "https://id.example.test", "client": "c"}]'),
        "settings",
        "Did you mean `clientId`?",
    ),
    "Redis without a scheme": (
        setting(REDIS_URL="redis.example.test:6379"),
        "settings",
        "ROTA_REDIS_URL must start with one of redis://",
    ),
    "Temporal with a scheme": (
        setting(TEMPORAL_ADDRESS="https://temporal.example.test"),
        "settings",
        "ROTA_TEMPORAL_ADDRESS must be a host and a port",
    ),
    "a public URL without a scheme": (
        setting(PUBLIC_URL="rota.example.test"),
        "settings",
        "ROTA_PUBLIC_URL must start with https://",
    ),
    "a certificate without its key": (
        setting(TEMPORAL_TLS_CERT_FILE=__file__),
        "settings",
        "ROTA_TEMPORAL_TLS_KEY_FILE",
    ),
    "a file that does not exist": (
        setting(REDIS_CA_FILE="/nowhere.pem"),
        "settings",
        "ROTA_REDIS_CA_FILE: Path does not point to a file",
    ),
    "production without its own key": (
        setting(ENV="production"),
        "settings",
        "ROTA_SECRET_KEY must be set in production",
    ),
    "production without a key for audits": (
        setting(ENV="production"),
        "settings",
        "ROTA_AUDIT_KEY must be set in production",
    ),
    "an audit key that is too short": (
        setting(AUDIT_KEY="c2hvcnQ="),
        "settings",
        "ROTA_AUDIT_KEY: must be 32 bytes in base64; create one with: openssl rand",
    ),
    "an old audit key that is not a key": (
        setting(AUDIT_KEYS_OLD="old"),
        "settings",
        "copy `x` from /.well-known/audit-keys.json",
    ),
    "the public keys on an address that others reach": (
        setting(HOST="0.0.0.0"),
        "settings",
        "ROTA_AUDIT_KEY must be set if ROTA_HOST is 0.0.0.0",
    ),
    "production without a port for metrics": (
        setting(ENV="production"),
        "settings",
        "ROTA_METRICS_PORT must be set in production",
    ),
}
# The same, for what is wrong with the parts. None of these starts.
UNUSABLE: dict[str, tuple[Change, str, str]] = {
    "a database URL that is none": (
        setting(DATABASE_URL="rota"),
        "postgres",
        "ROTA_DATABASE_URL is not a PostgreSQL URL",
    ),
    "a database host without an address": (
        database(host="db.invalid:5432"),
        "postgres",
        "Correct the host in ROTA_DATABASE_URL",
    ),
    "a database that does not respond": (
        database(host=NOWHERE),
        "postgres",
        "Check that PostgreSQL runs",
    ),
    "an unknown login": (
        database(login="nobody:word"),
        "postgres",
        "Correct the user and the password in ROTA_DATABASE_URL",
    ),
    "an unknown database": (database(name="nothing"), "postgres", "Create it, then run: rota"),
    "TLS that the database does not have": (
        database(options="?sslmode=require"),
        "postgres",
        "Correct sslmode",
    ),
    "a database without tables": (database(name="unmigrated"), "schema", "Run: rota admin migrate"),
    "a database with another encoding": (
        database(name="ascii"),
        "schema",
        "encoding SQL_ASCII, which cannot be changed. Create another one: CREATE DATABASE",
    ),
    "another secret key": (
        setting(SECRET_KEY=OTHER_KEY),
        "secret key",
        "add it to ROTA_SECRET_KEYS_OLD",
    ),
    "a wrong password for Redis": (
        lambda installed: {
            "ROTA_REDIS_URL": installed.variables["ROTA_REDIS_URL"].replace(
                "redis://:", "redis://:x"
            )
        },
        "redis",
        "Correct the user and the password in ROTA_REDIS_URL",
    ),
}
# The same. `rota serve` starts with these, and a worker does not.
UNUSABLE_FOR_WORKERS: dict[str, tuple[Change, str, str]] = {
    "a login without the role of workers": (
        database(login="no_relay:word"),
        "login",
        "GRANT rota_relay TO",
    ),
    "an unknown namespace": (
        setting(TEMPORAL_NAMESPACE="nothing"),
        "temporal",
        "temporal operator namespace create --namespace nothing",
    ),
    "a model without a price": (
        models(free=None),
        "models",
        "Set inputUsdPerMillion and outputUsdPerMillion",
    ),
    "a model without a key": (models(baseUrl=None, apiKey=None), "models", "Set apiKey"),
}
# The same. Everything starts, because these can change or recover while it runs.
UNREACHABLE: dict[str, tuple[Change, str, str]] = {
    "a host without an address": (
        setting(REDIS_URL="redis://redis.invalid:6379/0"),
        "dns",
        "Correct it in ROTA_REDIS_URL",
    ),
    "Redis that does not respond": (
        setting(REDIS_URL=f"redis://{NOWHERE}/0"),
        "redis",
        "Correct ROTA_REDIS_URL",
    ),
    "Temporal that does not respond": (
        setting(TEMPORAL_ADDRESS=NOWHERE),
        "temporal",
        "Correct ROTA_TEMPORAL_ADDRESS",
    ),
    "an issuer that does not respond": (
        setting(OIDC_ISSUERS=f'[{{"issuer": "http://{NOWHERE}", "clientId": "c"}}]'),
        "issuers",
        "Correct `issuer` in ROTA_OIDC_ISSUERS",
    ),
    "a model server that does not respond": (
        models(baseUrl=f"http://{NOWHERE}/v1"),
        "models",
        "Check baseUrl",
    ),
    "a key that the provider refuses": (models(apiKey="wrong"), "models", "refused the API key"),
    "a model that the provider lacks": (models(model="large"), "models", "Correct its name"),
    "an agent whose model is missing": (
        setting(MODELS='{"one": {"model": "m", "baseUrl": "http://127.0.0.1:1", "free": true}}'),
        "models",
        "Add it, or change the agent.",
    ),
    "no models": (setting(MODELS="{}"), "models", "Set ROTA_MODELS"),
    "Stripe that does not respond": (
        setting(STRIPE_SECRET_KEY="sk_test_1", STRIPE_API_URL=f"http://{NOWHERE}"),
        "payments",
        "Correct ROTA_STRIPE_SECRET_KEY",
    ),
    "a trace collector that does not respond": (
        setting(OTLP_ENDPOINT=f"http://{NOWHERE}"),
        "tracing",
        "Correct ROTA_OTLP_ENDPOINT",
    ),
}
WARNED: dict[str, tuple[Change, str, str]] = {
    "an unknown setting": (
        setting(DATABASE_POOLSIZE="5"),
        "settings",
        "Rename it to ROTA_DATABASE_POOL_SIZE.",
    ),
    "accounts that cannot pay": (setting(ALLOWANCES="{}"), "payments", "Set ROTA_ALLOWANCES"),
    "no issuers": (setting(OIDC_ISSUERS="[]"), "issuers", "Set ROTA_OIDC_ISSUERS"),
    "a public URL of another service": (
        setting(PUBLIC_URL=f"http://{NOWHERE}"),
        "public url",
        "correct ROTA_PUBLIC_URL",
    ),
}


@pytest.fixture(autouse=True)
def with_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other tests of this process need them."""
    monkeypatch.setattr("rota.cli.doctor.silence_logs", lambda: None)


async def doctor(variables: Variables, *options: str) -> tuple[int, dict[str, Any]]:
    result = await asyncio.to_thread(
        CliRunner().invoke, cli, ["admin", "doctor", "--json", *options], env=variables
    )
    # The services in this process log to the same output.
    start = result.stdout.find('{\n  "ok"')
    assert start >= 0, result.output + repr(result.exception)
    report: dict[str, Any] = json.JSONDecoder().raw_decode(result.stdout[start:])[0]
    return result.exit_code, report


async def test_an_installation_that_works_passes_every_check(installation: Installation) -> None:
    code, report = await doctor(dict(installation.variables))
    # No worker runs here.
    wrong = [each for each in report["checks"] if each["status"] != "ok"]
    assert [each["check"] for each in wrong] == ["workers"], wrong
    assert (code, report["ok"]) == (0, True)
    answered = [each for each in report["checks"] if each["message"].startswith("default (small)")]
    assert "answered in" in answered[0]["message"]


@pytest.mark.parametrize("name", [*INVALID, *UNUSABLE, *UNUSABLE_FOR_WORKERS, *UNREACHABLE])
async def test_doctor_names_what_is_wrong_and_the_fix(
    name: str, installation: Installation
) -> None:
    change, check, text = (INVALID | UNUSABLE | UNUSABLE_FOR_WORKERS | UNREACHABLE)[name]
    code, report = await doctor(dict(installation.variables) | change(installation))
    assert (code, report["ok"]) == (1, False)
    said = [each["message"] for each in report["checks"] if each["status"] == "failed"]
    assert all("\n" not in message for message in said)
    ours = [m for each in report["checks"] if each["check"] == check for m in [each["message"]]]
    assert any(text in message for message in ours), report


@pytest.mark.parametrize("name", WARNED)
async def test_doctor_warns_about_what_may_be_on_purpose(
    name: str, installation: Installation
) -> None:
    change, check, text = WARNED[name]
    variables = dict(installation.variables) | change(installation)
    code, report = await doctor(variables, "--no-model-calls")
    warned = [each for each in report["checks"] if each["status"] == "warning"]
    assert any(each["check"] == check and text in each["message"] for each in warned), report
    assert code == 0


async def test_an_older_schema_is_named_with_its_version(installation: Installation) -> None:
    async with installation.service.owner() as owner:
        version = await owner.fetchval("SELECT version_num FROM alembic_version")
        await owner.execute("UPDATE alembic_version SET version_num = '0007'")
        try:
            _, report = await doctor(dict(installation.variables), "--no-model-calls")
            [schema] = [each for each in report["checks"] if each["check"] == "schema"]
            assert f"version 0007, and this release needs {version}" in schema["message"]
            # A running service notices, too.
            async with asyncio.timeout(10):
                while True:
                    answer = await installation.service.http.get("/health/ready")
                    if answer.status_code == 503:
                        break
            assert "Run: rota admin migrate" in answer.json()["checks"]["schema"]
            await owner.execute("UPDATE alembic_version SET version_num = '9999'")
            _, report = await doctor(dict(installation.variables), "--no-model-calls")
            assert report["ok"], "an older process works with a newer schema"
        finally:
            await owner.execute("UPDATE alembic_version SET version_num = $1", version)


async def test_an_empty_catalog_is_named(installation: Installation) -> None:
    async with installation.service.owner() as owner:
        await owner.execute("UPDATE agents SET retired_at = now()")
        try:
            _, report = await doctor(dict(installation.variables), "--no-model-calls")
        finally:
            await owner.execute("UPDATE agents SET retired_at = NULL")
    assert "Run: rota admin agents sync" in str(report)


async def test_the_table_has_a_line_for_each_check(installation: Installation) -> None:
    result = await asyncio.to_thread(
        CliRunner().invoke,
        cli,
        ["admin", "doctor", "--no-model-calls"],
        env=dict(installation.variables) | {"ROTA_REDIS_URL": f"redis://{NOWHERE}/0"},
    )
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert any(line.startswith("postgres") and " ok " in line for line in lines)
    [redis] = [line for line in lines if line.startswith("redis")]
    assert "failed" in redis
    assert "Correct ROTA_REDIS_URL" in redis


# Each starts a whole process here, so these stand for all of UNREACHABLE.
STARTED = ("Redis that does not respond", "Temporal that does not respond", "no models")


@contextmanager
def environ(variables: Variables, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    with monkeypatch.context() as patched:
        for name, value in variables.items():
            patched.setenv(name, value)
        yield Settings()


async def refusal(process: str, settings: Settings) -> str | None:
    """Why the process does not start. None if it does."""
    stop = asyncio.Event()
    try:
        if process == "serve":
            app = create_app(settings)
            async with app.router.lifespan_context(app):
                return None
        # A worker that starts ends after its first attempt to reach Temporal.
        stop.set()
        await run_worker(settings, stop)
    except StartRefused as error:
        return str(error)
    except EXPLAINED as error:
        return explain(error)
    return None


@pytest.mark.parametrize("process", ["serve", "worker"])
@pytest.mark.parametrize("name", [*UNUSABLE, *UNUSABLE_FOR_WORKERS, *STARTED])
async def test_a_process_refuses_only_what_cannot_work(
    name: str, process: str, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, _, text = (UNUSABLE | UNUSABLE_FOR_WORKERS | UNREACHABLE)[name]
    variables = dict(installation.variables) | change(installation)
    with environ(variables, monkeypatch) as settings:
        refused_with = await refusal(process, settings)
    starts = name in UNREACHABLE or (process == "serve" and name in UNUSABLE_FOR_WORKERS)
    if starts:
        assert refused_with is None
    else:
        assert refused_with is not None
        assert text in refused_with
        assert "\n" not in refused_with
