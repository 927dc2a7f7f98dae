"""Reading the catalog.

Every answer is one statement straight from PostgreSQL: the catalog is small, so
nothing is kept in the process and a sync is seen everywhere at once.
"""

from itertools import groupby

from rota.agents import queries
from rota.agents.model import Agent, Department
from rota.agents.queries import Page
from rota.auth.caller import Caller
from rota.platform.db import Database
from rota.platform.errors import FieldError, NotFound, ValidationFailed


class Catalog:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def page(
        self,
        caller: Caller,
        *,
        department: str | None,
        tier: int | None,
        search: str | None,
        page: int,
        limit: int,
    ) -> Page:
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            return await queries.page(
                tx,
                department=department,
                tier=tier,
                # An empty search box is no search.
                search=search if search and search.strip() else None,
                limit=limit,
                offset=(page - 1) * limit,
            )

    async def get(self, caller: Caller, name: str) -> Agent:
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            found = await queries.get(tx, name)
        if found is None:
            raise NotFound("There is no agent of that name. GET /api/agents lists them all.")
        return found

    async def resolve(
        self, caller: Caller, name: str | None, work: str | None
    ) -> tuple[Agent, float | None]:
        """The agent meant by a name, which wins where both are given, or by a description."""
        if name is None and work is None:
            raise ValidationFailed.of(
                FieldError("name", "give name (a name or an alias) or q (what is to be done)")
            )
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            match: tuple[Agent, float | None] | None
            if name is not None:
                named = await queries.named(tx, name.lower())
                match = (named, None) if named else None
            else:
                assert work is not None
                match = await queries.best_match(tx, work)
        if match is None:
            raise NotFound("No agent fits. Use other words, or see GET /api/agents for them all.")
        return match

    async def departments(self, caller: Caller) -> list[Department]:
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            return await queries.departments(tx)

    async def by_department(self, caller: Caller) -> list[tuple[str, list[Agent]]]:
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            agents = await queries.by_department(tx)
        return [(name, list(group)) for name, group in groupby(agents, lambda a: a.department)]
