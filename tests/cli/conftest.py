"""A service of each variant with the catalog, and a terminal whose user is signed in."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.dev.stack import Stack
from tests.cli.terminal import Terminal
from tests.service import Person, Service


@pytest.fixture(scope="session", params=["a", "b"])
async def office(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    """In a process of its own, so its logs are not in the output of the commands."""
    name = f"cli_{request.param}"
    allow = ("127.0.0.0/8",)
    async with Service.start(stack, variant=request.param, name=name, egress_allow=allow) as base:
        await sync(base.database_url, catalog_folder())
        async with base.process() as started:
            yield started


def url_of(service: Service) -> str:
    return f"http://127.0.0.1:{service.settings.port}"


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """Nobody is signed in."""
    return Terminal(tmp_path / "config")


@pytest.fixture
async def person(office: Service) -> Person:
    return await office.sign_in()


@pytest.fixture
async def rota(office: Service, person: Person, terminal: Terminal) -> Terminal:
    """The commands of a person with a new account."""
    terminal.variables = {"ROTA_URL": url_of(office), "ROTA_API_KEY": person.token}
    return terminal
