"""What becomes of a subscription, as pure functions of what was known, what is seen and the time.

A message of the processor's says only that something changed; then the processor is asked
what the subscription is like now. So the order in which messages come does not matter,
and neither does how often they come.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from rota.payments.port import Subscription

Status = Literal["ACTIVE", "CANCELLED", "PAST_DUE", "TRIALING"]

# How soon news that should have come is asked for, and how often while nothing is paid.
ASK_AGAIN = timedelta(minutes=10)
ASK_UNPAID = timedelta(days=1)

_STATUSES: dict[str, Status] = {
    "trialing": "TRIALING",
    "active": "ACTIVE",
    "past_due": "PAST_DUE",
    "ended": "CANCELLED",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """A tier, or the add-on, and for how many seats."""

    name: str
    seats: int


# From the lowest plan to the highest.
Rank = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class State:
    processor_id: str
    status: Status
    plan: Plan
    period_start: datetime
    period_end: datetime
    cancel_at_period_end: bool = False
    # The lower plan that follows when the period is over.
    next_plan: Plan | None = None
    # The start of the first period that was not paid.
    unpaid_since: datetime | None = None
    trial_end: datetime | None = None
    # Subscriptions that it has taken the place of.
    replaced: tuple[str, ...] = ()
    # Whether it gives what it is for.
    entitled: bool = True

    @property
    def live(self) -> bool:
        return self.status != "CANCELLED"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state from now on, None while there is none, and what the processor has to end."""

    state: State | None
    end: tuple[str, ...] = ()


def order(plan: Plan, rank: Rank) -> tuple[int, int]:
    """Plans compare by their tier, then by their seats."""
    return rank(plan.name), plan.seats


def next_state(
    current: State | None,
    seen: Subscription | None,
    now: datetime,
    grace: timedelta,
    rank: Rank,
) -> Outcome:
    """What follows from what the processor says; from the time alone where it says nothing."""
    if seen is None:
        return Outcome(at(current, now, grace) if current else None)
    if current is not None and seen.id != current.processor_id:
        return _beside(current, seen, now, grace, rank)
    if seen.status == "incomplete":
        # A first payment that is under way, or never comes.
        return Outcome(current)
    state = at(_as_seen(current, seen, rank), now, grace)
    if current is None:
        return Outcome(state, state.replaced)
    if seen.status == "past_due" and _never_paid(state):
        # Whoever does not stay after the trial pays nothing later, either.
        return Outcome(_ended(state), (seen.id,) if current.live else ())
    return Outcome(state)


def _as_seen(current: State | None, seen: Subscription, rank: Rank) -> State:
    """The same subscription, as the processor has it now."""
    plan, next_plan = Plan(seen.product, seen.seats), None
    same_period = current is not None and seen.period_start <= current.period_start
    if current and same_period and order(plan, rank) < order(current.plan, rank):
        # At the processor it has changed already; what was paid for lasts to the period's end.
        plan, next_plan = current.plan, plan
    status = _STATUSES[seen.status]
    unpaid_since = None
    if status == "PAST_DUE":
        unpaid_since = seen.period_start
        if current and current.unpaid_since:
            unpaid_since = min(unpaid_since, current.unpaid_since)
    trial_end = current.trial_end if current else None
    replaced: tuple[str, ...] = current.replaced if current else ()
    if current is None and seen.replaces and status != "CANCELLED":
        replaced = (seen.replaces,)
    return State(
        processor_id=seen.id,
        status=status,
        plan=plan,
        period_start=seen.period_start,
        period_end=seen.period_end,
        cancel_at_period_end=seen.cancel_at_period_end,
        next_plan=next_plan,
        unpaid_since=unpaid_since,
        trial_end=seen.period_end if status == "TRIALING" else trial_end,
        replaced=replaced,
    )


def _never_paid(state: State) -> bool:
    """Whether what was not paid is the very first period after the trial."""
    return state.trial_end is not None and state.period_start <= state.trial_end


def at(state: State, now: datetime, grace: timedelta) -> State:
    """The same at this moment: what ends by the clock has ended, whoever has told it."""
    if state.status == "CANCELLED" or (state.cancel_at_period_end and state.period_end <= now):
        return _ended(state)
    return replace(state, entitled=_is_paid(state, now, grace))


def _is_paid(state: State, now: datetime, grace: timedelta) -> bool:
    return state.unpaid_since is None or now < state.unpaid_since + grace


def _ended(state: State) -> State:
    return replace(
        state,
        status="CANCELLED",
        cancel_at_period_end=False,
        next_plan=None,
        unpaid_since=None,
        entitled=False,
    )


def _beside(
    current: State, seen: Subscription, now: datetime, grace: timedelta, rank: Rank
) -> Outcome:
    """Another subscription for the same thing: one of the two stays, and the other is ended."""
    new = next_state(None, seen, now, grace, rank).state
    if seen.id in current.replaced or new is None or not new.live:
        return Outcome(current)
    takes_over = (
        not current.live or seen.replaces == current.processor_id or _better(new, current, rank)
    )
    kept, other = (new, current) if takes_over else (current, new)
    replaced = {*kept.replaced, *other.replaced, other.processor_id}
    ended = set(current.replaced) if current.live else {*current.replaced, current.processor_id}
    return Outcome(replace(kept, replaced=tuple(sorted(replaced))), tuple(sorted(replaced - ended)))


def _better(one: State, other: State, rank: Rank) -> bool:
    """Somebody who paid twice keeps the higher plan, whichever is told of first."""

    def worth(state: State) -> tuple[bool, tuple[int, int], datetime, str]:
        paid = state.unpaid_since is None
        return paid, order(state.plan, rank), state.period_start, state.processor_id

    return worth(one) > worth(other)


def due_at(state: State, now: datetime, grace: timedelta) -> datetime | None:
    """When to look again although nobody has told anything; None when nothing can come."""
    if not state.live:
        return None
    if state.unpaid_since is None:
        return state.period_end if state.period_end > now else now + ASK_AGAIN
    moments = (state.unpaid_since + grace, state.period_end, now + ASK_UNPAID)
    return min(moment for moment in moments if moment > now)
