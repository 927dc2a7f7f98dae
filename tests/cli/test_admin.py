"""Commands of operators: the first key, and one line for everything that can be wrong."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import asyncpg
import pytest
from typer.testing import CliRunner, Result

from rota.cli import cli
from rota.cli.runtime import operator_settings, owner_url
from rota.dev.directory import DataDirectory
from rota.dev.stack import Stack
from rota.platform import ids
from rota.platform.settings import DEVELOPMENT_SECRET_KEY
from tests import forks
from tests.cli.conftest import url_of
from tests.cli.terminal import Terminal
from tests.service import Service, drop_database, environment, free_port, prepared_settings

ACCOUNT, USER = ids.to_wire("acct", ids.new_uuid()), ids.to_wire("user", ids.new_uuid())
COMMANDS = (
    ("migrate",),
    ("agents", "sync"),
    ("agents", "compare", "one", "--account", ACCOUNT, "--from", "1", "--to", "2"),
    ("companies", "create", "Acme", "--owner", USER),
    ("companies", "set-member", ACCOUNT, USER),
    ("accounts", "set-tier", ACCOUNT, "basic"),
    ("accounts", "end-sessions", ACCOUNT),
    ("keys", "create", "First"),
    ("keys", "list"),
    ("keys", "revoke", ids.to_wire("key", ids.new_uuid())),
    ("signing-keys", "rotate"),
    ("secrets", "rotate"),
    ("ledger", "verify"),
    ("payments", "reconcile"),
    ("outbox", "list"),
    ("outbox", "retry", "--all"),
    ("seed", "--tasks", "2"),
)


async def admin(settings: Mapping[str, str], *arguments: str) -> Result:
    """In a thread: the command starts its own event loop."""
    command = ["admin", *arguments]
    return await asyncio.to_thread(
        lambda: CliRunner().invoke(cli, command, env={**settings, "COLUMNS": "200"})
    )


def is_one_line(result: Result) -> bool:
    text = result.stderr.strip()
    return result.exit_code in (1, 2, 8) and len(text.splitlines()) == 1 and "Traceback" not in text


async def test_the_first_key_of_a_deployment_creates_a_task(
    office: Service, terminal: Terminal
) -> None:
    created = await admin(environment(office.settings), "keys", "create", "First", "--days", "7")
    assert created.exit_code == 0, created.output
    secret = created.stdout.strip()
    terminal.variables = {"ROTA_URL": url_of(office), "ROTA_API_KEY": secret}
    await terminal.ok("tasks", "create", "Made by the operator")
    # The next key is for the same account, and can be weaker.
    again = await admin(
        environment(office.settings), "keys", "create", "Second", "--scope", "tasks:read"
    )
    reader = {"ROTA_API_KEY": again.stdout.strip()}
    listed = (await terminal.ok("tasks", "list", "--json", **reader)).json["tasks"]
    assert [task["name"] for task in listed] == ["Made by the operator"]
    assert (await terminal("tasks", "create", "T", **reader)).code == 1


async def test_the_operator_lists_and_revokes_keys(office: Service) -> None:
    settings = environment(office.settings)
    created = await admin(settings, "keys", "create", "Leaked", "--json")
    made = json.loads(created.stdout)
    bearer = {"Authorization": f"Bearer {made['secret']}"}
    assert (await office.http.get("/api/tasks", headers=bearer)).status_code == 200
    listed = json.loads((await admin(settings, "keys", "list", "--json")).stdout)["keys"]
    assert made["key"]["id"] in [key["id"] for key in listed]
    assert "Leaked" in (await admin(settings, "keys", "list")).stdout
    revoked = await admin(settings, "keys", "revoke", made["key"]["id"])
    assert revoked.stdout == f"{made['key']['id']} of {made['account']} is revoked.\n"
    async with asyncio.timeout(30):
        while (await office.http.get("/api/tasks", headers=bearer)).status_code != 401:
            await asyncio.sleep(0.1)
    again = await admin(settings, "keys", "revoke", made["key"]["id"])
    assert is_one_line(again)
    # A key of a user, in the user's account: the event says that no user did it.
    person = await office.sign_in()
    key = (await person.post("/api/keys", {"name": "Mine"})).json()["key"]["id"]
    account = ids.to_wire("acct", person.user_id)
    theirs = await admin(settings, "keys", "list", "--account", account, "--json")
    assert [each["id"] for each in json.loads(theirs.stdout)["keys"]] == [key]
    assert (await admin(settings, "keys", "revoke", key, "--json")).exit_code == 0
    assert (await person.get("/api/keys")).json()["keys"] == []
    events = await person.get("/api/events", headers={"Accept": "application/json"})
    [event] = [each for each in events.json()["events"] if each["type"] == "key.revoked"]
    assert event["data"] == {"keyId": key, "by": None}
    assert is_one_line(await admin(settings, "keys", "list", "--account", ACCOUNT))


@pytest.mark.parametrize("name", ["", "x" * 101, "\u200b"], ids=["empty", "long", "invisible"])
async def test_an_invalid_name_of_a_key_is_one_line(office: Service, name: str) -> None:
    result = await admin(environment(office.settings), "keys", "create", name)
    assert is_one_line(result), result.output
    assert "name: " in result.stderr


async def test_a_key_of_an_account_belongs_to_its_owner(office: Service) -> None:
    settings = environment(office.settings)
    owner = await office.sign_in()
    made = await admin(settings, "companies", "create", "Acme", "--owner", _user(owner.user_id))
    company = made.stdout.strip().splitlines()[-1]
    created = await admin(settings, "keys", "create", "First", "--account", company)
    assert created.exit_code == 0, created.output
    bearer = {"Authorization": f"Bearer {created.stdout.strip()}"}
    me = (await office.http.get("/api/me", headers=bearer)).json()
    assert (me["account"]["id"], me["user"]["id"]) == (company, _user(owner.user_id))
    keys = await owner.get("/api/keys", headers={"X-Service-Account": company})
    assert [key["name"] for key in keys.json()["keys"]] == ["First"]
    unknown = await admin(settings, "keys", "create", "K", "--account", ACCOUNT)
    assert is_one_line(unknown)
    assert unknown.stderr == f"Account {ACCOUNT} not found.\n"
    wrong = await admin(settings, "keys", "create", "K", "--scope", "everything")
    assert wrong.exit_code == 2
    assert "everything: unknown. The scopes are: tasks:read" in " ".join(wrong.stderr.split())


def _user(user_id: object) -> str:
    return ids.to_wire("user", user_id)  # type: ignore[arg-type]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
async def test_a_database_that_is_down_is_one_line(command: tuple[str, ...]) -> None:
    url = "postgresql://rota:secret-word@127.0.0.1:1/rota"
    result = await admin({"ROTA_DATABASE_URL": url}, *command)
    assert is_one_line(result), result.output
    assert "Cannot use the database" in result.stderr
    assert "secret-word" not in result.output
    # The checks of the night, which a job repeats.
    repeated = command in (("ledger", "verify"), ("payments", "reconcile"))
    assert (result.exit_code == 8) == repeated


@pytest.fixture(scope="module")
async def bare(stack: Stack) -> str:
    """A database without tables."""
    url = stack.endpoints.database_url
    connection = await asyncpg.connect(url)
    await drop_database(connection, "cli_bare")
    await connection.execute("CREATE DATABASE cli_bare")
    await connection.close()
    return f"{url.rpartition('/')[0]}/cli_bare"


# The others ask Stripe first, or create what is missing.
READING = [each for each in COMMANDS if each not in (("migrate",), ("payments", "reconcile"))]


@pytest.mark.parametrize("command", READING, ids=" ".join)
async def test_a_database_that_is_not_migrated_is_one_line(
    bare: str, command: tuple[str, ...]
) -> None:
    result = await admin({"ROTA_DATABASE_URL": bare}, *command)
    assert is_one_line(result), result.output
    assert "rota admin migrate" in result.stderr


async def test_a_database_that_cannot_store_every_text_is_not_migrated(stack: Stack) -> None:
    url = stack.endpoints.database_url
    connection = await asyncpg.connect(url)
    await connection.execute(
        "CREATE DATABASE cli_ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"
    )
    result = await admin({"ROTA_DATABASE_URL": f"{url.rpartition('/')[0]}/cli_ascii"}, "migrate")
    await connection.execute("DROP DATABASE cli_ascii")
    await connection.close()
    assert is_one_line(result), result.output
    assert "ENCODING 'UTF8'" in result.stderr


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda url: url.replace("@", "-wrong@"), "password authentication failed"),
        (lambda url: f"{url}_missing", "does not exist"),
        (lambda _: "postgresql://rota@no-such-host.invalid/rota", "ROTA_DATABASE_URL"),
        (lambda _: "mysql://rota@127.0.0.1/rota", "ROTA_DATABASE_URL"),
    ],
    ids=["password", "name", "host", "scheme"],
)
@pytest.mark.parametrize("command", [("migrate",), ("agents", "sync"), ("ledger", "verify")])
async def test_a_wrong_database_url_is_one_line(
    stack: Stack, change: object, says: str, command: tuple[str, ...]
) -> None:
    assert callable(change)
    url = change(stack.endpoints.database_url)
    result = await admin({"ROTA_DATABASE_URL": url}, *command)
    assert is_one_line(result), result.output
    assert says in result.stderr


OTHER_KEY = "b3RoZXIta2V5LW90aGVyLWtleS1vdGhlci1rZXktb3Q="


@pytest.fixture(scope="module")
async def deployment(stack: Stack) -> dict[str, str]:
    """The settings of a service that does not run."""
    settings = environment(await prepared_settings(stack, "a", "cli_admin"))
    return {name: value for name, value in settings.items() if value not in ("[]", "{}", "()")}


async def test_a_wrong_secret_key_is_one_line(deployment: dict[str, str]) -> None:
    wrong = {**deployment, "ROTA_SECRET_KEY": OTHER_KEY}
    for command in (("migrate",), ("signing-keys", "rotate")):
        result = await admin(wrong, *command)
        assert is_one_line(result), (command, result.output)
        assert "ROTA_SECRET_KEY is not the key that encrypted" in result.stderr
    # The right one works, also if it is an older one.
    older = {**wrong, "ROTA_SECRET_KEYS_OLD": deployment["ROTA_SECRET_KEY"]}
    assert (await admin(older, "migrate")).exit_code == 0
    # If the key is lost, everybody has to sign in again.
    rotated = await admin(wrong, "signing-keys", "rotate", "--immediately")
    assert rotated.exit_code == 0, rotated.output
    assert (await admin(wrong, "migrate")).exit_code == 0
    restored = await admin(deployment, "signing-keys", "rotate", "--immediately")
    assert restored.exit_code == 0


async def test_commands_work_while_redis_and_temporal_are_down(deployment: dict[str, str]) -> None:
    away = {"ROTA_REDIS_URL": "redis://127.0.0.1:1/0", "ROTA_TEMPORAL_ADDRESS": "127.0.0.1:1"}
    created = await admin({**deployment, **away}, "keys", "create", "First")
    assert created.exit_code == 0, created.output
    assert created.stdout.startswith("rota_")
    assert len(created.stdout.splitlines()) == 1
    retried = await admin({**deployment, **away}, "outbox", "retry", "--all")
    assert retried.exit_code == 0, retried.output


@pytest.mark.long
async def test_a_process_that_cannot_start_says_why_in_one_line(
    deployment: dict[str, str], bare: str
) -> None:
    listening = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    taken = {"ROTA_METRICS_PORT": str(listening.sockets[0].getsockname()[1])}
    no_database = {"ROTA_DATABASE_URL": "postgresql://rota@127.0.0.1:1/rota"}
    wrong = [
        ("serve", no_database, "Cannot use the database"),
        ("serve", {"ROTA_SECRET_KEY": OTHER_KEY}, "ROTA_SECRET_KEY"),
        ("serve", taken, "ROTA_METRICS_PORT"),
        ("worker", {"ROTA_DATABASE_URL": bare}, "rota admin migrate"),
        ("worker", taken, "ROTA_METRICS_PORT"),
    ]

    async def start(command: str, changes: dict[str, str], says: str) -> None:
        variables = os.environ | deployment | {"ROTA_PORT": str(free_port())} | changes
        code, out, err = await forks.ended("rota.cli", command, env=variables)
        assert code == 1, out + err
        assert "Traceback" not in out + err
        [line] = [line for line in err.splitlines() if line.strip()]
        assert says in line

    async with listening, asyncio.timeout(120):
        await asyncio.gather(*[start(*each) for each in wrong])


DEVELOPMENT_URL = "postgresql://rota@127.0.0.1:1/development"
PRODUCTION_URL = "postgresql://rota@127.0.0.1:1/production"


@pytest.fixture
async def development(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[DataDirectory]:
    """A folder in which `rota dev` runs."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("ROTA_")]:
        monkeypatch.delenv(name)
    directory = DataDirectory(tmp_path / ".rota")
    await directory.claim()
    allowances = '{"basic": 1000}'
    published = {"ROTA_DATABASE_URL": DEVELOPMENT_URL, "ROTA_ALLOWANCES": allowances}
    directory.publish({**published, "ROTA_ENV": "development", "PATH": "/evil"})
    yield directory
    directory.release()


def test_operator_commands_find_the_development_stack(
    development: DataDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    before = dict(os.environ)
    found = operator_settings()
    assert capsys.readouterr().err == f"Using the `rota dev` of {development.path}.\n"
    assert owner_url(found) == found.database_url.get_secret_value() == DEVELOPMENT_URL
    assert (found.env, found.allowances) == ("development", {"basic": 1000})
    # Programs that the command starts do not get them.
    assert dict(os.environ) == before
    mode = (development.path / "environment.json").stat().st_mode
    assert mode & 0o777 == 0o600
    development.release()
    assert owner_url(operator_settings()) != DEVELOPMENT_URL
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "variables",
    [
        {"ROTA_ENV": "production", "ROTA_MIGRATION_DATABASE_URL": PRODUCTION_URL},
        {"ROTA_MIGRATION_DATABASE_URL": PRODUCTION_URL},
        {"ROTA_DATABASE_URL": PRODUCTION_URL},
        {"rota_database_url": PRODUCTION_URL},
        {"ROTA_ENV": "production", "ROTA_DATABASE_URL": PRODUCTION_URL},
    ],
)
@pytest.mark.usefixtures("development")
def test_a_deployment_in_the_environment_is_never_mixed_with_the_development_stack(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {**variables, "ROTA_SECRET_KEY": OTHER_KEY}.items():
        monkeypatch.setenv(name, value)
    found = operator_settings()
    assert capsys.readouterr().err == ""
    assert owner_url(found) == PRODUCTION_URL
    assert found.database_url.get_secret_value() != DEVELOPMENT_URL
    assert found.env == variables.get("ROTA_ENV", "development")
    if found.env == "production":
        refused = CliRunner().invoke(cli, ["admin", "seed", "--tasks", "2"])
        assert refused.stderr.startswith("ROTA_ENV is production.")


def test_a_development_stack_that_others_can_write_is_not_used(
    development: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert development.published() is not None
    development.path.chmod(0o777)
    assert development.published() is None
    development.path.chmod(0o700)
    monkeypatch.setattr("os.geteuid", lambda: development.path.stat().st_uid + 1)
    assert development.published() is None


async def test_operator_commands_need_only_the_settings_of_the_database(
    deployment: dict[str, str],
) -> None:
    names = ("ROTA_DATABASE_URL", "ROTA_SECRET_KEY", "ROTA_VARIANT")
    production = {name: deployment[name] for name in names} | {"ROTA_ENV": "production"}
    for command in (("migrate",), ("keys", "create", "First"), ("ledger", "verify")):
        done = await admin(production | {"ROTA_SECRET_KEY": OTHER_KEY}, *command)
        assert "ROTA_OIDC_ISSUERS" not in done.stderr, done.output
        assert done.exit_code != 2
    away = {"ROTA_DATABASE_URL": "postgresql://rota@db.example.test/rota"}
    public = {"ROTA_SECRET_KEY": DEVELOPMENT_SECRET_KEY}
    refused = await admin(production | away | public, "migrate")
    assert refused.exit_code == 2
    assert "ROTA_DATABASE_URL must have sslmode=verify-full" in refused.stderr
    assert "ROTA_SECRET_KEY must be set" in refused.stderr


async def test_a_service_of_another_kind_is_one_line(terminal: Terminal) -> None:
    async def answer(_: object, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        variables = {"ROTA_URL": f"http://127.0.0.1:{port}", "ROTA_API_KEY": "rota_x"}
        done = await terminal("tasks", "list", **variables)
    assert done.code == 1
    assert len(done.err.splitlines()) == 1
