"""Why an export or an erasure is refused."""

from rota.credits.money import spent_cents, usd
from rota.platform.errors import Conflict, FieldError, Forbidden, NotFound, ValidationFailed


class RecentSignInRequired(Forbidden):
    code = "RECENT_SIGN_IN_REQUIRED"

    def __init__(self) -> None:
        super().__init__(
            "Sign in again before you erase the account: the session must be younger than 10 "
            "minutes."
        )


class SoleOwner(Conflict):
    def __init__(self, company: str) -> None:
        super().__init__(
            f"You are the only owner of the company {company}. Make another member an owner, or "
            "erase the company first."
        )


class MoneyOwed(Conflict):
    def __init__(self, micros: int) -> None:
        super().__init__(
            f"The account owes ${usd(spent_cents(micros))}. Add credits to pay it, or ask the "
            "operator of the service to erase the account."
        )


class AccountErased(NotFound):
    def __init__(self) -> None:
        super().__init__("The account was erased.")


def wrong_name() -> ValidationFailed:
    return ValidationFailed.of(
        FieldError("name", "must be the name of the account, exactly as GET /api/me shows it")
    )
