"""The monthly allowance that an account's plan gives."""

from collections.abc import Callable
from datetime import timedelta

from rota.accounts import queries as accounts
from rota.credits.allowance import AllowanceOf, MonthlyAllowance
from rota.plans import queries
from rota.plans.queries import PLAN
from rota.plans.states import state_at
from rota.platform import clock
from rota.platform.db import AccountReader

# The monthly allowance of a tier with a number of seats, in micro-dollars.
TierAllowance = Callable[[str, int | None], int]


def plan_allowance(
    tier_allowance: TierAllowance, lowest_tier: str, grace: timedelta
) -> AllowanceOf:
    """The tier's allowance. A trial has none, and an unpaid month starts when it is paid.

    A period counts as paid when the processor has said so: not while its invoice is open, nor
    before the processor has reported the period. The lowest tier costs nothing. A company that a
    user has created gets no allowance for it: otherwise, each new company would be free money.
    """

    async def allowance_of(tx: AccountReader, tier: str, seats: int | None) -> MonthlyAllowance:
        state = await queries.find(tx, PLAN)
        if state is None or not state.live or not state.entitled:
            if tier == lowest_tier and await accounts.is_self_made(tx):
                return MonthlyAllowance(0)
            return MonthlyAllowance(tier_allowance(tier, seats))
        now = clock.now()
        # A cancellation or a grace period may have ended, and the account still have the tier.
        is_entitled = state_at(state, now, grace).entitled
        paid = is_entitled and state.unpaid_since is None and state.period_end > now
        if state.status == "TRIALING":
            return MonthlyAllowance(0, paid=paid, trial_ends_at=state.period_end)
        period = (state.period_start, state.period_end)
        return MonthlyAllowance(tier_allowance(tier, seats), paid=paid, period=period)

    return allowance_of
