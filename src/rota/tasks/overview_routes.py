"""Endpoints: the holds of tasks, and the statistics of an agent.

They are here because they read tasks, which `credits` and `agents` cannot do.
"""

from typing import Annotated

from fastapi import APIRouter, Depends

from rota.agents.routes import AgentName
from rota.auth.caller import Caller
from rota.auth.routing import allowed, secured_router
from rota.credits.money import exact_usd
from rota.platform.http.description import documented
from rota.platform.http.schemas import Limit, Offset
from rota.tasks.overview import Overview
from rota.tasks.overview_schemas import AgentStatistics, Hold, HoldsResponse, StatisticsResponse


def hold_routes(overview: Overview) -> APIRouter:
    router = secured_router("Credits")

    @router.get("/api/credits/holds", summary="List holds")
    async def list_holds(
        caller: Annotated[Caller, Depends(allowed("billing:read", "tasks:read"))],
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> HoldsResponse:
        """Returns the money that is set aside for tasks that have not ended, the largest hold
        first. The rest of a hold is released when its task ends."""
        found = await overview.holds(caller, limit, offset)
        return HoldsResponse(
            holds=[Hold.of(hold, task) for hold, task in found.page],
            total=found.total,
            held_usd=exact_usd(found.held_micros),
        )

    return router


def statistics_routes(overview: Overview) -> APIRouter:
    router = secured_router("Agents")

    @router.get(
        "/api/agents/{name}/statistics",
        summary="Get the statistics of an agent",
        responses=documented(404),
    )
    async def agent_statistics(
        caller: Annotated[Caller, Depends(allowed("agents:read", "tasks:read"))],
        name: AgentName,
    ) -> StatisticsResponse:
        """Returns how the account's own tasks of this agent went in the last 30 days: how many
        there are in each state, what they cost and how long they took."""
        found = await overview.statistics(caller, name)
        return StatisticsResponse(statistics=AgentStatistics.of(found))

    return router
