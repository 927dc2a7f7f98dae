"""Public schemas of quotes."""

from typing import Annotated

from rota.credits.money import exact_usd, of_cents
from rota.credits.schemas import ExactUsd
from rota.platform.http import examples
from rota.platform.http.schemas import Count, Timestamp, Wire, doc
from rota.tasks import quotes
from rota.tasks.review_schemas import Gate


class QuotedAgent(Wire):
    """The agent that would run."""

    name: Annotated[str, doc("The name of the agent.", examples.AGENT)]
    display_name: Annotated[str, doc("Its display name.", "Process Writer")]
    version: Annotated[int, doc("The version that would run.", 3)]


class QuotedTool(Wire):
    """A tool that the agent can use now."""

    server: Annotated[str, doc("The name of the tool server.", "docs")]
    tool: Annotated[str, doc("The name of the tool.", "create_draft")]
    title: Annotated[
        str | None, doc("The title, as the server says. Null if it has none.", "Create a draft")
    ]
    read_only: Annotated[bool, doc("Whether the server marks it as read-only.", False)]
    needs_approval: Annotated[bool, doc("Whether a person must approve each call.", True)]


class TypicalCost(Wire):
    """The cost of the agent's newest tasks that completed in their first run."""

    tasks: Annotated[
        Count, doc("The number of tasks that these figures are based on, at most 100.", 100)
    ]
    median_usd: Annotated[ExactUsd, doc("Half of them cost at most this.", "0.021400")]
    p90_usd: Annotated[ExactUsd, doc("Nine of ten cost at most this.", "0.058000")]


class QuotedBalance(Wire):
    """Whether the balance covers the budget."""

    covered: Annotated[bool, doc("Whether the task could start now.", True)]
    available_usd: Annotated[
        ExactUsd, doc("What the account can use for the next run.", "12.500000")
    ]
    paid_by_parent: Annotated[
        bool, doc("Whether the hold of the parent task pays, and not the balance.", False)
    ]


class Quote(Wire):
    """What a task can cost, which tools it can use and which approvals it needs."""

    agent: Annotated[QuotedAgent, doc("The agent.")]
    budget_cents: Annotated[int, doc("The budget of the run, in US cents. It is held.", 25)]
    maximum_cost_usd: Annotated[
        ExactUsd,
        doc(
            "The most that the run can cost. For a task without a parent, this includes the "
            "subtasks that it delegates. A retry is another run.",
            "0.250000",
        ),
    ]
    typical_cost: Annotated[
        TypicalCost | None,
        doc("What is typical. Null if the agent has not completed a task of this account."),
    ]
    max_steps: Annotated[int, doc("The maximum number of model calls in the run.", 20)]
    deadline: Annotated[
        Timestamp | None, doc("The deadline that you sent. Null if none.", None, examples.EXPIRES)
    ]
    opens_gates: Annotated[
        list[Gate],
        doc(
            "The gates that the run opens, apart from questions of the agent: `run` for certain, "
            "`tool` if it makes a call that needs approval, `output` if it gets that far.",
            ["tool"],
        ),
    ]
    tools: Annotated[
        list[QuotedTool],
        doc("The tools of connected servers that the agent can use now, at most 200."),
    ]
    tool_count: Annotated[Count, doc("How many tools it can use now.", 1)]
    missing_tools: Annotated[
        list[str],
        doc("Patterns of the agent that no connected tool matches.", ["calendar/*"]),
    ]
    balance: Annotated[QuotedBalance, doc("Who would pay, and whether that is enough.")]

    @classmethod
    def of(cls, quote: quotes.Quote) -> "Quote":
        agent, typical = quote.agent, quote.typical
        return cls(
            agent=QuotedAgent(
                name=agent.name, display_name=agent.display_name, version=agent.version
            ),
            budget_cents=quote.budget_cents,
            maximum_cost_usd=exact_usd(of_cents(quote.budget_cents)),
            typical_cost=(
                TypicalCost(
                    tasks=typical.tasks,
                    median_usd=exact_usd(typical.median_micros),
                    p90_usd=exact_usd(typical.p90_micros),
                )
                if typical
                else None
            ),
            max_steps=agent.max_steps,
            deadline=quote.deadline,
            opens_gates=quote.opens_gates,
            tools=[
                QuotedTool(
                    server=tool.server,
                    tool=tool.name,
                    title=tool.title,
                    read_only=tool.read_only,
                    needs_approval=tool.needs_approval,
                )
                for tool in quote.tools
            ],
            tool_count=quote.tool_count,
            missing_tools=quote.missing_tools,
            balance=QuotedBalance(
                covered=quote.covered,
                available_usd=exact_usd(quote.available_micros),
                paid_by_parent=quote.paid_by_parent,
            ),
        )


class QuoteResponse(Wire):
    """A quote."""

    quote: Annotated[Quote, doc("The quote.")]
