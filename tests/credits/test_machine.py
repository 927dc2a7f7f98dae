"""The ledger against a model in plain Python, for random sequences of operations.

Hypothesis generates sequences for one account: runs that hold, draw, spend, end and are cancelled,
payments, refunds that can fail, disputes that can be won, months that pass, and plans and
allowances that change. After every step, each book equals the model's and the sum of its entries.
"""

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, ClassVar, TypeVar, cast, get_args

import asyncpg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rota.credits import charges, holds, ledger, queries
from rota.credits.allowance import MonthlyAllowance, refresh
from rota.credits.model import Charge, Return, RunId
from rota.credits.verify import BOOKS, problems
from rota.platform import clock, ids
from rota.platform.db import NO_USER, AccountReader, AccountTransaction, use_json
from rota.platform.roles import APPLICATION_ROLE
from tests.credits.model import ALLOWANCES, Books, Hold
from tests.sizes import size

EXAMPLES = size(40, 2_000)
STEPS = size(30, 50)

number = st.integers(0, 10_000)
amounts = st.integers(0, 90_000) | st.sampled_from([0, 1, 9_999, 10_000, 35_000, 70_000])
plans = st.sampled_from(
    [("basic", None), ("standard", None), ("advanced", None), ("corporate", 1), ("corporate", 3)]
)
# Days from which months have different lengths.
starts = st.sampled_from(
    [
        datetime(2027, 1, 31, 12, tzinfo=UTC),
        datetime(2028, 1, 30, 23, 59, 59, tzinfo=UTC),
        datetime(2028, 2, 29, tzinfo=UTC),
        datetime(2026, 11, 15, 6, tzinfo=UTC),
    ]
)
_COMPARED = (
    *BOOKS,
    "entries",
    "allowance_total",
    "allowance_used",
    "period",
    "period_ends_at",
    "allow_overflow",
    "told_depleted",
)
_SUMS = ", ".join(f"coalesce(sum({book}), 0)" for book in BOOKS)
_STATE = f"""
    SELECT {", ".join(f"b.{name}" for name in _COMPARED)},
        (SELECT ARRAY[{_SUMS}, count(*)]::bigint[] FROM entries WHERE account_id = $1) AS summed,
        (SELECT count(*) FROM entries
         WHERE account_id = $1 AND {" + ".join(BOOKS)} <> 0) AS unbalanced,
        (SELECT ARRAY[coalesce(sum(allowance), 0), coalesce(sum(topup), 0)]::bigint[]
         FROM holds WHERE account_id = $1 AND open) AS held,
        (SELECT last_sequence FROM account_heads WHERE account_id = $1) AS events
    FROM balances b WHERE b.account_id = $1
"""
_HOLDS = """
    SELECT task_id, open, allowance, topup, charged, drawn, period FROM holds
    WHERE account_id = $1
"""

T = TypeVar("T")


class Ledger(RuleBasedStateMachine):
    connection: ClassVar[Any]
    loop: ClassVar[asyncio.AbstractEventLoop]

    def __init__(self) -> None:
        super().__init__()
        self.books = Books()
        self.holds: list[tuple[RunId, Hold]] = []
        self.references: list[str] = []
        self.steps = 0

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    @initialize(now=starts, plan=plans)
    def open_account(self, now: datetime, plan: tuple[str, int | None]) -> None:
        self.account_id = ids.new_uuid()
        self.books.plan = plan
        self.set_clock(now)
        # Each sequence is one transaction, which is rolled back at its end.
        self.do(self.connection.execute(f"BEGIN; SET LOCAL rota.account_id = '{self.account_id}'"))
        self.tx = AccountTransaction(self.connection, self.account_id, NO_USER)
        self.do(
            self.connection.execute(
                "INSERT INTO accounts (id, kind, name, tier, seats)"
                " VALUES ($1, 'company', 'Test', $2, $3)",
                self.account_id,
                *plan,
            )
        )

    async def monthly_allowance(
        self, tx: AccountReader, tier: str, seats: int | None
    ) -> MonthlyAllowance:
        return MonthlyAllowance(self.books.allowance_of(tier, seats))

    def set_clock(self, now: datetime) -> None:
        self.books.now = now
        clock.now = lambda: now

    def pick(self, at: int) -> tuple[RunId, Hold]:
        return self.holds[at % len(self.holds)]

    @rule(amount=amounts)
    def hold(self, amount: int) -> None:
        run_id = RunId(ids.new_uuid(), 1)
        expected = self.books.hold(amount)
        held = self.do(holds.hold(self.tx, run_id, amount, self.monthly_allowance))
        assert held == (expected is not None)
        if expected is not None:
            self.holds.append((run_id, expected))

    @precondition(lambda self: self.holds)
    @rule(at=st.integers(-3, -1) | number, budget=amounts)
    def hold_under(self, at: int, budget: int) -> None:
        parent_id, parent = self.pick(at)
        run_id = RunId(ids.new_uuid(), 1)
        expected = self.books.hold_under(parent, budget)
        opened = self.do(holds.hold_under(self.tx, run_id, parent_id, budget))
        assert opened == (expected is not None)
        if expected is not None:
            self.holds.append((run_id, expected))

    @precondition(lambda self: any(hold.parent for _, hold in self.holds))
    @rule(at=st.integers(-3, -1) | number, amount=amounts)
    def draw(self, at: int, amount: int) -> None:
        children = [pair for pair in self.holds if pair[1].parent]
        run_id, hold = children[at % len(children)]
        self.books.draw(hold, amount)
        self.do(holds.draw(self.tx, run_id, amount, self.monthly_allowance))

    @precondition(lambda self: self.holds)
    @rule(at=st.integers(-3, -1) | number, needed=amounts)
    def detach(self, at: int, needed: int) -> None:
        run_id, hold = self.pick(at)
        expected = self.books.detach(hold, needed)
        detached = self.do(holds.detach(self.tx, run_id, needed, self.monthly_allowance))
        assert detached == expected

    def pay(self, run_id: RunId, hold: Hold, cost: int) -> None:
        self.steps += 1
        self.books.charge(hold, cost)
        call = Charge(run_id, self.steps, "agent", "model", "2026-11", cost, 10, 5)
        self.do(charges.charge(self.tx, call))

    @precondition(lambda self: self.holds)
    @rule(at=number, cost=amounts)
    def charge(self, at: int, cost: int) -> None:
        self.pay(*self.pick(at), cost)

    @precondition(lambda self: any(not hold.open for _, hold in self.holds))
    @rule(at=number, cost=amounts)
    def charge_late(self, at: int, cost: int) -> None:
        ended = [pair for pair in self.holds if not pair[1].open]
        self.pay(*ended[at % len(ended)], cost)

    @precondition(lambda self: self.holds)
    @rule(at=number)
    def release(self, at: int) -> None:
        run_id, hold = self.pick(at)
        self.books.release(hold)
        self.do(holds.release(self.tx, run_id))

    @rule(amount=amounts.filter(bool))
    def top_up(self, amount: int) -> None:
        reference = f"pi_{len(self.references)}"
        self.references.append(reference)
        self.books.top_up(reference, amount)
        assert self.do(ledger.top_up(self.tx, amount, reference))

    @precondition(lambda self: self.references)
    @rule(at=number, amount=amounts)
    def top_up_again(self, at: int, amount: int) -> None:
        reference = self.references[at % len(self.references)]
        assert not self.books.top_up(reference, amount)
        assert not self.do(ledger.top_up(self.tx, amount, reference))

    def set_returned(self, kind: Return, reference: str, total: int) -> None:
        expected = self.books.set_returned(kind, reference, total)
        assert expected == self.do(ledger.set_returned(self.tx, kind, total, reference))

    @precondition(lambda self: self.references)
    @rule(at=number, kind=st.sampled_from(get_args(Return)), total=amounts)
    def refund_or_dispute(self, at: int, kind: Return, total: int) -> None:
        self.set_returned(kind, self.references[at % len(self.references)], total)

    @precondition(lambda self: self.books.returned)
    @rule(at=number, part=st.fractions(0, 1) | st.just(Fraction(0)))
    def fail_refund_or_win_dispute(self, at: int, part: Fraction) -> None:
        """All of the money comes back, or a part of it."""
        returned = list(self.books.returned.items())
        (kind, reference), total = returned[at % len(returned)]
        self.set_returned(cast(Return, kind), reference, int(total * part))

    @precondition(lambda self: self.holds)
    @rule(at=number, cost=amounts)
    def cancel(self, at: int, cost: int) -> None:
        """Cancels a task and its subtasks while the task's model answers."""
        run_id, hold = self.pick(at)
        names = {id(each): name for name, each in self.holds}
        for each in self.books.cancel(hold):
            self.do(holds.release(self.tx, names[id(each)]))
        self.pay(run_id, hold, cost)

    @rule()
    def refresh(self) -> None:
        stale = self.do(queries.is_stale(self.tx, self.books.now))
        assert stale == self.books.refresh()
        self.do(refresh(self.tx, self.monthly_allowance, self.books.now))

    @rule(plan=plans)
    def change_plan(self, plan: tuple[str, int | None]) -> None:
        self.books.plan = plan
        self.do(
            self.connection.execute(
                "UPDATE accounts SET tier = $2, seats = $3 WHERE id = $1", self.account_id, *plan
            )
        )

    @rule(tier=st.sampled_from(list(ALLOWANCES)), amount=amounts)
    def set_allowance(self, tier: str, amount: int) -> None:
        """The operator changes the setting. It applies from the next month."""
        self.books.allowances[tier] = amount

    @rule(days=st.integers(0, 40) | st.integers(40, 400), seconds=st.integers(0, 86_400))
    def pass_time(self, days: int, seconds: int) -> None:
        self.set_clock(self.books.now + timedelta(days=days, seconds=seconds))

    @rule(allowed=st.booleans())
    def set_overflow(self, allowed: bool) -> None:
        self.books.allow_overflow = allowed
        self.do(queries.set_overflow(self.tx, allowed))

    @invariant()
    def every_book_equals_the_model(self) -> None:
        row = self.do(self.connection.fetchrow(_STATE, self.account_id))
        assert {name: row[name] for name in _COMPARED} == {
            name: getattr(self.books, name) for name in _COMPARED
        }
        assert row["summed"] == [row[name] for name in (*BOOKS, "entries")]
        assert sum(row["summed"][:-1]) == row["unbalanced"] == 0
        assert row["allowance"] >= 0 <= row["topup"]
        assert row["held"] == [row["held_allowance"], row["held_topup"]]
        assert row["events"] == self.books.depleted_events
        rows = self.do(self.connection.fetch(_HOLDS, self.account_id))
        assert {row["task_id"]: dict(row) for row in rows} == {
            run_id.task_id: {
                "task_id": run_id.task_id,
                "open": hold.open,
                "allowance": hold.allowance,
                "topup": hold.topup,
                "charged": hold.charged,
                "drawn": hold.drawn,
                "period": hold.period,
            }
            for run_id, hold in self.holds
        }

    def teardown(self) -> None:
        try:
            found = self.do(problems(self.tx))
            # These runs have no tasks and no steps.
            expected = ("a hold is open although", "a model call is not charged")
            assert [each for each in found if not each.description.startswith(expected)] == []
        finally:
            self.do(self.connection.execute("ROLLBACK"))


async def test_every_book_equals_the_model_after_any_sequence_of_operations(
    books_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize=EXAMPLES <= 100,
        suppress_health_check=list(HealthCheck),
    )
    # Restored when the test ends.
    monkeypatch.setattr(clock, "now", clock.now)

    def play() -> None:
        with asyncio.Runner() as runner:
            Ledger.loop = runner.get_loop()
            Ledger.connection = runner.run(
                asyncpg.connect(books_url, server_settings={"role": APPLICATION_ROLE})
            )
            try:
                runner.run(use_json(Ledger.connection))
                run_state_machine_as_test(Ledger, settings=profile)
            finally:
                runner.run(Ledger.connection.close())

    await asyncio.to_thread(play)
