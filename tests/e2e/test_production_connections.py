"""`rota admin migrate`, `serve` and `worker` in production, as production connects them.

PostgreSQL is behind PgBouncer in transaction mode, with TLS and logins that own nothing. Redis is
behind TLS with a password. Temporal is behind mTLS, and what it stores is encrypted.
"""

import asyncio
import base64
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import asyncpg
import httpx
import pytest
from pydantic import SecretStr
from temporalio.client import Client

from rota.agents.sync import sync
from rota.dev.stack import Stack
from rota.platform.settings import Settings
from tests.e2e.production_parts import Authority, create_logins, pgbouncer, tls_proxy
from tests.runs.runner import CATALOG, TERMINAL, new_namespace, until
from tests.runs.scripted import Scripted, says
from tests.service import Service, free_port, until_live
from tests.tasks.world import create, newcomer

KEY, AUDIT_KEY = (base64.b64encode(letter * 32).decode() for letter in (b"p", b"a"))
CODEC_KEY = base64.b64encode(b"c" * 32).decode()
PASSWORDS = {"serve": "one word", "worker": "another word"}


@dataclass(frozen=True)
class Production:
    """The variables of a deployment, except the login of the database."""

    variant: Literal["a", "b"]
    variables: Mapping[str, str]
    # The host of a database URL, and what follows the database's name.
    bouncer: str
    options: str
    direct_url: str
    owner: str
    log: Path

    @property
    def database(self) -> str:
        return f"production_{self.variant}"

    def login(self, name: str) -> str:
        return f"{self.database}_{name}"

    def url(self, user: str, password: str) -> str:
        # PgBouncer is the second host: nothing listens on the first.
        hosts = f"localhost:{free_port()},{self.bouncer}"
        password = password.replace(" ", "%20")
        return f"postgres://{user}:{password}@{hosts}/{self.database}{self.options}"

    def environment(self, **changes: str) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("ROTA_")}
        login = self.url(self.login("serve"), PASSWORDS["serve"])
        return inherited | {**self.variables, "ROTA_DATABASE_URL": login} | changes

    async def run(self, *command: str) -> str:
        """Runs a command to its end, with the owner's login for what needs it."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "rota.cli",
            *command,
            env=self.environment(
                ROTA_MIGRATION_DATABASE_URL=self.url(*self.owner.split(":")),
                ROTA_DATABASE_URL=self.url(self.login("worker"), PASSWORDS["worker"]),
            ),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output = (await process.communicate())[0].decode()
        assert process.returncode == 0, output
        return output

    @asynccontextmanager
    async def running(
        self, command: str, **changes: str
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        with self.log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "rota.cli",
                command,
                env=self.environment(**changes),
                stdout=output,
                stderr=output,
            )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


@pytest.fixture(scope="module")
async def scripted() -> AsyncIterator[Scripted]:
    async with Scripted.start() as started:
        yield started


@pytest.fixture(params=["a", "b"])
async def production(
    request: pytest.FixtureRequest, stack: Stack, scripted: Scripted, tmp_path: Path
) -> AsyncIterator[Production]:
    variant, at = request.param, stack.endpoints
    database, redis = urlsplit(at.database_url), urlsplit(at.redis_url)
    authority = Authority(tmp_path)
    server, client = authority.certificate("parts.test"), authority.certificate("rota")
    words = {f"production_{variant}_{name}": word for name, word in PASSWORDS.items()}
    assert at.admin_database_url
    assert database.port
    assert redis.port
    assert database.username
    await create_logins(at.admin_database_url, f"production_{variant}", database.username, words)
    words[database.username] = str(database.password)
    grpc = authority.server_context(server, clients=True)
    grpc.set_alpn_protocols(["h2"])
    async with (
        pgbouncer(tmp_path, database.port, words, server) as bouncer_port,
        tls_proxy(redis.port, authority.server_context(server)) as redis_port,
        tls_proxy(int(at.temporal_address.rpartition(":")[2]), grpc) as temporal_port,
    ):
        issuer = {"issuer": "https://id.example.test", "clientId": "rota"}
        yield Production(
            variant,
            {
                "ROTA_ENV": "production",
                "ROTA_VARIANT": variant,
                "ROTA_PUBLIC_URL": "https://rota.example.test",
                "ROTA_SECRET_KEY": KEY,
                "ROTA_AUDIT_KEY": AUDIT_KEY,
                "ROTA_OIDC_ISSUERS": json.dumps([issuer]),
                "ROTA_METRICS_PORT": str(free_port()),
                "ROTA_MODELS": scripted.models(),
                "ROTA_ALLOWANCES": json.dumps({"enterprise": 10_000, "business": 10_000}),
                # Debian's PgBouncer 1.18 cannot keep prepared statements.
                "ROTA_DATABASE_STATEMENT_CACHE": "0",
                "ROTA_REDIS_URL": f"rediss://default:{redis.password}@localhost:{redis_port}/9",
                "ROTA_REDIS_CA_FILE": str(authority.file),
                "ROTA_TEMPORAL_ADDRESS": f"127.0.0.1:{temporal_port}",
                "ROTA_TEMPORAL_NAMESPACE": f"production-{variant}",
                "ROTA_TEMPORAL_TLS_CA_FILE": str(authority.file),
                "ROTA_TEMPORAL_TLS_SERVER_NAME": "parts.test",
                "ROTA_TEMPORAL_TLS_CERT_FILE": str(client.cert),
                "ROTA_TEMPORAL_TLS_KEY_FILE": str(client.key),
                "ROTA_TEMPORAL_CODEC_KEY": CODEC_KEY,
            },
            bouncer=f"localhost:{bouncer_port}",
            options=f"?sslmode=verify-full&sslrootcert={authority.file}",
            direct_url=f"{at.database_url.rpartition('/')[0]}/production_{variant}",
            owner=f"{database.username}:{database.password}",
            log=tmp_path / "log",
        )


async def test_a_task_completes_behind_pgbouncer_and_tls(
    production: Production, stack: Stack, scripted: Scripted
) -> None:
    temporal = await new_namespace(
        stack.endpoints.temporal_address, production.variables["ROTA_TEMPORAL_NAMESPACE"]
    )
    assert "up to date" in await production.run("admin", "migrate")
    await grant_roles(production)
    # Another command of the owner, on the connections that PgBouncer kept.
    await sync(production.url(*production.owner.split(":")), CATALOG)
    port, words = free_port(), PASSWORDS["worker"]
    settings = Settings(variant=production.variant, database_url=SecretStr(production.direct_url))
    async with (
        production.running("serve", ROTA_PORT=str(port)) as serve,
        production.running(
            "worker",
            ROTA_METRICS_PORT=str(free_port()),
            ROTA_DATABASE_URL=production.url(production.login("worker"), words),
        ) as worker,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as http,
    ):
        try:
            await until_live(http, serve)
            await until_ready(http)
            person = await newcomer(Service(stack, settings, http))
            script = await scripted.script(says("Done behind the bouncer."))
            task = await create(person, agent="writer", input=f"Please. {script}")

            async def look() -> dict[str, Any]:
                assert worker.returncode is None, "the worker ended"
                found: dict[str, Any] = (await person.get(f"/api/tasks/{task['id']}")).json()
                return dict(found["task"])

            ended = await until(look, lambda seen: seen["status"] in TERMINAL)
        except BaseException:
            print(production.log.read_text()[-6000:])
            raise
        assert (ended["status"], ended["output"]) == ("COMPLETED", "Done behind the bouncer.")
        assert await logins_in_use(production) == {
            production.login("serve"),
            production.login("worker"),
        }
    assert await encodings(temporal) == {b"binary/encrypted"}


async def grant_roles(production: Production) -> None:
    owner = await asyncpg.connect(production.direct_url)
    await owner.execute(
        f"GRANT rota_app TO {production.login('serve')};"
        f"GRANT rota_app, rota_relay TO {production.login('worker')}"
    )
    await owner.close()


async def until_ready(http: httpx.AsyncClient) -> None:
    async def look() -> dict[str, Any]:
        found: dict[str, Any] = (await http.get("/health/ready")).json()
        return found

    await until(look, lambda seen: seen["status"] == "ready", deadline_s=120)


async def logins_in_use(production: Production) -> set[str]:
    owner = await asyncpg.connect(production.direct_url)
    rows = await owner.fetch(
        "SELECT usename FROM pg_stat_activity WHERE datname = $1 AND application_name = 'rota'",
        production.database,
    )
    await owner.close()
    return {row["usename"] for row in rows}


async def encodings(temporal: Client) -> set[bytes]:
    """How the arguments of the runs are stored."""
    found = set()
    async for run in temporal.list_workflows("WorkflowType = 'task-run'"):
        history = await temporal.get_workflow_handle(run.id).fetch_history()
        started = history.events[0].workflow_execution_started_event_attributes
        found |= {payload.metadata["encoding"] for payload in started.input.payloads}
    return found
