"""A running service for tests, and signed-in users of it."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx
import structlog
import uvicorn
from fastapi import APIRouter
from pydantic import SecretStr
from starlette.types import ASGIApp

from rota.app import create_app
from rota.auth import rotation
from rota.dev import ports
from rota.dev.stack import Stack
from rota.platform import ids
from rota.platform.crypto import Vault
from rota.platform.http.server import server_config
from rota.platform.migrate import migrate
from rota.platform.settings import Settings
from tests.audit import watch
from tests.forks import Fork, forked

# Every test then also checks that no change is missing in the audit trail.
WATCHED = bool(os.environ.get("ROTA_TEST_WATCHED"))

# The logs of the service under test. By default structlog formats exceptions with all local
# variables, which takes longer than most tests.
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(default=str),
    ]
)


# Most tests are not about money, so allowances are large.
PLENTY = dict.fromkeys(
    ("basic", "standard", "advanced", "corporate", "enterprise", "business"), 10_000_000
)


def free_port() -> int:
    """A port that no other test uses, also not one that runs beside this one."""
    return ports.find()


async def listens(port: int) -> bool:
    """Whether a process on this machine accepts connections at the port."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


@dataclass
class Person:
    """A signed-in user."""

    service: "Service"
    subject: str
    token: str
    user_id: UUID = field(default_factory=uuid4)

    @property
    def auth(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    async def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = self.auth | dict(options.pop("headers", {}))
        return await self.service.http.request(method, path, headers=headers, **options)

    async def get(self, path: str, **options: Any) -> httpx.Response:
        return await self.request("GET", path, **options)

    async def post(self, path: str, json: Any = None, **options: Any) -> httpx.Response:
        return await self.request("POST", path, json=json, **options)

    async def delete(self, path: str, **options: Any) -> httpx.Response:
        return await self.request("DELETE", path, **options)


class Service:
    def __init__(
        self,
        stack: Stack,
        settings: Settings,
        http: httpx.AsyncClient,
        running: asyncio.subprocess.Process | Fork | None = None,
    ) -> None:
        self.stack = stack
        self.settings = settings
        self.http = http
        # Set if the service runs in a separate process.
        self.running = running
        self.database_url = settings.database_url.get_secret_value()

    @property
    def variant(self) -> str:
        return self.settings.variant

    @classmethod
    @asynccontextmanager
    async def start(
        cls,
        stack: Stack,
        *,
        variant: str,
        name: str | None = None,
        routers: Sequence[APIRouter] = (),
        ai_prefixes: tuple[str, ...] = ("/api/agents",),
        **changes: Any,
    ) -> AsyncIterator["Service"]:
        """A service in this process, with its own database, on a real socket."""
        settings = await prepared_settings(stack, variant, name or f"variant_{variant}", **changes)
        app = create_app(settings, extra_routers=routers, ai_prefixes=ai_prefixes)
        async with serving(app, settings), _client(settings) as http:
            service = cls(stack, settings, http)
            if WATCHED:
                async with service.owner() as connection:
                    await watch.install(connection)
            yield service
        if WATCHED:
            async with service.owner() as connection:
                forgotten = await watch.forgotten(connection)
            assert not forgotten, "\n".join(forgotten)

    @asynccontextmanager
    async def process(
        self,
        *,
        command: Sequence[str] = ("rota.cli", "serve"),
        output: Path = Path(os.devnull),
        fresh: bool = False,
        **changes: Any,
    ) -> AsyncIterator["Service"]:
        """A second service on the same database, in a separate process.

        A fresh one has an interpreter of its own, for tests of the start and the end of a process.
        """
        settings = self.settings.model_copy(update={"port": free_port(), **changes})
        variables = os.environ | environment(settings)
        process: asyncio.subprocess.Process | Fork
        with output.open("ab") as stdout:
            if fresh:
                process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", *command, env=variables, stdout=stdout
                )
            else:
                process = await forked(*command, env=variables, stdout=stdout.fileno())
        try:
            async with _client(settings) as http:
                await until_live(http, process)
                yield Service(self.stack, settings, http, process)
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()

    async def sign_in(self, subject: str | None = None) -> Person:
        subject = subject or f"person-{uuid4().hex[:12]}"
        response = await self.http.post(
            "/api/auth/session", json={"idToken": await self.id_token(subject)}
        )
        assert response.status_code == 200, response.text
        person = Person(self, subject, response.json()["token"])
        me = (await person.get("/api/me")).json()
        user_id = ids.from_wire("user", me["user"]["id"])
        assert user_id is not None
        person.user_id = user_id
        return person

    async def id_token(self, subject: str) -> str:
        url = f"{self.stack.endpoints.issuer_url}/dev/token"
        # A client of its own would load the system's certificates for each token: 50 ms.
        response = await self.http.post(
            url, json={"sub": subject, "email": f"{subject}@example.test"}
        )
        token: str = response.json()["idToken"]
        return token

    @asynccontextmanager
    async def owner(self) -> AsyncIterator[Any]:
        """A connection without row security, to inspect and change data directly."""
        admin = self.stack.endpoints.admin_database_url
        assert admin is not None
        connection = await asyncpg.connect(
            admin.rpartition("/")[0] + "/" + self.database_url.rpartition("/")[2]
        )
        try:
            yield connection
        finally:
            await connection.close()


async def prepared_settings(stack: Stack, variant: str, name: str, **changes: Any) -> Settings:
    """Settings for a service with a fresh, migrated database."""
    endpoints = stack.endpoints
    base = endpoints.database_url.rpartition("/")[0]
    port = free_port()
    number = await create_database(
        endpoints.database_url, name, template=await _migrated(endpoints.database_url)
    )
    settings = Settings(
        env="test",
        variant=variant,
        port=port,
        public_url=f"http://127.0.0.1:{port}",
        database_url=f"{base}/{name}",
        redis_url=endpoints.redis_url.rsplit("/", 1)[0] + f"/{number % 128}",
        # A stack without Temporal has no address, and every service needs one.
        temporal_address=endpoints.temporal_address or "127.0.0.1:7233",
        oidc_issuers=json.loads(stack.environment()["ROTA_OIDC_ISSUERS"]),
        allowances=PLENTY,
        log_level="WARNING",
        shutdown_grace_s=5,
        # A machine that runs several lanes of tests is slow. Tests of the limits set their own.
        database_pool_timeout_s=60,
        database_lock_timeout_s=60,
        database_statement_timeout_s=60,
    ).model_copy(update=changes)
    url = settings.database_url.get_secret_value()
    await rotation.ensure_key(url, Vault(settings.secret_key_bytes))
    if settings.env == "production":
        admin = endpoints.admin_database_url
        assert admin is not None
        login = SecretStr(await _own_nothing(admin, url))
        return settings.model_copy(update={"database_url": login})
    return settings


async def _own_nothing(admin_url: str, url: str) -> str:
    """The URL with a login that owns nothing, as production wants it."""
    connection = await asyncpg.connect(admin_url)
    await connection.execute(
        "DO $$ BEGIN CREATE ROLE production LOGIN NOINHERIT PASSWORD 'production' "
        "IN ROLE rota_app, rota_relay; GRANT production TO CURRENT_USER; "
        # Dropping a database ends the connections of its logins.
        "EXCEPTION WHEN duplicate_object THEN NULL; END $$"
    )
    await connection.close()
    return re.sub("//[^@]+@", "//production:production@", url)


_databases: list[str] = []


async def drop_database(connection: "asyncpg.Connection[asyncpg.Record]", name: str) -> None:
    # WITH (FORCE) may not end an autovacuum worker, which belongs to a superuser, and gives up.
    # Without it, PostgreSQL ends autovacuum workers itself.
    await connection.execute(
        """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = $1 AND backend_type = 'client backend'
        """,
        name,
    )
    await connection.execute(f"DROP DATABASE IF EXISTS {name}")


_templates: dict[str, str] = {}


async def _migrated(url: str) -> str:
    """A database with the newest schema, to copy. Migrating each one would take much longer."""
    if url not in _templates:
        name = "rota_template"
        await create_database(url, name)
        await asyncio.to_thread(migrate, f"{url.rpartition('/')[0]}/{name}")
        _templates[url] = name
    return _templates[url]


async def create_database(url: str, name: str, template: str = "template1") -> int:
    connection = await asyncpg.connect(url)
    await drop_database(connection, name)
    await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    await connection.close()
    if template != "template1":
        await _accept_copy(f"{url.rpartition('/')[0]}/{name}")
    _databases.append(name)
    return len(_databases)


async def _accept_copy(url: str) -> None:
    """Makes a copy a database of its own. Before that, no process starts on it."""
    connection = await asyncpg.connect(url)
    await connection.execute(
        "UPDATE installation SET database = "
        "(SELECT oid::text FROM pg_database WHERE datname = current_database())"
    )
    await connection.close()


SECRETS = (
    *("database_url", "migration_database_url", "redis_url", "secret_key", "stripe_secret_key"),
    "audit_key",
    *("temporal_api_key", "temporal_codec_key", "smtp_password"),
)


def environment(settings: Settings) -> Mapping[str, str]:
    """The settings as environment variables for a separate process."""
    plain = settings.model_dump(mode="json", exclude_none=True, by_alias=True)
    secret = {
        name: getattr(settings, name).get_secret_value()
        for name in SECRETS
        if getattr(settings, name) is not None
    }
    issuers = [issuer.model_dump_json(by_alias=True) for issuer in settings.oidc_issuers]
    texts = {name: str(value) for name, value in (plain | secret).items()}
    texts |= {
        "allowances": json.dumps(settings.allowances),
        **{
            name: json.dumps(getattr(settings, name))
            for name in ("retention_days", "retention_min_days", "retention_max_days")
        },
        "oidc_issuers": f"[{','.join(issuers)}]",
        "cells": ",".join(f"{name}={url}" for name, url in settings.cells.items()),
        "cells_full": ",".join(settings.cells_full),
        "trusted_proxies": ",".join(settings.trusted_proxies),
        "cors_origins": ",".join(settings.cors_origins),
        "egress_allow": ",".join(settings.egress_allow),
        "audit_keys_old": ",".join(settings.audit_keys_old),
        "secret_keys_old": ",".join(k.get_secret_value() for k in settings.secret_keys_old),
        "temporal_codec_keys_old": ",".join(
            key.get_secret_value() for key in settings.temporal_codec_keys_old
        ),
        "webhook_keys": ",".join(key.get_secret_value() for key in settings.webhook_keys),
        "stripe_webhook_secrets": ",".join(
            secret.get_secret_value() for secret in settings.stripe_webhook_secrets
        ),
    }
    return {f"ROTA_{name.upper()}": text for name, text in texts.items()}


def _client(settings: Settings) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{settings.port}",
        timeout=30,
        # For each request, the client looks at every connection that it keeps.
        limits=httpx.Limits(max_connections=200, max_keepalive_connections=8),
    )


async def until_live(
    http: httpx.AsyncClient,
    process: asyncio.subprocess.Process | Fork | None = None,
    deadline_s: float = 120,
) -> None:
    async with asyncio.timeout(deadline_s):
        while True:
            if process is not None and process.returncode is not None:
                raise RuntimeError("the service exited during startup")
            try:
                if (await http.get("/health/live")).status_code == 200:
                    return
            except httpx.TransportError:
                await asyncio.sleep(0.05)


@asynccontextmanager
async def serving(app: ASGIApp, settings: Settings) -> AsyncIterator[None]:
    config = server_config(app, settings)
    server = uvicorn.Server(config)
    running = asyncio.create_task(server._serve())
    async with asyncio.timeout(30):
        while not server.started:
            if running.done():
                running.result()
            await asyncio.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        await running
