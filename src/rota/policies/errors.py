"""Why a change of policies is refused."""

from rota.platform.errors import Conflict


class TooFewApprovers(Conflict):
    def __init__(self, count: int) -> None:
        super().__init__(
            f"The account has {count} approver{'s' * (count != 1)}. With secondPerson, users "
            "cannot approve what they shaped, so the account needs at least two approvers. "
            "Add another approver first."
        )
