"""How long an account's money lasts at the pace of the last days."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from rota.credits.queries import Balance

WINDOW_DAYS = 7
# Later ends are not reported: they are too far away to matter, and dates end in the year 9999.
_HORIZON_DAYS = 3_653


@dataclass(frozen=True, slots=True)
class Forecast:
    spent_micros: int
    allowance_lasts_until: datetime | None
    balance_lasts_until: datetime | None


def forecast(balance: Balance, spent_micros: int, now: datetime) -> Forecast:
    """`spent_micros`: what the account spent in the last days."""
    allowance = balance.allowance + balance.held_allowance
    topup = balance.held_topup
    if balance.allow_overflow or balance.allowance_total == 0:
        topup += balance.topup
    allowance_ends = _end(allowance, spent_micros, now) if balance.allowance_total else None
    resets_at = balance.resets_at
    if allowance_ends and resets_at and allowance_ends >= resets_at:
        allowance_ends = None
    return Forecast(spent_micros, allowance_ends, _end(allowance + topup, spent_micros, now))


def _end(left_micros: int, spent_micros: int, now: datetime) -> datetime | None:
    if spent_micros <= 0 or left_micros * WINDOW_DAYS > spent_micros * _HORIZON_DAYS:
        return None
    seconds = left_micros * WINDOW_DAYS * 86_400 // spent_micros
    return now + timedelta(seconds=seconds)
