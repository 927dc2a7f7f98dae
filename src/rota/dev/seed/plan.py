"""How much to generate."""

from collections.abc import Callable
from dataclasses import dataclass

TASKS_PER_ACCOUNT = 1_000

# Called with the name of the stage, the number of finished steps and the number of all steps.
OnProgress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """The number of tasks, of accounts, and of tasks in the largest account."""

    tasks: int
    accounts: int
    largest: int

    @classmethod
    def of(cls, tasks: int, accounts: int | None = None, largest: int | None = None) -> "Plan":
        accounts = max(2, tasks // TASKS_PER_ACCOUNT) if accounts is None else accounts
        largest = max(1, tasks // 10) if largest is None else largest
        if not 1 <= largest <= tasks:
            raise ValueError(
                f"The largest account must have between 1 and {tasks} tasks, not {largest}."
            )
        if not 2 <= accounts <= tasks - largest + 1:
            raise ValueError(
                f"The number of accounts must be between 2 and {tasks - largest + 1},"
                f" not {accounts}: every account needs a task."
            )
        return cls(tasks, accounts, largest)
