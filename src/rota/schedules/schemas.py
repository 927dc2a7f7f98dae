"""Public schemas of schedules."""

from typing import Annotated

from typing_extensions import TypeAliasType

from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import Timestamp, Total, Wire, doc
from rota.schedules import model
from rota.tasks.bodies import TaskBody
from rota.tasks.schemas import CutText, Task

NAME = "Weekly checklist"
CRON = "0 9 * * MON"
TIME_ZONE = "Europe/Berlin"
_NEXT = "2026-11-09T08:00:00.000Z"

Overlap = TypeAliasType(
    "Overlap",
    Annotated[
        model.Overlap,
        doc(
            "What a schedule does if an earlier task has not ended when the next time "
            "comes. `skip`: "
            "it creates no task. `queue`: it creates the task when the earlier one has ended; if "
            "several times pass meanwhile, one task.",
            "skip",
        ),
    ],
)
ScheduleOutcome = TypeAliasType(
    "ScheduleOutcome",
    Annotated[
        model.Outcome,
        doc(
            "The outcome of a scheduled time: a task was created, the time was skipped because "
            "an earlier task had not ended, or the task could not be created.",
            "created",
        ),
    ],
)


class ScheduleError(Wire):
    """Why a schedule could not create a task."""

    code: Annotated[str, doc("A code for programs to check.", "INSUFFICIENT_CREDITS")]
    message: Annotated[
        str,
        doc(
            "What happened and what to do next, as readable text.",
            "The agent's budget of $0.50 must be available before a run starts.",
        ),
    ]


class Schedule(Wire):
    """A task that is created again and again, at the times of a cron expression."""

    id: Annotated[str, doc("The ID of the schedule, `sched_…`.", examples.SCHEDULE_ID)]
    name: Annotated[str, doc("The display name.", NAME)]
    cron: Annotated[
        str, doc("Minute, hour, day of month, month and day of week, as in cron.", CRON)
    ]
    time_zone: Annotated[str, doc("The time zone of `cron`.", TIME_ZONE)]
    task: Annotated[TaskBody, doc("The task that is created each time.")]
    overlap: Annotated[
        Overlap, doc("What happens at a time at which an earlier task has not ended.", "skip")
    ]
    paused: Annotated[bool, doc("A paused schedule creates no tasks.", False)]
    next_at: Annotated[
        Timestamp | None,
        doc(
            "When the next task is created. A time in the past waits until an earlier task ends. "
            "Null while the schedule is paused.",
            _NEXT,
        ),
    ]
    last_due_at: Annotated[
        Timestamp | None,
        doc("The last time that the schedule handled.", "2026-11-02T08:00:00.000Z"),
    ]
    last_outcome: Annotated[
        ScheduleOutcome | None, doc("The outcome of the last scheduled time.", "created")
    ]
    last_error: Annotated[
        ScheduleError | None,
        doc("Why the last task could not be created. Null after a task was created.", None),
    ]
    created_at: Annotated[Timestamp, doc("When the schedule was created.", examples.CREATED)]
    updated_at: Annotated[Timestamp, doc("When it was last changed.", examples.CREATED)]
    truncated: Annotated[
        list[CutText],
        doc(
            "The fields of `task` that are incomplete. Empty except in a list whose page would be "
            "larger than 1 MiB. `GET /api/schedules/{id}` returns the whole task.",
            [],
        ),
    ]

    @classmethod
    def of(cls, schedule: model.Schedule) -> "Schedule":
        error = schedule.last_error
        return cls(
            id=ids.to_wire("sched", schedule.id),
            name=schedule.name,
            cron=schedule.cron,
            time_zone=schedule.time_zone,
            # As it is stored: a newer version of the service may have saved it, with other fields.
            task=TaskBody.model_construct(**schedule.task),
            overlap=schedule.overlap,
            paused=schedule.paused,
            next_at=schedule.next_at,
            last_due_at=schedule.last_due_at,
            last_outcome=schedule.last_outcome,
            last_error=ScheduleError(**error) if error else None,
            created_at=schedule.created_at,
            updated_at=schedule.updated_at,
            truncated=schedule.truncated if isinstance(schedule, model.ListedSchedule) else [],
        )


class ScheduleResponse(Wire):
    """One schedule."""

    schedule: Annotated[Schedule, doc("The schedule.")]


class ScheduleDetailsResponse(Wire):
    """One schedule, with its next times and its last tasks."""

    schedule: Annotated[Schedule, doc("The schedule.")]
    next_times: Annotated[
        list[Timestamp], doc("The next five times. Empty while the schedule is paused.", [_NEXT])
    ]
    last_tasks: Annotated[list[Task], doc("The last ten tasks of the schedule, newest first.", [])]


class SchedulesResponse(Wire):
    """A page of schedules."""

    schedules: Annotated[list[Schedule], doc("The schedules on this page, newest first.")]
    total: Total
    truncated: Annotated[
        bool,
        doc(
            "Whether texts of tasks were cut after 2,000 characters, and their actions and schemas "
            "left out, because the page would be larger than 1 MiB. `truncated` of each schedule "
            "says what is missing.",
            False,
        ),
    ]
