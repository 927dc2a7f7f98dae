"""Why a request about schedules is refused, or why a schedule could not create its task."""

from rota.platform.errors import Conflict, FieldError, Forbidden, NotFound, ValidationFailed
from rota.tasks.errors import InvalidField


class ScheduleNotFound(NotFound):
    def __init__(self) -> None:
        super().__init__("Schedule not found. GET /api/schedules lists the schedules.")


class TooManySchedules(Conflict):
    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The account has {limit} schedules, which is the limit. Delete one that is not needed."
        )


class InvalidTimes(ValidationFailed):
    """The expression or the time zone is wrong."""

    def __init__(self, field: str, problem: str) -> None:
        invalid = ValidationFailed.of(FieldError(field, problem))
        super().__init__(invalid.message, details=invalid.details)


class TaskIncomplete(InvalidField):
    def __init__(self) -> None:
        super().__init__(
            "truncated",
            "Parts of the task were cut in a list. Read the schedule with GET /api/schedules/{id} "
            "and send its task.",
        )


class TaskNotUsable(Conflict):
    """Another version of the service stored the task, and this one does not know a field of it."""

    def __init__(self) -> None:
        super().__init__(
            "Another version of the service saved the task of this schedule. This version cannot "
            "create it. Save the task again with PATCH /api/schedules/{id}."
        )


class OwnerCannotAct(Forbidden):
    """The user or the API key that saved a schedule cannot create tasks any more."""

    code = "SCHEDULE_OWNER_INVALID"

    def __init__(self) -> None:
        super().__init__(
            "The user or the API key that saved this schedule can no longer create tasks in the "
            "account. The schedule is paused. Resume it with a valid credential, which it uses "
            "from then on."
        )
