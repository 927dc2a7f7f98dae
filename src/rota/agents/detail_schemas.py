"""Public schemas of one agent: what it can use and spend, and its versions."""

from typing import Annotated, Any

from pydantic import ConfigDict

from rota.agents import model as catalog
from rota.agents.access import AgentAccess
from rota.agents.schemas import Agent, Approval, ApprovalPolicy, BudgetCents, ModelName, Tools
from rota.platform.http import examples
from rota.platform.http.schemas import EXTENDS, Timestamp, Total, Wire, doc

_INSTRUCTIONS = "You turn descriptions of work into a procedure."


Instructions = Annotated[
    str | None, doc("What the agent is told to do. Null if it is locked.", _INSTRUCTIONS)
]
OutputSchema = Annotated[
    dict[str, Any] | None,
    doc(
        "The JSON Schema of the agent's output. Null if the output is text, or if the agent is "
        "locked.",
        {"type": "object", "properties": {"steps": {"type": "array"}}, "required": ["steps"]},
    ),
]
MaxSteps = Annotated[int, doc("The maximum number of model calls in one run.", 20)]
MaxConcurrent = Annotated[
    int | None,
    doc(
        "How many of the agent's tasks can run at the same time in your account. Null: no limit.",
        None,
        2,
    ),
]


class AgentDetails(Agent):
    """An agent of the catalog, with what it can use and spend."""

    model_config = ConfigDict(json_schema_extra={EXTENDS: "Agent"})

    version: Annotated[int, doc("The current version. New tasks use it.", 3)]
    instructions: Instructions
    max_steps: MaxSteps
    max_concurrent: MaxConcurrent
    aliases: Annotated[list[str], doc("Other names that find the agent.", ["runbook-writer"])]
    use_for: Annotated[list[str], doc("The work that the agent is for.", ["write a checklist"])]
    output_schema: OutputSchema

    @classmethod
    def of_version(
        cls, agent: catalog.AgentVersion, tier: str, agent_access: AgentAccess
    ) -> "AgentDetails":
        shown = Agent.of(agent, tier, agent_access, agent_access.model_in_detail)
        return cls(
            **dict(shown),
            version=agent.version,
            instructions=None if shown.locked else agent.instructions,
            max_steps=agent.max_steps,
            max_concurrent=agent.max_concurrent,
            aliases=list(agent.aliases),
            use_for=list(agent.use_for),
            output_schema=None if shown.locked else agent.output_schema,
        )


class AgentResponse(Wire):
    """One agent."""

    agent: Annotated[AgentDetails, doc("The agent.")]


class Version(Wire):
    """A version of an agent. Versions never change."""

    version: Annotated[int, doc("The number of the version, from 1.", 3)]
    created_at: Annotated[Timestamp, doc("When it was added.", examples.SIGNED_UP)]
    current: Annotated[bool, doc("Whether new tasks use it.", True)]
    instructions: Instructions
    model: ModelName = None
    tools: Tools
    approval: Approval
    budget_cents: BudgetCents
    max_steps: MaxSteps
    max_concurrent: MaxConcurrent
    output_schema: OutputSchema

    @classmethod
    def of(
        cls,
        found: catalog.CatalogVersion,
        current: catalog.AgentVersion,
        tier: str,
        agent_access: AgentAccess,
    ) -> "Version":
        definition = found.definition
        # Both: an earlier version may have been for other tiers.
        locked = agent_access.locked(current, tier) or agent_access.locked(definition, tier)
        return cls(
            version=definition.version,
            created_at=found.created_at,
            current=definition.version == current.version,
            instructions=None if locked else definition.instructions,
            model=definition.model if agent_access.model_in_detail(tier, locked) else None,
            tools=list(definition.tools),
            approval=ApprovalPolicy.of(definition.approval),
            budget_cents=definition.budget_cents,
            max_steps=definition.max_steps,
            max_concurrent=definition.max_concurrent,
            output_schema=None if locked else definition.output_schema,
        )


class VersionsResponse(Wire):
    """A page of versions."""

    versions: Annotated[list[Version], doc("The versions on this page, newest first.")]
    total: Total
