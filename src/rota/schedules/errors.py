"""Why a request about schedules is refused, or why a schedule could not create its task."""

from rota.platform.errors import Conflict, FieldError, Forbidden, NotFound, ValidationFailed


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


class OwnerCannotAct(Forbidden):
    """The user or the API key that saved a schedule cannot create tasks any more."""

    code = "SCHEDULE_OWNER_INVALID"

    def __init__(self) -> None:
        super().__init__(
            "The user or the API key that saved this schedule can no longer create tasks in the "
            "account. The schedule is paused. Resume it with a valid credential, which it uses "
            "from then on."
        )
