"""Months with a plan change, an outstanding payment or a trial."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from rota.accounts import service as accounts
from rota.credits import holds, queries
from rota.credits.allowance import bring_up_to_date
from rota.credits.model import RunId
from rota.plans.allowance import plan_allowance
from rota.platform import clock, ids
from rota.platform.db import Database
from rota.variants import VARIANTS
from tests.credits.world import (
    ALLOWANCE_OF,
    CENT,
    Shop,
    end_run,
    new_account,
    spend,
    start_run,
)
from tests.service import Person
from tests.tasks.world import newcomer


async def set_subscription(shop: Shop, person: Person, **fields: Any) -> None:
    """Stores a subscription as a sync with the processor would."""
    values = {
        "processor_id": "sub_1",
        "tier": "standard",
        "seats": 1,
        "period_start": clock.now(),
        "period_end": clock.now() + timedelta(days=30),
        "unpaid_since": None,
        "cancel_at_period_end": False,
        **fields,
    }
    names = ", ".join(values)
    marks = ", ".join(f"${number}" for number in range(2, len(values) + 2))
    async with shop.service.owner() as connection:
        await connection.execute("DELETE FROM subscriptions WHERE account_id = $1", person.user_id)
        await connection.execute(
            f"INSERT INTO subscriptions (account_id, product, entitled, updated_at, {names}) "
            f"VALUES ($1, 'plan', true, now(), {marks})",
            person.user_id,
            *values.values(),
        )


async def spend_cents(shop: Shop, person: Person, cents: int) -> None:
    async with shop.db.write(person.user_id) as tx:
        run = await start_run(tx, cents * CENT)
        await spend(tx, run, 1, cents * CENT)
        await end_run(tx, run)


def days_later(days: int) -> datetime:
    return clock.now() + timedelta(days=days)


async def usage_bar_at(
    shop: Shop, person: Person, monkeypatch: pytest.MonkeyPatch, **later: int
) -> Any:
    """The usage bar at a later time."""
    moment = clock.now() + timedelta(**later)
    with monkeypatch.context() as turned:
        turned.setattr(clock, "now", lambda: moment)
        return (await shop.balance(person))["usageBar"]


async def test_an_upgrade_near_the_end_of_a_month_does_not_give_two_allowances(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await newcomer(shop.service, tier="standard")
    await spend_cents(shop, person, 1_500)
    await accounts.set_tier(shop.db, person.user_id, "advanced")
    changed = await usage_bar_at(shop, person, monkeypatch, days=27)
    # Usage beyond the share of the days that passed counts in the new month.
    assert changed["total"] == 5_000
    assert 0 < changed["used"] < 200
    # The end of the old month has no effect.
    assert (await usage_bar_at(shop, person, monkeypatch, days=33))["used"] == changed["used"]
    assert (await usage_bar_at(shop, person, monkeypatch, days=60))["used"] == 0


async def test_what_tasks_hold_when_the_plan_changes_is_not_lost(shop: Shop) -> None:
    person = await newcomer(shop.service, tier="standard")
    async with shop.db.write(person.user_id) as tx:
        runs = [await start_run(tx, 500 * CENT) for _ in range(3)]
    await accounts.set_tier(shop.db, person.user_id, "advanced")
    changed = await shop.balance(person)
    assert (changed["totalAvailable"], changed["usageBar"]["used"]) == (3_500, 0)
    # A second change, as when a company adds seats one by one.
    await accounts.set_tier(shop.db, person.user_id, "standard")
    await accounts.set_tier(shop.db, person.user_id, "advanced")
    assert (await shop.balance(person))["totalAvailable"] == 3_500
    async with shop.db.write(person.user_id) as tx:
        await spend(tx, runs[0], 1, 100 * CENT)
        for run in runs:
            await end_run(tx, run)
    ended = await shop.balance(person)
    assert (ended["totalAvailable"], ended["usageBar"]["used"]) == (4_900, 100)


async def test_tasks_that_hold_more_than_a_smaller_allowance_keep_their_month(shop: Shop) -> None:
    person = await newcomer(shop.service, tier="advanced")
    async with shop.db.write(person.user_id) as tx:
        run = await start_run(tx, 2_000 * CENT)
    await accounts.set_tier(shop.db, person.user_id, "standard")
    assert (await shop.balance(person))["totalAvailable"] == 0
    async with shop.db.write(person.user_id) as tx:
        await end_run(tx, run)
    assert (await shop.balance(person))["totalAvailable"] == 0


async def test_an_allowance_that_the_operator_sets_reaches_accounts_without_one(
    books: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = VARIANTS["a"].tier_allowance({"basic": 500})
    set_later = plan_allowance(settings, "basic", timedelta(days=7))
    account_id, earlier_id = [await new_account(books) for _ in range(2)]
    for each in (account_id, earlier_id):
        await bring_up_to_date(books, each, ALLOWANCE_OF)
    async with books.write(earlier_id) as tx:
        # An earlier version stored no end.
        await tx.execute(
            "UPDATE balances SET period_ends_at = NULL WHERE account_id = $1", earlier_id
        )

    async def allowance(account_id: UUID) -> int:
        await bring_up_to_date(books, account_id, set_later)
        async with books.read(account_id) as tx:
            return (await queries.balance(tx)).allowance

    assert await allowance(earlier_id) == 500 * CENT
    assert await allowance(account_id) == 0
    later = days_later(32)
    monkeypatch.setattr(clock, "now", lambda: later)
    async with books.write(account_id) as tx:
        # A run that starts then needs no look at the balance first.
        assert await holds.hold(tx, RunId(ids.new_uuid(), 1), 100 * CENT, set_later)
    assert await allowance(account_id) == 400 * CENT


async def test_an_unpaid_month_starts_when_it_is_paid(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await newcomer(shop.service, tier="standard")
    await spend_cents(shop, person, 500)
    await set_subscription(shop, person, status="PAST_DUE", unpaid_since=clock.now())
    assert (await usage_bar_at(shop, person, monkeypatch, days=32))["used"] == 500
    # The processor has not reported the next period yet.
    await set_subscription(shop, person, status="ACTIVE")
    assert (await usage_bar_at(shop, person, monkeypatch, days=32, hours=1))["used"] == 500
    await set_subscription(shop, person, status="ACTIVE", period_end=days_later(60))
    month = await usage_bar_at(shop, person, monkeypatch, days=32, hours=2)
    assert month["used"] == 0
    # It ends with the period that was paid, although it began late.
    assert datetime.fromisoformat(month["resetsAt"]) - clock.now() < timedelta(days=63)


async def test_another_plan_that_is_not_paid_gives_no_allowance(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await newcomer(shop.service, tier="advanced")
    await spend_cents(shop, person, 5_000)
    await accounts.set_tier(shop.db, person.user_id, "standard")
    unpaid = {"status": "PAST_DUE", "unpaid_since": clock.now()}
    await set_subscription(shop, person, **unpaid)
    assert (await usage_bar_at(shop, person, monkeypatch, days=32))["remaining"] == 0
    await set_subscription(shop, person, status="ACTIVE", period_end=days_later(60))
    paid = await usage_bar_at(shop, person, monkeypatch, days=32, hours=1)
    assert (paid["total"], paid["used"]) == (1_500, 0)


async def test_usage_of_a_month_whose_renewal_is_unpaid_does_not_count_in_a_higher_plan(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await newcomer(shop.service, tier="standard")
    await spend_cents(shop, person, 1_500)
    await set_subscription(shop, person, status="PAST_DUE", unpaid_since=clock.now())
    # Somebody looks at the balance, and buys the higher plan a moment later.
    assert (await usage_bar_at(shop, person, monkeypatch, days=32))["used"] == 1_500
    await accounts.set_tier(shop.db, person.user_id, "advanced")
    paid = {"tier": "advanced", "status": "ACTIVE", "period_end": days_later(60)}
    await set_subscription(shop, person, **paid)
    month = await usage_bar_at(shop, person, monkeypatch, days=32, minutes=1)
    assert (month["total"], month["used"]) == (5_000, 0)


async def test_a_plan_that_has_ended_gives_no_month_before_the_account_loses_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await newcomer(shop.service, tier="standard")
    await spend_cents(shop, person, 1_500)
    await set_subscription(shop, person, status="ACTIVE", cancel_at_period_end=True)
    assert (await usage_bar_at(shop, person, monkeypatch, days=32))["remaining"] == 0


async def test_a_trial_has_no_allowance_until_the_first_payment(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await newcomer(shop.service, tier="standard")
    await set_subscription(
        shop, person, status="TRIALING", period_end=clock.now() + timedelta(days=14)
    )
    shown = await shop.balance(person)
    assert (shown["hasAllowance"], shown["totalAvailable"]) == (False, 0)
    assert shown["usageBar"]["resetsAt"] is None
    await set_subscription(shop, person, status="ACTIVE")
    assert (await usage_bar_at(shop, person, monkeypatch, days=15))["remaining"] == 1_500
