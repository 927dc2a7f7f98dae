"""Endpoints: the catalog of agents."""

from hashlib import sha256
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query
from pydantic import Field
from starlette.responses import Response

from rota.agents import schemas
from rota.agents.access import AgentAccess
from rota.agents.catalog import Catalog
from rota.agents.detail_schemas import AgentDetails, AgentResponse, Version, VersionsResponse
from rota.agents.model import Agent
from rota.agents.schemas import (
    AgentsResponse,
    Candidate,
    CatalogResponse,
    CatalogSection,
    DepartmentsResponse,
    ResolvedResponse,
)
from rota.auth.caller import Caller
from rota.auth.routing import allowed, secured_router
from rota.platform.http import examples
from rota.platform.http.description import documented
from rota.platform.http.schemas import Limit, Offset, QueryInt, Text, shared

Reader = Annotated[Caller, Depends(allowed("agents:read"))]
Name = Annotated[Text, Field(min_length=1, max_length=200)]
Rank = Annotated[QueryInt, Field(ge=1, le=3)]
AgentName = Annotated[
    Text,
    Path(
        description="The name of the agent.",
        examples=[examples.AGENT],
        json_schema_extra=shared("AgentName"),
    ),
]

ETAG: dict[str, Any] = {
    "ETag": {
        "description": "Identifies this content. Send it as If-None-Match.",
        "required": True,
        "schema": {"type": "string", "examples": ['"7d793037a0760186574b0282f2f435e7"']},
    }
}


def agent_routes(catalog: Catalog, agent_access: AgentAccess) -> APIRouter:
    router = secured_router("Agents")

    def listed(agent: Agent, caller: Caller) -> schemas.Agent:
        return schemas.Agent.of(agent, caller.tier, agent_access, agent_access.model_in_lists)

    def single(agent: Agent, caller: Caller) -> schemas.Agent:
        return schemas.Agent.of(agent, caller.tier, agent_access, agent_access.model_in_detail)

    @router.get("/api/agents", summary="List agents")
    async def list_agents(
        caller: Reader,
        department: Annotated[
            Text | None,
            Query(
                max_length=200,
                description="Only agents of this department; case is ignored.",
                examples=["Operations"],
            ),
        ] = None,
        tier: Annotated[
            Rank | None,
            Query(
                description=(
                    "Only agents of this rank or a higher one. A smaller number is a higher rank."
                ),
                examples=[2],
            ),
        ] = None,
        search: Annotated[
            Text | None,
            Query(
                max_length=200,
                description="Words or beginnings of words. An agent matches if it has one of "
                "them. The best match comes first.",
                examples=["checklist"],
            ),
        ] = None,
        page: Annotated[
            QueryInt,
            Query(ge=1, le=2**31 - 1, description="The page number.", examples=[1]),
        ] = 1,
        limit: Annotated[
            QueryInt,
            Query(
                ge=1,
                le=200,
                description="The maximum number of agents on a page, from 1 to 200.",
                examples=[50],
            ),
        ] = 50,
    ) -> AgentsResponse:
        """Returns a page of the catalog. Filters combine: an agent must match all of them. Ranks
        are 1 Director, 2 Lead and 3 Specialist, so `tier=2` returns Directors and Leads."""
        found = await catalog.page(
            caller, department=department, rank=tier, search=search, page=page, limit=limit
        )
        return AgentsResponse(
            agents=[listed(agent, caller) for agent in found.agents],
            departments=found.departments,
            total=found.total,
            page=page,
            limit=limit,
        )

    @router.get(
        "/api/agents/resolve",
        summary="Find an agent by name or by task description",
        responses=documented(404),
    )
    async def resolve_agent(
        caller: Reader,
        name: Annotated[
            Name | None,
            Query(
                description="A name or an alias; case is ignored. If present, `q` is ignored.",
                examples=["runbook-writer"],
            ),
        ] = None,
        q: Annotated[
            Text | None,
            Query(
                min_length=1,
                max_length=2000,
                description="A description of the work.",
                examples=["write a checklist for new colleagues"],
            ),
        ] = None,
    ) -> ResolvedResponse:
        """Returns the agent with this name or alias, or the one that best fits a description of
        work. Send `name` or `q`. Returns 400 without either, and 404 if nothing matches well."""
        open_levels = agent_access.open_levels(caller.tier)
        agent, matches = await catalog.resolve(caller, name, q, open_levels)
        candidates = [Candidate(agent=listed(m.agent, caller), score=m.score) for m in matches]
        return ResolvedResponse(
            agent=single(agent, caller),
            score=candidates[0].score if candidates else None,
            candidates=candidates or None,
        )

    @router.get("/api/agents/departments", summary="List departments")
    async def list_departments(caller: Reader) -> DepartmentsResponse:
        """Returns every department, with the number and the ranks of its agents."""
        found = await catalog.departments(caller)
        return DepartmentsResponse(
            departments=[schemas.Department.of(department) for department in found],
            total=len(found),
        )

    @router.get(
        "/api/agents/catalog",
        summary="Get the whole catalog",
        response_model=CatalogResponse,
        responses={
            200: {"headers": ETAG},
            304: {"description": "The catalog has not changed.", "headers": ETAG},
        },
    )
    async def get_catalog(
        caller: Reader,
        if_none_match: Annotated[
            str | None,
            Header(
                description="The ETag of an earlier response. If nothing has changed, the "
                "response is "
                "304 without a body.",
                examples=['"7d793037a0760186574b0282f2f435e7"'],
            ),
        ] = None,
    ) -> Response:
        """Returns every agent, department by department, with an ETag for caching."""
        sections = [
            CatalogSection(department=name, agents=[listed(agent, caller) for agent in agents])
            for name, agents in await catalog.by_department(caller)
        ]
        total = sum(len(section.agents) for section in sections)
        response = CatalogResponse(catalog=sections, total=total)
        return _revalidated(response.model_dump_json(by_alias=True).encode(), if_none_match)

    # Last, because its pattern also matches the paths above.
    @router.get("/api/agents/{name}", summary="Get an agent", responses=documented(404))
    async def get_agent(caller: Reader, name: AgentName) -> AgentResponse:
        """Returns one agent, with what it can use and spend. The instructions of a locked agent
        are null."""
        agent = await catalog.get(caller, name)
        return AgentResponse(agent=AgentDetails.of_version(agent, caller.tier, agent_access))

    @router.get(
        "/api/agents/{name}/versions",
        summary="List the versions of an agent",
        responses=documented(404),
    )
    async def list_agent_versions(
        caller: Reader, name: AgentName, limit: Limit = 50, offset: Offset = 0
    ) -> VersionsResponse:
        """Returns each version of the agent, newest first. A change of the agent's file makes a
        new version. The instructions of a locked agent are null."""
        agent, found, total = await catalog.versions(caller, name, limit, offset)
        return VersionsResponse(
            versions=[Version.of(each, agent, caller.tier, agent_access) for each in found],
            total=total,
        )

    return router


def _revalidated(body: bytes, if_none_match: str | None) -> Response:
    """The body, or 304 if the caller already has it.

    The ETag is a hash of the body, so it changes whenever the body does: after a sync, with the
    account's tier, or with a new release.
    """
    etag = f'"{sha256(body).hexdigest()[:32]}"'
    headers = {
        "ETag": etag,
        "Cache-Control": "private, no-cache",
        "Vary": "Authorization, X-Service-Account",
    }
    known = [tag.strip().removeprefix("W/") for tag in (if_none_match or "").split(",")]
    if etag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")
