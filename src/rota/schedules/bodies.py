"""What a client sends to create or change a schedule."""

from typing import Annotated

from pydantic import Field

from rota.platform.http.schemas import Body, Visible, doc, example_of, resource_of
from rota.schedules.schemas import CRON, NAME, TIME_ZONE, Overlap, Schedule
from rota.tasks.bodies import TaskBody
from rota.tasks.schemas import CutText

Name = Annotated[
    str, doc("A display name, 1 to 255 characters.", NAME, min_length=1, max_length=255), Visible
]
Cron = Annotated[
    str,
    doc(
        "When to create a task: minute, hour, day of month, month and day of week, as in cron.",
        CRON,
        min_length=1,
        max_length=100,
    ),
]
TimeZone = Annotated[
    str,
    doc(
        "The time zone of `cron`, a name of the IANA database.",
        TIME_ZONE,
        min_length=1,
        max_length=100,
    ),
]
Paused = Annotated[bool, doc("A paused schedule creates no tasks.", False)]
OVERLAP = doc("What to do if an earlier task has not ended when the next time comes.", "skip")
TASK = doc(
    "The task to create each time. The fields are those of `POST /api/tasks`, except `deadline` "
    "and `dryRun`."
)

Truncated = Annotated[list[CutText], Field(max_length=5)]
TRUNCATED = doc(
    "As in the schedule that you read. A task that is incomplete cannot be sent back.", []
)


def _is_empty(value: object) -> bool:
    return not value


class CreateSchedule(Body):
    """A schedule to create."""

    model_config = example_of("name", "cron", "timeZone", "task", "overlap")

    name: Name
    cron: Cron
    time_zone: TimeZone
    task: Annotated[TaskBody, TASK]
    overlap: Annotated[Overlap, OVERLAP] = "skip"
    paused: Paused = False
    # It came later: a request without it keeps the fingerprint of its Idempotency-Key.
    truncated: Annotated[Truncated | None, TRUNCATED, Field(exclude_if=_is_empty)] = None


class PatchSchedule(Body):
    """Changes to a schedule. Absent fields change nothing."""

    model_config = example_of("paused")

    name: Name | None = None
    cron: Cron | None = None
    time_zone: TimeZone | None = None
    task: Annotated[TaskBody | None, TASK] = None
    overlap: Annotated[Overlap | None, OVERLAP] = None
    paused: Paused | None = None
    truncated: Annotated[Truncated | None, TRUNCATED] = None


resource_of(CreateSchedule, PatchSchedule)(Schedule)
