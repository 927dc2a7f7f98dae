"""The ledger against a model in plain Python, whatever happens in whatever order.

Hypothesis makes up stories of one account each: runs that hold, draw, spend and
end, payments and refunds, months that pass and plans that change. After every
step each book is the model's and the sum of its entries.
`ROTA_TEST_LEDGER_EXAMPLES` and `ROTA_TEST_LEDGER_STEPS` make it longer.
"""

import asyncio
import os
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, TypeVar

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
from rota.credits.allowance import refresh
from rota.credits.ledger import Charge, RunId
from rota.credits.verify import BOOKS, problems
from rota.platform import clock, ids
from rota.platform.db import APPLICATION_ROLE, NO_USER, AccountTransaction
from tests.credits.model import Books, Hold, allowance_of

EXAMPLES = int(os.environ.get("ROTA_TEST_LEDGER_EXAMPLES", "100"))
STEPS = int(os.environ.get("ROTA_TEST_LEDGER_STEPS", "30"))

number = st.integers(0, 10_000)
micros = st.integers(0, 90_000) | st.sampled_from([0, 1, 9_999, 10_000, 35_000, 70_000])
plans = st.sampled_from(
    [("basic", None), ("standard", None), ("advanced", None), ("corporate", 1), ("corporate", 3)]
)
# The first days are those on which months differ in length.
starts = st.sampled_from(
    [
        datetime(2027, 1, 31, 12, tzinfo=UTC),
        datetime(2028, 1, 30, 23, 59, 59, tzinfo=UTC),
        datetime(2028, 2, 29, tzinfo=UTC),
        datetime(2026, 11, 15, 6, tzinfo=UTC),
    ]
)
_SHOWN = (
    *(*BOOKS, "entries", "allowance_total", "allowance_used", "period", "period_ends_at"),
    *("allow_overflow", "told_depleted"),
)
_SUMS = ", ".join(f"coalesce(sum({book}), 0)" for book in BOOKS)
_STATE = f"""
    SELECT {", ".join(f"b.{name}" for name in _SHOWN)},
        (SELECT ARRAY[{_SUMS}, count(*)]::bigint[] FROM entries WHERE account_id = $1) AS summed,
        (SELECT count(*) FROM entries
         WHERE account_id = $1 AND {" + ".join(BOOKS)} <> 0) AS crooked,
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
        self.turn_clock(now)
        # A whole story is one transaction, which is undone at its end.
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

    def turn_clock(self, now: datetime) -> None:
        self.books.now = now
        clock.now = lambda: now

    def pick(self, at: int) -> tuple[RunId, Hold]:
        return self.holds[at % len(self.holds)]

    @rule(micros=micros)
    def hold(self, micros: int) -> None:
        owner = RunId(ids.new_uuid(), 1)
        expected = self.books.hold(micros)
        done = self.do(holds.hold(self.tx, owner, micros, allowance_of))
        assert done == (expected is not None)
        if expected is not None:
            self.holds.append((owner, expected))

    @precondition(lambda self: self.holds)
    @rule(at=st.integers(-3, -1) | number, budget=micros)
    def hold_under(self, at: int, budget: int) -> None:
        parent, above = self.pick(at)
        owner = RunId(ids.new_uuid(), 1)
        done = self.do(holds.hold_under(self.tx, owner, parent, budget))
        assert done == above.open
        if above.open:
            self.holds.append((owner, above.under(budget)))

    @precondition(lambda self: any(hold.parent for _, hold in self.holds))
    @rule(at=st.integers(-3, -1) | number, micros=micros)
    def draw(self, at: int, micros: int) -> None:
        below = [pair for pair in self.holds if pair[1].parent]
        owner, hold = below[at % len(below)]
        self.books.draw(hold, micros)
        self.do(holds.draw(self.tx, owner, micros))

    def pay(self, owner: RunId, hold: Hold, cost: int) -> None:
        self.steps += 1
        self.books.charge(hold, cost)
        call = Charge(owner, self.steps, "agent", "model", "2026-11", cost, 10, 5)
        self.do(charges.charge(self.tx, call))

    @precondition(lambda self: self.holds)
    @rule(at=number, cost=micros)
    def charge(self, at: int, cost: int) -> None:
        self.pay(*self.pick(at), cost)

    @precondition(lambda self: any(not hold.open for _, hold in self.holds))
    @rule(at=number, cost=micros)
    def charge_late(self, at: int, cost: int) -> None:
        ended = [pair for pair in self.holds if not pair[1].open]
        self.pay(*ended[at % len(ended)], cost)

    @precondition(lambda self: self.holds)
    @rule(at=number)
    def release(self, at: int) -> None:
        owner, hold = self.pick(at)
        self.books.release(hold)
        self.do(holds.release(self.tx, owner))

    @rule(micros=micros.filter(bool))
    def top_up(self, micros: int) -> None:
        reference = f"pi_{len(self.references)}"
        self.references.append(reference)
        self.books.top_up(reference, micros)
        assert self.do(ledger.top_up(self.tx, micros, reference))

    @precondition(lambda self: self.references)
    @rule(at=number, micros=micros)
    def top_up_again(self, at: int, micros: int) -> None:
        reference = self.references[at % len(self.references)]
        assert not self.books.top_up(reference, micros)
        assert not self.do(ledger.top_up(self.tx, micros, reference))

    @precondition(lambda self: self.references)
    @rule(at=number, micros=micros)
    def refund(self, at: int, micros: int) -> None:
        reference = self.references[at % len(self.references)]
        expected = self.books.refund(reference, micros)
        assert expected == self.do(ledger.refund(self.tx, micros, reference))

    @rule()
    def refresh(self) -> None:
        stale = self.do(queries.is_stale(self.tx, self.books.now))
        assert stale == self.books.refresh()
        self.do(refresh(self.tx, allowance_of, self.books.now))

    @rule(plan=plans)
    def change_plan(self, plan: tuple[str, int | None]) -> None:
        self.books.plan = plan
        self.do(
            self.connection.execute(
                "UPDATE accounts SET tier = $2, seats = $3 WHERE id = $1", self.account_id, *plan
            )
        )

    @rule(days=st.integers(0, 40) | st.integers(40, 400), seconds=st.integers(0, 86_400))
    def pass_time(self, days: int, seconds: int) -> None:
        self.turn_clock(self.books.now + timedelta(days=days, seconds=seconds))

    @rule(allowed=st.booleans())
    def set_overflow(self, allowed: bool) -> None:
        self.books.allow_overflow = allowed
        self.do(queries.set_overflow(self.tx, allowed))

    @invariant()
    def every_book_is_the_models(self) -> None:
        row = self.do(self.connection.fetchrow(_STATE, self.account_id))
        assert {name: row[name] for name in _SHOWN} == {
            name: getattr(self.books, name) for name in _SHOWN
        }
        assert row["summed"] == [row[name] for name in (*BOOKS, "entries")]
        assert sum(row["summed"][:-1]) == row["crooked"] == 0
        assert row["allowance"] >= 0 <= row["topup"]
        assert row["held"] == [row["held_allowance"], row["held_topup"]]
        assert row["events"] == self.books.times_told
        rows = self.do(self.connection.fetch(_HOLDS, self.account_id))
        assert {tuple(each) for each in rows} == {
            (o.task_id, h.open, h.allowance, h.topup, h.charged, h.drawn, h.period)
            for o, h in self.holds
        }

    def teardown(self) -> None:
        try:
            found = self.do(problems(self.tx))
            # The runs of these stories have no tasks and no steps.
            known = ("a hold is open although", "a model call is not charged")
            assert [each for each in found if not each.what.startswith(known)] == []
        finally:
            self.do(self.connection.execute("ROLLBACK"))


async def test_every_book_is_what_a_plain_model_says_whatever_happens(
    books_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize=EXAMPLES <= 100,
        suppress_health_check=list(HealthCheck),
    )
    # Put back when the test is over.
    monkeypatch.setattr(clock, "now", clock.now)

    def play() -> None:
        with asyncio.Runner() as runner:
            Ledger.loop = runner.get_loop()
            Ledger.connection = runner.run(
                asyncpg.connect(books_url, server_settings={"role": APPLICATION_ROLE})
            )
            try:
                run_state_machine_as_test(Ledger, settings=profile)
            finally:
                runner.run(Ledger.connection.close())

    await asyncio.to_thread(play)
