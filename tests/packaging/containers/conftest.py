"""The fixtures of the clients' scenarios, with services that run in containers."""

import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rota.dev.stack import Stack
from tests.mcp.peers import Peer, definition
from tests.packaging.containers.deployment import ADDRESSES, ContainerStack, Deployment
from tests.packaging.containers.podman import Container
from tests.payments.stripe_server import StripeServer
from tests.runs.runner import CATALOG
from tests.runs.scripted import Scripted
from tests.sdk.conftest import cut_rota, installed_sdk, kind, owner, proxy, rota
from tests.service import Person, Service, free_port
from tests.tasks.world import newcomer

__all__ = ["cut_rota", "installed_sdk", "kind", "owner", "proxy", "rota"]

# Without the containers, `make image-test` was not used.
collect_ignore_glob = [] if ADDRESSES else ["test_*.py"]

REF = {"ref": {"type": "string"}}


@pytest.fixture(scope="session")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    data = tmp_path_factory.mktemp("stack")
    async with ContainerStack(Path(data), components=("idp",), durable=False) as started:
        yield started


@pytest.fixture(scope="session", params=["a", "b"])
async def shop(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    """A service of each variant without a worker, as the scenarios expect it."""
    variant = request.param
    async with StripeServer.start(variant=variant) as stripe:
        redis = {"a": 1, "b": 2}[variant]
        deployment = await Deployment.prepare(
            stack, f"shop_{variant}", variant=variant, redis=redis, **stripe.settings
        )
        async with deployment.served(stack) as started:
            yield started


@pytest.fixture(scope="session")
async def scripted() -> AsyncIterator[Scripted]:
    async with Scripted.start() as started:
        yield started


@dataclass(frozen=True)
class Office:
    """A service with a worker, and the tool server that its agents use."""

    deployment: Deployment
    service: Service
    worker: Container
    worker_port: int
    desk: Peer

    async def newcomer(self) -> Person:
        """A person with a new account, which is connected to the tool server."""
        person = await newcomer(self.service, tier="enterprise")
        connected = await person.post("/api/mcp", {"name": "desk", "url": self.desk.url})
        assert connected.status_code == 201, connected.text
        return person


def _models(scripted: Scripted) -> str:
    """The models that can be called."""
    models = json.loads(scripted.models())
    del models["broken"]
    return json.dumps(models)


@pytest.fixture(scope="session")
async def runner(
    stack: Stack, scripted: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Office]:
    deployment = await Deployment.prepare(stack, "office", redis=3, run_heartbeat_s=6.0)
    agents = tmp_path_factory.mktemp("agents")
    agents.chmod(0o755)
    for name in ("writer", "careful"):
        shutil.copy(CATALOG / f"{name}.md", agents)
    await deployment.admin("agents", "sync", "/files", "--add-only", mount=agents)
    desk, port = Peer(), free_port()
    desk.tools = {
        tool.name: tool
        for tool in (
            definition("lookup", "Looks up.", read_only=True, properties=REF, required=("ref",)),
            definition("send", "Sends.", properties=REF, required=("ref",)),
        )
    }
    async with (
        desk.serve(),
        deployment.served(stack) as service,
        deployment.working(_models(scripted), port) as worker,
    ):
        yield Office(deployment, service, worker, port, desk)
