"""Why a change of policies is refused."""

from rota.platform.errors import Conflict


class TooFewApprovers(Conflict):
    def __init__(self, count: int) -> None:
        super().__init__(
            f"The account has {count} approver{'s' * (count != 1)}. With secondPerson, nobody can "
            "approve what they shaped, so at least two are needed. Add another approver first."
        )
