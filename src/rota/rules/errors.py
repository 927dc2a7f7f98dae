"""Why a request about rules is refused."""

from rota.auth.errors import SecondPersonRequired
from rota.platform.errors import Conflict, FieldError, NotFound, ValidationFailed


class RuleNotFound(NotFound):
    def __init__(self) -> None:
        super().__init__("Rule not found. GET /api/rules lists the rules.")


class TooManyRules(Conflict):
    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The account has {limit} rules in force, which is the limit. Delete one that is not "
            "needed."
        )


class RulesTooLarge(Conflict):
    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"With this rule, the conditions of the account's rules in force have {size} bytes as "
            f"JSON. The limit is {limit}. Delete a rule that is not needed, or make this one "
            "smaller: use min and max or any instead of long values."
        )


class InvalidRule(ValidationFailed):
    """One field is wrong."""

    def __init__(self, field: str, problem: str) -> None:
        invalid = ValidationFailed.of(FieldError(field, problem))
        super().__init__(invalid.message, details=invalid.details)


class ReviewOutdated(Conflict):
    """The rule would be bound to something else than what the review shows."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"The {what} has changed since the review. Make the rule from a newer review, or "
            "without one."
        )


class AcceptedToolOfRule(SecondPersonRequired):
    def __init__(self) -> None:
        super().__init__(
            "You accepted the definition of this tool, or connected or changed its server. This "
            "account requires a second person's approval: ask another approver to make the rule.",
            details={"because": ["acceptedTool"]},
        )
