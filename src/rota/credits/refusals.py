"""The error of a run that the account cannot pay for, with what the account has to do."""

from rota.credits.money import available_cents, of_cents, usd
from rota.platform.db import AccountReader
from rota.platform.errors import ApiError


class InsufficientCredits(ApiError):
    status = 402
    code = "INSUFFICIENT_CREDITS"

    def __init__(self, budget_cents: int, remedy: str) -> None:
        super().__init__(
            f"The run's budget of ${usd(budget_cents)} must be available before it starts. "
            f"{remedy}, or wait until other tasks end and release their holds. "
            "GET /api/credits/balance shows what is available."
        )
        self.budget_cents = budget_cents


async def refusal(tx: AccountReader, budget_cents: int) -> InsufficientCredits:
    """The error for a hold that was refused."""
    balance = await tx.fetchrow(
        """
        SELECT allowance + topup AS total, topup, allow_overflow OR allowance_total = 0 AS usable
        FROM balances WHERE account_id = $1
        """,
        tx.account_id,
    )
    top_up = "Top up with POST /api/credits/topup"
    setting = "allowOverflow to true with PATCH /api/credits/settings"
    if balance["usable"]:
        remedy = top_up
    elif balance["total"] >= of_cents(budget_cents):
        remedy = (
            "The monthly allowance does not cover it, and runs cannot use the top-up balance of "
            f"${usd(available_cents(balance['topup']))}, because allowOverflow is false. "
            f"Set {setting}"
        )
    else:
        remedy = f"{top_up} and set {setting}"
    return InsufficientCredits(budget_cents, remedy)
