"""Public schemas of holds and of the statistics of an agent."""

from typing import Annotated

from pydantic import Field

from rota.credits.money import exact_usd
from rota.credits.queries import OpenHold
from rota.credits.schemas import ExactUsd
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import Count, Timestamp, Total, Wire, doc
from rota.tasks import overview
from rota.tasks.overview_queries import Label
from rota.tasks.schemas import NAME, TaskStatus


class Hold(Wire):
    """Money that is set aside for a task that has not ended."""

    task_id: Annotated[str, doc("The ID of the task.", examples.TASK_ID)]
    task_name: Annotated[str, doc("The name of the task.", NAME)]
    agent: Annotated[str | None, doc("The agent of the task.", examples.AGENT)]
    status: Annotated[TaskStatus, doc("The state of the task.", "RUNNING")]
    held_usd: Annotated[ExactUsd, doc("US dollars that are still on hold.", "0.388300")]
    used_usd: Annotated[ExactUsd, doc("US dollars that the run has spent so far.", "0.011700")]
    created_at: Annotated[Timestamp, doc("When the money was set aside.", examples.CREATED)]

    @classmethod
    def of(cls, hold: OpenHold, task: Label) -> "Hold":
        return cls(
            task_id=ids.to_wire("task", hold.task_id),
            task_name=task.name,
            agent=task.agent,
            status=task.status,
            held_usd=exact_usd(hold.held),
            used_usd=exact_usd(hold.used),
            created_at=hold.created_at,
        )


class HoldsResponse(Wire):
    """A page of holds."""

    holds: Annotated[list[Hold], doc("The holds on this page, the largest first.")]
    total: Total
    held_usd: Annotated[ExactUsd, doc("US dollars that all holds have on hold.", "0.388300")]


class AgentStatistics(Wire):
    """How the account's tasks of one agent went in the last 30 days."""

    from_: Annotated[
        Timestamp,
        Field(
            alias="from",
            description="Only tasks created at this time or later count.",
            examples=["2026-10-03T09:30:00.000Z"],
        ),
    ]
    to: Annotated[Timestamp, doc("The time of the request.", examples.CREATED)]
    tasks: Annotated[
        Count,
        doc("Tasks in any state. Tasks that your own client runs do not count.", 24),
    ]
    completed: Annotated[Count, doc("`COMPLETED` tasks.", 19)]
    failed: Annotated[Count, doc("`FAILED` tasks.", 1)]
    cancelled: Annotated[Count, doc("`CANCELLED` tasks.", 2)]
    waiting: Annotated[Count, doc("`WAITING_APPROVAL` tasks.", 1)]
    running: Annotated[Count, doc("`PENDING` and `RUNNING` tasks.", 1)]
    success_rate: Annotated[
        float | None,
        doc(
            "`completed` divided by `completed` plus `failed`. Null if both are 0.",
            0.95,
            ge=0,
            le=1,
        ),
    ]
    median_cost_usd: Annotated[
        str | None,
        doc(
            "The median cost of completed tasks in US dollars, with six decimals. Null without a "
            "completed task.",
            "0.011700",
        ),
    ]
    median_duration_ms: Annotated[
        int | None,
        doc(
            "The median time from start to end of completed tasks in milliseconds, without the "
            "time in which they waited for people. Null without a completed task.",
            21_243,
        ),
    ]

    @classmethod
    def of(cls, statistics: overview.AgentStatistics) -> "AgentStatistics":
        counts = statistics.counts
        ended = counts.completed + counts.failed
        cost_micros = counts.median_cost_micros
        return cls(
            from_=statistics.start,
            to=statistics.end,
            tasks=counts.tasks,
            completed=counts.completed,
            failed=counts.failed,
            cancelled=counts.cancelled,
            waiting=counts.waiting,
            running=counts.running,
            success_rate=round(counts.completed / ended, 4) if ended else None,
            median_cost_usd=None if cost_micros is None else exact_usd(cost_micros),
            median_duration_ms=counts.median_duration_ms,
        )


class StatisticsResponse(Wire):
    """The statistics of an agent."""

    statistics: Annotated[AgentStatistics, doc("The statistics.")]
