"""The ledger's rules in plain Python, to compare the real ledger with."""

from calendar import monthrange
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from math import floor

CENT = 10_000
ALLOWANCES = {"basic": 0, "standard": 70_000, "advanced": 200_000, "corporate": 35_000}


def first_after(now: datetime, anchor: datetime) -> datetime:
    """The first monthly recurrence of the anchor after `now`."""
    year, month = anchor.year, anchor.month
    while True:
        month += 1
        if month == 13:
            year, month = year + 1, 1
        end = anchor.replace(
            year=year, month=month, day=min(anchor.day, monthrange(year, month)[1])
        )
        if end > now:
            return end


def last_until(now: datetime, anchor: datetime) -> datetime:
    """The last monthly recurrence of the anchor that is not after `now`."""
    last = anchor
    while (following := first_after(last, anchor)) <= now:
        last = following
    return last


@dataclass(eq=False)
class Hold:
    budget: int
    period: int
    parent: "Hold | None" = None
    allowance: int = 0
    topup: int = 0
    drawn: int = 0
    charged: int = 0
    open: bool = True
    # Whether the allowance part expired when it was released.
    expired: bool = False
    children: "list[Hold]" = field(default_factory=list)

    def take(self, amount: int) -> tuple[int, int]:
        allowance = min(self.allowance, amount)
        topup = min(self.topup, amount - allowance)
        self.allowance -= allowance
        self.topup -= topup
        return allowance, topup


@dataclass
class Books:
    """All amounts are in micro-dollars."""

    allowance: int = 0
    topup: int = 0
    held_allowance: int = 0
    held_topup: int = 0
    spent: int = 0
    owed: int = 0
    granted: int = 0
    outside: int = 0
    entries: int = 0
    allowance_total: int = 0
    allowance_used: int = 0
    period: int = 0
    period_ends_at: datetime | None = None
    allow_overflow: bool = True
    told_depleted: bool = False

    anchor: datetime | None = None
    allowance_plan: tuple[str, int | None] | None = None
    plan: tuple[str, int | None] = ("basic", None)
    now: datetime = datetime.min
    depleted_events: int = 0
    holds: list[Hold] = field(default_factory=list)
    payments: dict[str, int] = field(default_factory=dict)
    allowances: dict[str, int] = field(default_factory=lambda: dict(ALLOWANCES))
    # What refunds and disputes took from each payment.
    returned: dict[tuple[str, str], int] = field(default_factory=dict)

    def allowance_of(self, tier: str, seats: int | None) -> int:
        return self.allowances[tier] * (seats or 1 if tier == "corporate" else 1)

    def move(self, **changes: int) -> None:
        """Adds one entry. Its amounts sum to zero."""
        assert sum(changes.values()) == 0
        for book, change in changes.items():
            setattr(self, book, getattr(self, book) + change)
        self.entries += 1

    def rearm_depleted_event(self) -> None:
        if self.allowance + self.topup >= CENT:
            self.told_depleted = False

    def report_depleted(self) -> None:
        rest = self.allowance + self.topup + self.held_allowance + self.held_topup
        if rest < CENT and not self.told_depleted:
            self.told_depleted = True
            self.depleted_events += 1

    def refresh(self) -> bool:
        over = self.period_ends_at is None or self.period_ends_at <= self.now
        if self.allowance_plan == self.plan and not over:
            return False
        total = self.allowance_of(*self.plan)
        used = held = 0
        if not over and self.anchor is not None:
            # The plan changed within the month.
            assert self.period_ends_at is not None
            start = last_until(self.now, self.anchor)
            unit = timedelta(microseconds=1)
            share = Fraction((self.now - start) // unit, (self.period_ends_at - start) // unit)
            passed = floor(self.allowance_total * share)
            of_month = [hold for hold in self.holds if hold.open and hold.period == self.period]
            held = sum(hold.allowance for hold in of_month)
            used = max(0, self.allowance_used - passed)
            if used + held <= total:
                for hold in of_month:
                    hold.period += 1
            else:
                used, held = min(total, max(0, self.allowance_used + held - passed)), 0
        if self.allowance:
            self.move(allowance=-self.allowance, granted=self.allowance)
            self.rearm_depleted_event()
        self.period += 1
        self.allowance_used = used
        if not over or self.anchor is None:
            self.anchor = self.now
        self.allowance_plan, self.allowance_total = self.plan, total
        self.period_ends_at = first_after(self.now, self.anchor)
        if not total:
            self.anchor = None
        if due := total - used - held:
            paid = min(-self.owed, due)
            self.move(allowance=due - paid, owed=paid, granted=-due)
            self.allowance_used += paid
            self.rearm_depleted_event()
        return True

    @property
    def usable_topup(self) -> int:
        return self.topup if self.allow_overflow or not self.allowance_total else 0

    def hold(self, amount: int) -> Hold | None:
        self.refresh()
        if self.allowance + self.usable_topup < amount:
            return None
        allowance = min(self.allowance, amount)
        topup = amount - allowance
        self.move(allowance=-allowance, topup=-topup, held_allowance=allowance, held_topup=topup)
        hold = Hold(amount, self.period, allowance=allowance, topup=topup)
        self.holds.append(hold)
        return hold

    def hold_under(self, parent: Hold, budget: int) -> Hold | None:
        if not parent.open:
            return None
        hold = Hold(budget, parent.period, parent)
        parent.children.append(hold)
        self.holds.append(hold)
        return hold

    def draw(self, hold: Hold, amount: int) -> None:
        parent, due = hold.parent, min(amount, hold.budget - hold.drawn)
        if not hold.open or parent is None or due <= 0:
            return
        if not parent.open:
            self.detach(hold, 0)
            return
        rest = parent.allowance + parent.topup
        if rest < due:
            self.draw(parent, due - rest)
        allowance, topup = parent.take(due)
        hold.allowance += allowance
        hold.topup += topup
        hold.drawn += allowance + topup

    def detach(self, hold: Hold, needed: int) -> bool:
        self.refresh()
        if not hold.open or hold.parent is None:
            return False
        tree = [hold, *_open_below(hold)]
        # A hold and those below it contain the allowance of one month only.
        fits = hold.period == self.period or not any(each.allowance for each in tree)
        usable = self.allowance if fits else 0
        due = hold.budget - hold.drawn
        if usable + self.usable_topup < min(needed, due):
            return False
        allowance = min(usable, due)
        topup = min(self.usable_topup, due - allowance)
        if allowance:
            for each in tree:
                each.period = self.period
        if allowance + topup:
            self.move(
                allowance=-allowance, topup=-topup, held_allowance=allowance, held_topup=topup
            )
        hold.allowance += allowance
        hold.topup += topup
        hold.drawn += allowance + topup
        hold.parent.children.remove(hold)
        hold.parent = None
        return True

    def charge(self, hold: Hold, cost: int) -> None:
        if cost == 0:
            return
        allowance, topup = hold.take(cost)
        spent = allowance + topup
        hold.charged += spent
        if hold.open:
            self.move(held_allowance=-allowance, held_topup=-topup, spent=spent)
            if hold.period == self.period:
                self.allowance_used += allowance
            return
        # A late call is paid from the released money, also if that expired. The part that is spent
        # is owed.
        expired = allowance if hold.expired else 0
        allowance = min(self.allowance, spent - expired)
        topup = min(self.usable_topup, spent - expired - allowance)
        self.move(
            granted=-expired,
            allowance=-allowance,
            topup=-topup,
            owed=-(spent - expired - allowance - topup),
            spent=spent,
        )
        self.allowance_used += allowance
        self.rearm_depleted_event()
        self.report_depleted()

    def release(self, hold: Hold) -> None:
        if not hold.open:
            return
        hold.open = False
        if hold.parent is not None and hold.parent.open:
            hold.parent.allowance += hold.allowance
            hold.parent.topup += hold.topup
            for child in hold.children:
                if child.open:
                    child.parent = hold.parent
                    hold.parent.children.append(child)
            return
        hold.expired = hold.period != self.period
        back = 0 if hold.expired else hold.allowance
        from_allowance = min(-self.owed, back)
        from_topup = min(-self.owed - from_allowance, hold.topup)
        if hold.allowance + hold.topup:
            self.move(
                held_allowance=-hold.allowance,
                held_topup=-hold.topup,
                allowance=back - from_allowance,
                topup=hold.topup - from_topup,
                granted=hold.allowance - back,
                owed=from_allowance + from_topup,
            )
            self.allowance_used += from_allowance
        self.report_depleted()

    def top_up(self, reference: str, amount: int) -> bool:
        if reference in self.payments:
            return False
        self.payments[reference] = amount
        paid = min(-self.owed, amount)
        self.move(topup=amount - paid, owed=paid, outside=-amount)
        self.rearm_depleted_event()
        return True

    def set_returned(self, kind: str, reference: str, total: int) -> int:
        """`total` is what all refunds or all disputes take from the payment at this time."""
        due = total - self.returned.get((kind, reference), 0)
        self.returned[kind, reference] = total
        if due > 0:
            from_topup = min(self.topup, due)
            self.move(topup=-from_topup, owed=-(due - from_topup), outside=due)
            self.rearm_depleted_event()
        elif due < 0:
            paid = min(-self.owed, -due)
            self.move(topup=-due - paid, owed=paid, outside=due)
            self.rearm_depleted_event()
        return due

    def cancel(self, hold: Hold) -> list[Hold]:
        """Ends a run and every open run below it. Returns them in that order."""
        cancelled = [hold, *_open_below(hold)]
        for each in cancelled:
            self.release(each)
        return cancelled


def _open_below(hold: Hold) -> list[Hold]:
    found: list[Hold] = []
    for child in hold.children:
        # A child whose parent ended first belongs to another parent now.
        if child.parent is hold:
            found += [child] * child.open + _open_below(child)
    return found
