"""Public schemas of agents, as an account of a given tier sees them."""

from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema
from typing_extensions import TypeAliasType

from rota.agents import model as catalog
from rota.agents.access import AgentAccess, Disclosure
from rota.auth.schemas import Tier
from rota.platform.http import examples
from rota.platform.http.schemas import Count, Total, Wire, doc

DepartmentName = Annotated[str, doc("The name of the department.", "Operations")]


def _is_none(value: object) -> bool:
    return value is None


ModelName = Annotated[
    str | None,
    Field(exclude_if=_is_none),
    WithJsonSchema({"type": "string"}),
    doc(
        "The model that the agent uses. Absent if your tier does not include this field.",
        "default",
    ),
]


ToolApproval = TypeAliasType(
    "ToolApproval",
    Annotated[
        Literal["never", "writes", "always"],
        doc("`writes`: calls of tools that their server does not mark as read-only.", "writes"),
    ],
)


class ApprovalPolicy(Wire):
    """When a person must approve."""

    run: Annotated[bool, doc("Before each run.", False)]
    tools: Annotated[
        ToolApproval | list[str],
        doc("Before which tool calls. A list has patterns of tools, `server/tool`.", "writes"),
    ]
    output: Annotated[bool, doc("Before the output is final.", False)]

    @classmethod
    def of(cls, approval: catalog.Approval) -> "ApprovalPolicy":
        tools = approval.tools
        return cls(
            run=approval.run,
            tools=tools if isinstance(tools, str) else list(tools),
            output=approval.output,
        )


Tools = Annotated[
    list[str],
    doc("The tools that it can use, as patterns `server/tool`.", ["docs/*"]),
]
Approval = Annotated[ApprovalPolicy, doc("What a person must approve.")]
BudgetCents = Annotated[
    int, doc("The most that one run can cost, in US cents. It is held before the start.", 40)
]


class Agent(Wire):
    """An agent of the catalog, as the selected account sees it."""

    name: Annotated[
        str, doc("The unique name. Use it as `agent` when you create a task.", examples.AGENT)
    ]
    display_name: Annotated[str, doc("The display name.", "Process Writer")]
    initials: Annotated[
        str, doc("Two letters that stand for the agent where its name does not fit.", "PW")
    ]
    description: Annotated[
        str,
        doc(
            "What the agent does.",
            "Turns descriptions of how work is done into a clear procedure or checklist.",
        ),
    ]
    department: DepartmentName
    tier: Annotated[
        int,
        doc("The rank of the agent: 1 Director, 2 Lead, 3 Specialist.", 3, ge=1, le=3),
    ]
    tags: Annotated[
        list[str], doc("What the agent can do.", ["procedures", "checklists", "writing"])
    ]
    premium: Annotated[bool, doc("Whether it is a premium agent.", False)]
    required_tier: Annotated[Tier, doc("The lowest account tier that can use the agent.")]
    locked: Annotated[
        bool, doc("True if the tier of the selected account is too low for the agent.", False)
    ]
    model: ModelName = None
    tools: Tools
    approval: Approval
    budget_cents: BudgetCents

    @classmethod
    def of(
        cls, agent: catalog.Agent, tier: str, agent_access: AgentAccess, disclosure: Disclosure
    ) -> "Agent":
        locked = agent_access.locked(agent, tier)
        return cls(
            name=agent.name,
            display_name=agent.display_name,
            initials=agent.shown_initials,
            description=agent.description,
            department=agent.department,
            tier=agent.rank,
            tags=list(agent.tags),
            premium=agent.premium,
            required_tier=agent_access.required_tier(agent),
            locked=locked,
            model=agent.model if disclosure(tier, locked) else None,
            tools=list(agent.tools),
            approval=ApprovalPolicy.of(agent.approval),
            budget_cents=agent.budget_cents,
        )


class Candidate(Wire):
    """An agent that fits a description of work."""

    agent: Annotated[Agent, doc("The agent, as lists show it.")]
    score: Annotated[
        float,
        doc("How well the agent fits the description of work, from 0 to 1.", 0.75, ge=0, le=1),
    ]


class ResolvedResponse(Wire):
    """The best match."""

    agent: Annotated[Agent, doc("The agent.")]
    score: Annotated[
        float | None,
        Field(exclude_if=_is_none),
        WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1}),
        doc(
            "How well the agent fits the description of work, from 0 to 1. Absent if you "
            "searched by name.",
            0.75,
        ),
    ] = None
    candidates: Annotated[
        list[Candidate] | None,
        Field(exclude_if=_is_none),
        WithJsonSchema(
            {"type": "array", "items": {"$ref": "#/components/schemas/Candidate"}, "maxItems": 5}
        ),
        doc(
            "Up to five agents that fit the description of work, including `agent`. Agents that "
            "your account can use come first, then the best match. Absent if you searched by name.",
        ),
    ] = None


class AgentsResponse(Wire):
    """A page of agents."""

    agents: Annotated[list[Agent], doc("The agents on this page.")]
    departments: Annotated[
        list[str], doc("The names of all departments, sorted.", ["Operations", "Support"])
    ]
    total: Total
    page: Annotated[int, doc("The page number, from 1.", 1)]
    limit: Annotated[int, doc("The maximum number of agents on a page.", 50)]


class Department(Wire):
    """A department of the catalog."""

    name: DepartmentName
    agents: Annotated[Count, doc("The number of agents in the department.", 5)]
    tiers: Annotated[list[int], doc("The ranks that its agents have, in order.", [1, 2, 3])]

    @classmethod
    def of(cls, department: catalog.Department) -> "Department":
        return cls(name=department.name, agents=department.agents, tiers=department.ranks)


class DepartmentsResponse(Wire):
    """All departments."""

    departments: Annotated[list[Department], doc("The departments, by name.")]
    total: Total


class CatalogSection(Wire):
    """The agents of one department."""

    department: DepartmentName
    agents: Annotated[list[Agent], doc("The agents of the department, by rank and name.")]


class CatalogResponse(Wire):
    """The whole catalog."""

    catalog: Annotated[list[CatalogSection], doc("The departments and their agents.")]
    total: Annotated[Count, doc("The number of agents in all departments.", 1)]
