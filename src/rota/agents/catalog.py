"""Reads the catalog of agents.

Most methods are one statement. The catalog is small, so nothing is cached, and every process sees a
sync immediately.
"""

from collections.abc import Sequence
from itertools import groupby

from rota.agents import queries
from rota.agents.access import AgentAccess
from rota.agents.model import Agent, AgentVersion, CatalogVersion, Department, Level
from rota.agents.queries import Match, Page
from rota.auth.caller import Caller
from rota.platform.db import Database, ReadConnection
from rota.platform.errors import FieldError, NotFound, ValidationFailed


class AgentNotFound(NotFound):
    def __init__(self, name: str) -> None:
        # A name can be as long as a URL.
        shortened = name if len(name) <= 64 else name[:64] + "…"
        super().__init__(f"Agent {shortened!r} not found. GET /api/agents lists all agents.")


class NoAgentMatches(NotFound):
    def __init__(self) -> None:
        super().__init__(
            "No agent matches. Try other words, or list all agents with GET /api/agents."
        )


class Catalog:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def page(
        self,
        caller: Caller,
        *,
        department: str | None,
        rank: int | None,
        search: str | None,
        page: int,
        limit: int,
    ) -> Page:
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            return await queries.page(
                tx,
                department=department,
                rank=rank,
                # An empty search field means no search.
                search=search if search and search.strip() else None,
                limit=limit,
                offset=(page - 1) * limit,
            )

    async def open_agents(self, caller: Caller, access: AgentAccess, most: int) -> list[Agent]:
        """Those of the first agents that the account can give a task to."""
        found = await self.page(caller, department=None, rank=None, search=None, page=1, limit=most)
        return [each for each in found.agents if not access.locked(each, caller.tier)]

    async def get(self, caller: Caller, name: str) -> AgentVersion:
        """The current version of an agent."""
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            return await _current(tx, name)

    async def versions(
        self, caller: Caller, name: str, limit: int, offset: int
    ) -> tuple[AgentVersion, list[CatalogVersion], int]:
        """The current version, a page of all versions, newest first, and their number."""
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            current = await _current(tx, name)
            found, total = await queries.versions(tx, name, limit, offset)
        return current, found, total

    async def resolve(
        self, caller: Caller, name: str | None, work: str | None, open_levels: Sequence[Level]
    ) -> tuple[Agent, list[Match]]:
        """Finds an agent by its name or alias, or else by a description of the work.

        If both are given, the name is used. Only a description has a list of matches, and the agent
        is the first of them. The open levels are those of the caller's tier.
        """
        if name is None and work is None:
            raise ValidationFailed.of(
                FieldError(
                    "name", "Send name (a name or an alias) or q (a description of the work)."
                )
            )
        matches: list[Match] = []
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            if name is not None:
                found = await queries.named(tx, name.lower())
            else:
                assert work is not None
                matches = await queries.matches(tx, work, open_levels)
                found = matches[0].agent if matches else None
        if found is None:
            raise NoAgentMatches
        return found, matches

    async def departments(self, caller: Caller) -> list[Department]:
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            return await queries.departments(tx)

    async def by_department(self, caller: Caller) -> list[tuple[str, list[Agent]]]:
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            agents = await queries.by_department(tx)
        return [(name, list(group)) for name, group in groupby(agents, lambda a: a.department)]


async def _current(tx: ReadConnection, name: str) -> AgentVersion:
    found = await queries.find(tx, name)
    if found is None:
        raise AgentNotFound(name)
    return found
