"""Wire shapes of agents, as an account of a given tier sees them."""

from typing import Annotated

from pydantic import Field, WithJsonSchema

from rota.agents import model as catalog
from rota.agents.access import AgentAccess, Disclosure
from rota.platform.http.schemas import Wire


def _is_none(value: object) -> bool:
    return value is None


class Agent(Wire):
    name: str
    display_name: str
    description: str
    department: str
    tier: Annotated[int, Field(ge=1, le=3)]
    tags: list[str]
    premium: bool
    required_tier: str
    locked: bool
    # Absent, and never null, where it is not told.
    model: Annotated[str | None, Field(exclude_if=_is_none), WithJsonSchema({"type": "string"})] = (
        None
    )

    @classmethod
    def of(
        cls, agent: catalog.Agent, tier: str, agent_access: AgentAccess, disclosure: Disclosure
    ) -> "Agent":
        locked = agent_access.locked(agent, tier)
        return cls(
            name=agent.name,
            display_name=agent.display_name,
            description=agent.description,
            department=agent.department,
            tier=agent.rank,
            tags=list(agent.tags),
            premium=agent.premium,
            required_tier=agent_access.required_tier(agent),
            locked=locked,
            model=agent.model if disclosure(tier, locked) else None,
        )


class AgentResponse(Wire):
    agent: Agent


class ResolvedResponse(Wire):
    agent: Agent
    # How much of the description of work the agent covers; only where one was given.
    score: Annotated[
        float | None,
        Field(exclude_if=_is_none),
        WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1}),
    ] = None


class AgentsResponse(Wire):
    agents: list[Agent]
    departments: list[str]
    total: int
    page: int
    limit: int


class Department(Wire):
    name: str
    agents: int
    tiers: list[int]

    @classmethod
    def of(cls, department: catalog.Department) -> "Department":
        return cls(name=department.name, agents=department.agents, tiers=department.ranks)


class DepartmentsResponse(Wire):
    departments: list[Department]
    total: int


class CatalogSection(Wire):
    department: str
    agents: list[Agent]


class CatalogResponse(Wire):
    catalog: list[CatalogSection]
    total: int
