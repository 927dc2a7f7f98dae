"""A service of each variant with the shipped catalog, and a database for other catalogs."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.dev.stack import Stack
from rota.platform.pool import Transaction
from tests.agents.catalogs import connected
from tests.service import Person, Service, prepared_settings

Folder = Callable[..., Path]

AGENT = """\
---
name: {name}
displayName: {display}
description: {description}
{use_for}department: {department}
tier: {tier}
tags: [{tags}]
aliases: [{aliases}]
premium: false
requiredTier: {required}
model: default
tools: []
budgetCents: 10
maxSteps: 5
---
{instructions}
"""


def agent_text(name: str, **changes: Any) -> str:
    fields: dict[str, Any] = {
        "display": name.title(),
        "description": f"What {name} does.",
        "department": "Sales",
        "tier": 3,
        "tags": "",
        "aliases": "",
        "required": "BASIC",
        "instructions": "Do it well.",
    }
    fields |= changes
    # The field is optional, and most files do not have it.
    use_for = f"useFor: [{fields['use_for']}]\n" if "use_for" in fields else ""
    return AGENT.format(name=name, **fields | {"use_for": use_for})


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Creates a catalog folder. Each argument is a file's name and text."""

    def make(**files: str) -> Path:
        root = tmp_path / "catalog"
        root.mkdir(exist_ok=True)
        for old in root.glob("*.md"):
            old.unlink()
        for name, text in files.items():
            (root / f"{name.replace('_', '-')}.md").write_text(text)
        return root

    return make


@pytest.fixture(scope="session", params=["a", "b"])
async def catalog(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    """A service of each variant with the shipped catalog."""
    name = f"agents_{request.param}"
    async with Service.start(stack, variant=request.param, name=name) as started:
        await sync(started.database_url, catalog_folder())
        yield started


@pytest.fixture(scope="session")
async def sync_url(stack: Stack) -> str:
    """A database for the tests of sync. They do not clean it up."""
    settings = await prepared_settings(stack, "a", "agents_sync")
    return settings.database_url.get_secret_value()


@pytest.fixture
async def url(sync_url: str) -> str:
    """The database, with an empty catalog."""
    async with connected(sync_url) as connection:
        await connection.execute("DELETE FROM agents; DELETE FROM agent_versions")
    return sync_url


async def person_of(service: Service, tier: str) -> Person:
    """A person whose personal account has this tier."""
    person = await service.sign_in()
    async with service.owner() as connection:
        await connection.execute(
            "UPDATE accounts SET tier = $2 WHERE id = $1", person.user_id, tier
        )
    # A new session, because the tier of the old one is cached for a moment.
    return await service.sign_in(person.subject)


@pytest.fixture(scope="session")
async def reader(catalog: Service) -> Person:
    """A person of the highest tier, whose rate limit allows many requests."""
    return await person_of(catalog, {"a": "enterprise", "b": "business"}[catalog.variant])


class _Counting:
    def __init__(self, connection: Any, statements: list[str]) -> None:
        self._connection = connection
        self._statements = statements

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._connection, name)

        async def counted(query: str, *args: object) -> Any:
            self._statements.append(query)
            return await method(query, *args)

        return counted


@contextmanager
def counted_statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The statements that the service sends inside the block, without BEGIN and COMMIT."""
    statements: list[str] = []
    enter = Transaction.__aenter__

    async def counting(self: Transaction[Any]) -> Any:
        tx = await enter(self)
        tx._connection = _Counting(tx._connection, statements)
        return tx

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "__aenter__", counting)
        yield statements
