"""Public schemas of holds."""

from typing import Annotated

from rota.credits.money import exact_usd
from rota.credits.queries import OpenHold
from rota.credits.schemas import ExactUsd
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import Timestamp, Total, Wire, doc
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
