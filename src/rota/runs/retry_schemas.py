"""Public schemas of what a retry would do."""

from typing import Annotated

from pydantic import Field

from rota.credits.money import exact_usd
from rota.credits.schemas import ExactUsd
from rota.platform.http.schemas import Count, Wire, doc
from rota.runs import retries
from rota.tasks.review_schemas import Gate
from rota.tasks.schemas import RetryFrom


class RetryOption(Wire):
    """One way to retry a task."""

    from_: Annotated[
        RetryFrom,
        Field(alias="from", description="Where the new run would start.", examples=["failure"]),
    ]
    version: Annotated[int, doc("The version of the agent that would run.", 1)]
    kept_steps: Annotated[
        Count, doc("The model calls and tool calls that would be kept, with their approvals.", 4)
    ]
    repeated_steps: Annotated[
        Count, doc("The model calls and tool calls of the failed run that would be done again.", 1)
    ]
    kept_cost_usd: Annotated[
        ExactUsd, doc("What the kept steps cost. They are not paid for again.")
    ]
    maximum_cost_usd: Annotated[
        ExactUsd, doc("The most that the new run can cost: its budget, which is held.", "0.250000")
    ]
    opens_gates: Annotated[
        list[Gate],
        doc(
            "The gates that the new run opens, apart from questions of the agent: `run` for "
            "certain, `tool` if it makes a call that needs approval, `output` if it gets that far.",
            ["tool", "output"],
        ),
    ]
    text_changed: Annotated[
        bool,
        doc("Whether a text of the task has changed since a person approved its run.", False),
    ]

    @classmethod
    def of(cls, option: retries.RetryOption) -> "RetryOption":
        return cls(
            from_=option.start_at,
            version=option.version,
            kept_steps=option.kept_steps,
            repeated_steps=option.repeated_steps,
            kept_cost_usd=exact_usd(option.kept_cost_micros),
            maximum_cost_usd=exact_usd(option.maximum_cost_micros),
            opens_gates=option.opens_gates,
            text_changed=option.text_changed,
        )


class RetryQuote(Wire):
    """Whether a task can be retried, and how."""

    available: Annotated[bool, doc("Whether the task can be retried now.", True)]
    reason: Annotated[
        str | None,
        doc(
            "Why it cannot be retried. Null if it can.", None, "Only a failed task can be retried."
        ),
    ]
    options: Annotated[
        list[RetryOption],
        doc("The ways to retry. Empty if there is none, and for a task that its client runs."),
    ]

    @classmethod
    def of(cls, quote: retries.RetryQuote) -> "RetryQuote":
        return cls(
            available=quote.reason is None,
            reason=quote.reason,
            options=[RetryOption.of(option) for option in quote.options],
        )


class RetryQuoteResponse(Wire):
    """What a retry would do."""

    retry: Annotated[RetryQuote, doc("What a retry would do.")]
