"""What a screen about money needs: balances after movements, alerts, forecasts and holds."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.credits import holds, ledger
from rota.credits.model import RunId
from rota.credits.verify import problems
from rota.dev.stack import Stack
from rota.platform import clock, ids
from rota.platform.db import Database
from tests.credits.world import ALLOWANCE_OF, CENT, Shop, end_run, payment, spend, start_run
from tests.service import Person, Service
from tests.tasks.world import create, newcomer, newcomers, patch

AGENT = "bug-triager"
MIGRATION = next((Path(__file__).parents[2] / "migrations").rglob("*_dashboard_data.sql"))


@pytest.fixture(scope="module", params=["a", "b"])
async def bank(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    """A service of each variant with agents, and without allowances."""
    name = f"money_{request.param}"
    async with Service.start(stack, variant=request.param, name=name, allowances={}) as started:
        await sync(started.database_url, catalog_folder())
        yield started


@pytest.fixture(scope="module")
async def db(bank: Service) -> AsyncIterator[Database]:
    opened = Database(bank.database_url, pool_size=16)
    await opened.open()
    yield opened
    await opened.close()


async def customer(bank: Service, db: Database, cents: int, *scopes: str) -> Person:
    """A person of the lowest tier, which has no allowance, with this top-up."""
    (person,) = await newcomers(bank, tier="basic", scopes=scopes)
    async with db.write(person.user_id) as tx:
        await ledger.top_up(tx, cents * CENT, "pi_first")
    return person


async def got(person: Person, path: str) -> dict[str, Any]:
    response = await person.get(path)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def alert_below(person: Person, cents: int | None) -> dict[str, Any]:
    response = await person.request(
        "PATCH", "/api/credits/settings", json={"alertBelowCents": cents}
    )
    assert response.status_code == 200, response.text
    settings: dict[str, Any] = response.json()["settings"]
    return settings


async def events_of(service: Service, account_id: UUID, kind: str) -> list[dict[str, Any]]:
    async with service.owner() as connection:
        rows = await connection.fetch(
            "SELECT data FROM events WHERE account_id = $1 AND type = $2 ORDER BY sequence",
            account_id,
            kind,
        )
    return [orjson.loads(row["data"]) for row in rows]


async def test_every_kind_of_movement_shows_the_balance_after_it(shop: Shop) -> None:
    person = await newcomer(shop.service, tier="standard")
    async with shop.db.write(person.user_id) as tx:
        await ledger.top_up(tx, 100 * CENT, "pi_1")
        run = await start_run(tx, 1_550 * CENT)
        await spend(tx, run, 1, 70 * CENT)
        parent = await start_run(tx, 10 * CENT)
        child = RunId(ids.new_uuid(), 1)
        assert await holds.hold_under(tx, child, parent, 20 * CENT)
        assert await holds.detach(tx, child, 15 * CENT, ALLOWANCE_OF)
        await holds.release(tx, child)
        await end_run(tx, parent)
        await end_run(tx, run)
        await spend(tx, run, 2, 5 * CENT)
        await ledger.set_returned(tx, "refund", 40 * CENT, "pi_1")
    found = (await got(person, "/api/credits/transactions"))["transactions"]
    shown = [(each["kind"], each["availableAfterCents"]) for each in reversed(found)]
    assert shown == [
        ("top_up", 100),
        ("allowance", 1_600),
        ("hold", 50),
        ("charge", 50),
        ("hold", 40),
        ("hold", 20),
        ("release", 40),
        ("release", 50),
        ("release", 1_530),
        ("charge", 1_525),
        ("refund", 1_485),
    ]
    assert (await shop.balance(person))["totalAvailable"] == 1_485


async def test_balances_after_concurrent_movements_follow_from_each_other(
    bank: Service, db: Database
) -> None:
    person = await customer(bank, db, 1_000)

    async def client(number: int) -> None:
        for _ in range(4):
            async with db.write(person.user_id) as tx:
                run = await start_run(tx, number * CENT)
            async with db.write(person.user_id) as tx:
                await spend(tx, run, 1, number * 1_000)
            async with db.write(person.user_id) as tx:
                await end_run(tx, run)

    await asyncio.gather(*[client(number) for number in range(1, 9)])
    async with db.snapshot(person.user_id) as tx:
        assert await problems(tx) == []
    newest = (await got(person, "/api/credits/transactions?limit=1"))["transactions"][0]
    available = (await got(person, "/api/credits/balance"))["totalAvailable"]
    assert newest["availableAfterCents"] == available


async def test_entries_of_an_older_version_show_the_balance_too(
    bank: Service, db: Database
) -> None:
    person = await customer(bank, db, 10)
    async with db.write(person.user_id) as tx:
        for number in range(8):
            await ledger.top_up(tx, CENT, f"pi_{number}")
    before = (await got(person, "/api/credits/transactions"))["transactions"]
    async with bank.owner() as connection:
        rows = await connection.fetch(
            "SELECT id FROM entries WHERE account_id = $1 ORDER BY id", person.user_id
        )
        # Some in the middle, and the newest two.
        await connection.execute(
            "UPDATE entries SET available_after = NULL WHERE account_id = $1 AND id = ANY ($2)",
            person.user_id,
            [rows[n]["id"] for n in (2, 3, 5, 7, 8)],
        )
    assert (await got(person, "/api/credits/transactions"))["transactions"] == before
    filtered = await got(person, "/api/credits/transactions?kind=top_up")
    assert filtered["transactions"] == before


async def test_the_migration_writes_the_balance_after_every_entry(
    bank: Service, db: Database
) -> None:
    people = [await customer(bank, db, cents) for cents in (10, 20)]
    for person in people:
        async with db.write(person.user_id) as tx:
            await end_run(tx, await start_run(tx, 3 * CENT))
    before = [await got(person, "/api/credits/transactions") for person in people]
    block = re.search(r"DO \$\$.*?\$\$;", MIGRATION.read_text(), re.DOTALL)
    assert block is not None
    async with bank.owner() as connection:
        await connection.execute("UPDATE entries SET available_after = NULL")
        await connection.execute(block[0])
        assert not await connection.fetchval(
            "SELECT count(*) FROM entries WHERE available_after IS NULL"
        )
    assert [await got(person, "/api/credits/transactions") for person in people] == before


async def test_a_key_without_the_scope_for_tasks_sees_no_names_of_tasks(
    bank: Service, db: Database
) -> None:
    person = await customer(bank, db, 500, "billing:read", "tasks:write")
    task = await create(person, agent=AGENT)
    [hold, _] = (await got(person, "/api/credits/transactions"))["transactions"]
    assert (hold["taskId"], hold["taskName"], hold["agent"]) == (task["id"], None, None)
    assert (await person.get("/api/credits/holds")).status_code == 403


async def test_transactions_name_the_task_and_its_agent(bank: Service, db: Database) -> None:
    person = await customer(bank, db, 500)
    task = await create(person, agent=AGENT, name="Look at the crash")
    found = await got(person, f"/api/credits/transactions?taskId={task['id']}")
    [hold] = found["transactions"]
    assert (hold["taskName"], hold["agent"]) == ("Look at the crash", AGENT)


async def test_a_low_balance_is_reported_once_and_again_after_it_rose(
    bank: Service, db: Database
) -> None:
    person = await customer(bank, db, 500)
    assert (await got(person, "/api/credits/settings"))["settings"]["alertBelowCents"] is None
    assert await alert_below(person, 480) == {"allowOverflow": True, "alertBelowCents": 480}
    assert (await got(person, "/api/credits/settings"))["settings"]["alertBelowCents"] == 480

    async def reported() -> list[dict[str, Any]]:
        return await events_of(bank, person.user_id, "credits.low")

    assert await reported() == []
    tasks = [await create(person, agent=AGENT)]
    available = (await got(person, "/api/credits/balance"))["totalAvailable"]
    assert 0 < available < 480
    # The event and the hold are in one transaction, and a second hold reports nothing.
    low = {"availableCents": available, "alertBelowCents": 480}
    assert await reported() == [low]
    tasks += [await create(person, agent=AGENT)]
    assert await reported() == [low]
    for task in tasks:
        await patch(person, task["id"], status="CANCELLED")
    assert await reported() == [low]
    # All money is back, so the next fall is reported again.
    await create(person, agent=AGENT)
    assert await reported() == [low, low]
    await alert_below(person, None)
    await create(person, agent=AGENT)
    assert await reported() == [low, low]


async def test_an_amount_above_the_balance_is_reported_only_after_the_balance_rose(
    shop: Shop,
) -> None:
    person = await newcomer(shop.service, tier="basic")
    await shop.credits.take_payment(payment(person.user_id, "pi_a1", 500))
    await alert_below(person, 600)
    paid = payment(person.user_id, "pi_a2", 500)
    await shop.credits.take_payment(paid)
    assert await events_of(shop.service, person.user_id, "credits.low") == []
    await shop.report(paid, refunded_cents=450)
    low = {"availableCents": 550, "alertBelowCents": 600}
    assert await events_of(shop.service, person.user_id, "credits.low") == [low]
    assert person.user_id in shop.announced
    # Exactly the amount is not below it.
    await shop.report(paid, refunded_cents=400)
    assert await events_of(shop.service, person.user_id, "credits.low") == [low]


async def test_a_late_call_and_the_end_of_a_month_are_reported(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await newcomer(shop.service, tier="standard")
    resets = datetime.fromisoformat((await shop.balance(person))["usageBar"]["resetsAt"])
    await alert_below(person, 1_480)
    async with shop.db.write(person.user_id) as tx:
        run = await start_run(tx, 15 * CENT)
        await end_run(tx, run)
        late = await start_run(tx, 20 * CENT)
        await end_run(tx, late)
        await spend(tx, late, 1, 20 * CENT)
        await spend(tx, run, 1, CENT)
    low = {"availableCents": 1_479, "alertBelowCents": 1_480}
    assert await events_of(shop.service, person.user_id, "credits.low") == [low]
    # The new month expires the rest of the old one, but it is not low in between.
    monkeypatch.setattr(clock, "now", lambda: resets + timedelta(milliseconds=1))
    assert (await shop.balance(person))["totalAvailable"] == 1_500
    assert await events_of(shop.service, person.user_id, "credits.low") == [low]
    async with shop.db.write(person.user_id) as tx:
        await start_run(tx, 30 * CENT)
    low_again = {"availableCents": 1_470, "alertBelowCents": 1_480}
    assert await events_of(shop.service, person.user_id, "credits.low") == [low, low_again]


async def test_a_detached_subtask_can_make_the_balance_low(bank: Service, db: Database) -> None:
    person = await customer(bank, db, 100)
    await alert_below(person, 80)
    async with db.write(person.user_id) as tx:
        parent = await start_run(tx, 10 * CENT)
        child = RunId(ids.new_uuid(), 1)
        assert await holds.hold_under(tx, child, parent, 30 * CENT)
        assert await holds.detach(tx, child, 20 * CENT, ALLOWANCE_OF)
    low = {"availableCents": 60, "alertBelowCents": 80}
    assert await events_of(bank, person.user_id, "credits.low") == [low]


async def test_a_forecast_without_spending_has_no_end(bank: Service, db: Database) -> None:
    person = await customer(bank, db, 700)
    assert await got(person, "/api/credits/forecast") == {
        "forecast": {
            "windowDays": 7,
            "spentUsd": "0.000000",
            "perDayUsd": "0.000000",
            "allowanceLastsUntil": None,
            "balanceLastsUntil": None,
        }
    }


async def test_a_forecast_says_when_the_money_ends(bank: Service, db: Database) -> None:
    person = await customer(bank, db, 700)
    async with db.write(person.user_id) as tx:
        run = await start_run(tx, 300 * CENT)
        await spend(tx, run, 1, 140 * CENT)
    before = clock.now()
    shown = (await got(person, "/api/credits/forecast"))["forecast"]
    assert (shown["spentUsd"], shown["perDayUsd"]) == ("1.400000", "0.200000")
    assert shown["allowanceLastsUntil"] is None
    # $5.60 are left, including what the run holds, at $0.20 a day.
    left = datetime.fromisoformat(shown["balanceLastsUntil"]) - before
    assert timedelta(28) - timedelta(seconds=1) < left < timedelta(28, 60)


async def test_a_forecast_looks_back_seven_days_and_forward_ten_years(
    bank: Service, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await customer(bank, db, 100_000)
    now = clock.now()
    async with db.write(person.user_id) as tx:
        run = await start_run(tx, 1_000 * CENT)
        for step, (days, micros) in enumerate(((7, 500 * CENT), (6, 7), (0, 0))):
            with monkeypatch.context() as turned:
                turned.setattr(clock, "now", lambda days=days: now - timedelta(days))
                await spend(tx, run, step, micros)
    shown = (await got(person, "/api/credits/forecast"))["forecast"]
    assert (shown["spentUsd"], shown["balanceLastsUntil"]) == ("0.000007", None)


async def test_a_forecast_of_the_allowance_ends_before_the_next_one(shop: Shop) -> None:
    person = await newcomer(shop.service, tier="standard")
    resets = datetime.fromisoformat((await shop.balance(person))["usageBar"]["resetsAt"])
    async with shop.db.write(person.user_id) as tx:
        await ledger.top_up(tx, 500 * CENT, "pi_1")
        run = await start_run(tx, 1_000 * CENT)
        await spend(tx, run, 1, 70 * CENT)
    shown = (await got(person, "/api/credits/forecast"))["forecast"]
    # $14.30 at $0.10 a day last longer than the month.
    assert shown["allowanceLastsUntil"] is None
    assert datetime.fromisoformat(shown["balanceLastsUntil"]) > resets
    async with shop.db.write(person.user_id) as tx:
        await spend(tx, run, 2, 700 * CENT)
    shown = (await got(person, "/api/credits/forecast"))["forecast"]
    ends = datetime.fromisoformat(shown["allowanceLastsUntil"])
    assert ends < datetime.fromisoformat(shown["balanceLastsUntil"])
    assert ends < resets
    # Without overflow, runs cannot use the top-up.
    await person.request("PATCH", "/api/credits/settings", json={"allowOverflow": False})
    shown = (await got(person, "/api/credits/forecast"))["forecast"]
    difference = ends - datetime.fromisoformat(shown["balanceLastsUntil"])
    assert abs(difference) < timedelta(minutes=1)


async def test_holds_are_listed_with_their_tasks_the_largest_first(
    bank: Service, db: Database
) -> None:
    person = await customer(bank, db, 1_000)
    assert await got(person, "/api/credits/holds") == {
        "holds": [],
        "total": 0,
        "heldUsd": "0.000000",
    }
    task = await create(person, agent=AGENT, name="Look at the crash")
    ended = await create(person, agent=AGENT)
    await patch(person, ended["id"], status="CANCELLED")
    async with db.write(person.user_id) as tx:
        large = await start_run(tx, 300 * CENT)
        await spend(tx, large, 1, 12_345)
    shown = await got(person, "/api/credits/holds")
    first, second = shown["holds"]
    assert first.pop("createdAt") > second.pop("createdAt")
    assert first == {
        "taskId": ids.to_wire("task", large.task_id),
        "taskName": "Compare three suppliers",
        "agent": None,
        "status": "PENDING",
        "heldUsd": "2.987655",
        "usedUsd": "0.012345",
    }
    assert (second["taskId"], second["taskName"]) == (task["id"], "Look at the crash")
    assert (second["agent"], second["usedUsd"]) == (AGENT, "0.000000")
    assert shown["total"] == 2
    held = round(1_000_000 * float(shown["heldUsd"]))
    assert held == round(1_000_000 * (float(first["heldUsd"]) + float(second["heldUsd"])))
    page = await got(person, "/api/credits/holds?limit=1&offset=1")
    assert [each["taskId"] for each in page["holds"]] == [task["id"]]
    assert (page["total"], page["heldUsd"]) == (2, shown["heldUsd"])
    past = await got(person, "/api/credits/holds?offset=2")
    assert (past["holds"], past["total"], past["heldUsd"]) == ([], 2, shown["heldUsd"])
    stranger = await customer(bank, db, 10)
    assert (await got(stranger, "/api/credits/holds"))["total"] == 0
