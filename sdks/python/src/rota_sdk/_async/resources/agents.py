"""Agents: find them and see what they can do."""

from typing import TypeAlias

from rota_sdk import models
from rota_sdk._async.pages import AsyncPages
from rota_sdk._async.resource import AsyncResource
from rota_sdk._generated import operations
from rota_sdk._paging import Numbers
from rota_sdk._requests import parameters

Departments: TypeAlias = list[models.Department]
Sections: TypeAlias = list[models.CatalogSection]


class Agents(AsyncResource):
    def list(
        self,
        *,
        department: str | None = None,
        tier: int | None = None,
        search: str | None = None,
        page_size: int | None = None,
    ) -> AsyncPages[models.Agent]:
        """The agents of the catalog. `tier=2` gives the ranks 1 and 2."""
        return AsyncPages(
            self._transport,
            operations.list_agents,
            lambda r: r.agents,
            lambda: Numbers(page_size),
            query=parameters(department=department, tier=tier, search=search),
        )

    async def get(self, name: str) -> models.AgentDetails:
        return (await self._call(operations.get_agent, {"name": name})).agent

    async def resolve(
        self, *, name: str | None = None, q: str | None = None
    ) -> models.ResolvedResponse:
        """The agent with this name or alias, or the best one for the work that `q` describes."""
        return await self._call(operations.resolve_agent, query=parameters(name=name, q=q))

    async def departments(self) -> Departments:
        return (await self._call(operations.list_departments)).departments

    async def catalog(self) -> Sections:
        """All agents by department."""
        return (await self._call(operations.get_catalog)).catalog

    def versions(self, name: str, *, page_size: int | None = None) -> AsyncPages[models.Version]:
        """The versions of an agent, newest first."""
        return self._offset_list(
            operations.list_agent_versions,
            lambda r: r.versions,
            page_size,
            lambda version: version.version,
            {"name": name},
        )

    async def statistics(self, name: str) -> models.AgentStatistics:
        """How the account's tasks of this agent went."""
        return (await self._call(operations.agent_statistics, {"name": name})).statistics
