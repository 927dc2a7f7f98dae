"""Credits over HTTP: balance, settings and transactions."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from rota.accounts import service as accounts
from rota.credits import ledger
from rota.platform import clock, ids
from tests.credits.world import CENT, Shop, end_run, spend, start_run
from tests.service import Person
from tests.tasks.world import newcomer, newcomers


async def company_of(shop: Shop, role: Any) -> tuple[Person, dict[str, str], UUID]:
    """A person with this role in a company, and the header that selects the company."""
    owner, person = await newcomer(shop.service), await newcomer(shop.service)
    company = await accounts.create_company(shop.db, "Company", owner.user_id, tier="corporate")
    await accounts.put_member(shop.db, company, person.user_id, role)
    async with shop.service.owner() as connection:
        # A key belongs to one account, so it has to move to the company.
        for table in ("api_keys", "api_key_hashes"):
            await connection.execute(
                f"UPDATE {table} SET account_id = $2 WHERE user_id = $1", person.user_id, company
            )
    return person, {"X-Service-Account": ids.to_wire("acct", company)}, company


async def test_the_first_balance_includes_the_plans_allowance(shop: Shop) -> None:
    person = await newcomer(shop.service, tier="standard")
    before = clock.now()
    shown = await shop.balance(person)
    bar = shown["usageBar"]
    assert (bar["total"], bar["used"], bar["remaining"], bar["percent"]) == (1500, 0, 1500, 0)
    resets = datetime.fromisoformat(bar["resetsAt"])
    assert timedelta(28) <= resets - before <= timedelta(32)
    assert shown["hasAllowance"] is True
    assert shown["totalAvailable"] == 1500
    assert shown["topUpCents"] == 0
    assert shown["balance"]["availableUsd"] == "15.00"
    assert "owedCents" not in shown
    assert shown == await shop.balance(person)


async def test_a_balance_follows_the_tier_and_the_month(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await newcomer(shop.service, tier="standard")
    async with shop.db.write(person.user_id) as tx:
        run = await start_run(tx, 300 * CENT)
        await spend(tx, run, 1, 200 * CENT + 1)
    await accounts.set_tier(shop.db, person.user_id, "advanced")
    shown = await shop.balance(person)
    # No day of the first month has passed, so everything used counts in the new month. What is
    # held is held of the new month.
    assert (shown["usageBar"]["total"], shown["usageBar"]["used"]) == (5000, 201)
    assert shown["totalAvailable"] == 4700
    assert shown["balance"]["reservedCents"] == 100
    # Responses have times in whole milliseconds.
    later = datetime.fromisoformat(shown["usageBar"]["resetsAt"]) + timedelta(milliseconds=1)
    with monkeypatch.context() as turned:
        turned.setattr(clock, "now", lambda: later)
        shown = await shop.balance(person)
    assert (shown["usageBar"]["used"], shown["totalAvailable"]) == (0, 5000)
    assert shown["totalSpentCents"] == 201
    assert shown["balance"]["reservedCents"] == 100
    # The run releases money of a past month, which expires.
    async with shop.db.write(person.user_id) as tx:
        await end_run(tx, run)
    shown = await shop.balance(person)
    assert (shown["totalAvailable"], shown["balance"]["reservedCents"]) == (5000, 0)


async def test_overflow_can_be_turned_off_and_on(shop: Shop) -> None:
    person = await newcomer(shop.service, tier="standard")
    assert (await shop.balance(person))["allowOverflow"] is True
    for wanted in (False, True):
        response = await person.request(
            "PATCH", "/api/credits/settings", json={"allowOverflow": wanted}
        )
        assert response.status_code == 200
        assert response.json() == {"settings": {"allowOverflow": wanted, "alertBelowCents": None}}
        assert (await person.get("/api/credits/settings")).json() == response.json()
        assert (await shop.balance(person))["allowOverflow"] is wanted


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"allowOverflow": "true"},
        {"allowOverflow": 1},
        {"alertBelowCents": -1},
        {"alertBelowCents": 10_000_001},
        {"alertBelowCents": "5"},
        {"alertBelowCents": 5.0},
        None,
    ],
)
async def test_invalid_settings_are_refused(shop: Shop, body: Any) -> None:
    person = await newcomer(shop.service)
    response = await person.request("PATCH", "/api/credits/settings", json=body)
    assert response.status_code == 400


@pytest.mark.parametrize(("role", "status"), [("admin", 200), ("member", 403)])
async def test_members_of_a_company_cannot_change_its_billing(
    shop: Shop, role: str, status: int
) -> None:
    person, headers, _ = await company_of(shop, role)
    response = await person.request(
        "PATCH", "/api/credits/settings", json={"allowOverflow": False}, headers=headers
    )
    assert response.status_code == status
    response = await person.post("/api/credits/topup", {"amountCents": 500}, headers=headers)
    assert response.status_code == status
    assert (await shop.balance(person, **headers))["allowOverflow"] is (role == "member")


async def test_a_key_needs_the_billing_scopes(shop: Shop) -> None:
    (reader,) = await newcomers(shop.service, scopes=("billing:read",))
    (worker,) = await newcomers(shop.service, scopes=("tasks:write",))
    body = {"allowOverflow": True}
    assert (await reader.get("/api/credits/balance")).status_code == 200
    response = await reader.request("PATCH", "/api/credits/settings", json=body)
    assert response.status_code == 403
    assert (await reader.post("/api/credits/topup", {"amountCents": 500})).status_code == 403
    assert (await reader.get("/api/credits/settings")).status_code == 200
    for path in (
        "/api/credits/balance",
        "/api/credits/settings",
        "/api/credits/transactions",
        "/api/credits/forecast",
        "/api/credits/holds",
        "/api/usage",
    ):
        assert (await worker.get(path)).status_code == 403


async def test_transactions_are_listed_newest_first(shop: Shop) -> None:
    person = await newcomer(shop.service, tier="basic")
    account_id = person.user_id
    async with shop.db.write(account_id) as tx:
        await ledger.top_up(tx, 500 * CENT, "pi_7")
        run = await start_run(tx, 30 * CENT)
        await spend(tx, run, 1, 12_345)
        await spend(tx, run, 2, 400_000)
        await end_run(tx, run)
        await ledger.set_returned(tx, "refund", 100 * CENT, "pi_7")
    response = await person.get("/api/credits/transactions")
    assert response.status_code == 200
    page = response.json()
    assert page["total"] == 5
    shown = [
        (each["kind"], each["amountMicros"], each["amountCents"]) for each in page["transactions"]
    ]
    # The second call used up the hold, so there was nothing to release.
    assert shown == [
        ("refund", -1_000_000, -100),
        ("charge", -287_655, -29),
        ("charge", -12_345, -2),
        ("hold", -300_000, -30),
        ("top_up", 5_000_000, 500),
    ]
    refund, bounded, call, hold, paid = page["transactions"]
    assert call["id"].startswith("txn_")
    assert call["taskId"] == hold["taskId"] == ids.to_wire("task", run.task_id)
    assert (call["run"], call["step"], call["model"]) == (1, 1, "small-model")
    assert call["priceVersion"] == "test"
    assert call["changes"] == {
        "allowance": 0,
        "topUp": 0,
        "held": -12_345,
        "spent": 12_345,
        "owed": 0,
    }
    assert "up to the amount on hold" in bounded["description"]
    assert paid["reference"] == refund["reference"] == "pi_7"
    assert paid["taskId"] is None
    after = [
        (each["availableAfterMicros"], each["availableAfterCents"]) for each in page["transactions"]
    ]
    assert after == [
        (3_700_000, 370),
        (4_700_000, 470),
        (4_700_000, 470),
        (4_700_000, 470),
        (5_000_000, 500),
    ]
    assert (call["taskName"], call["agent"]) == ("Compare three suppliers", None)
    assert (paid["taskName"], paid["agent"]) == (None, None)


async def test_pages_of_transactions_have_no_gaps_or_overlaps(shop: Shop) -> None:
    person = await newcomer(shop.service, tier="basic")
    async with shop.db.write(person.user_id) as tx:
        for number in range(23):
            await ledger.top_up(tx, CENT, f"pi_{number}")
    seen = []
    for offset in range(0, 28, 4):
        response = await person.get(f"/api/credits/transactions?limit=4&offset={offset}")
        assert response.json()["total"] == 23
        seen += [each["reference"] for each in response.json()["transactions"]]
    assert seen == [f"pi_{number}" for number in reversed(range(23))]


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "offset=-1", "limit=5.0"])
async def test_an_invalid_limit_or_offset_is_refused(shop: Shop, query: str) -> None:
    person = await newcomer(shop.service)
    assert (await person.get(f"/api/credits/transactions?{query}")).status_code == 400


async def test_transactions_can_be_filtered(shop: Shop) -> None:
    person = await newcomer(shop.service, tier="basic")
    account_id = person.user_id
    async with shop.db.write(account_id) as tx:
        await ledger.top_up(tx, 500 * CENT, "pi_1")
        runs = [await start_run(tx, 10 * CENT) for _ in range(2)]
        for run in runs:
            await spend(tx, run, 1, CENT)
            await end_run(tx, run)
        await ledger.set_returned(tx, "dispute", 100 * CENT, "pi_1")
        await ledger.set_returned(tx, "dispute", 0, "pi_1")
    async with shop.service.owner() as connection:
        # The first payment becomes one of an earlier day.
        day = datetime(2026, 5, 3, 23, 59, 59, 999_999, tzinfo=UTC)
        await connection.execute(
            "UPDATE entries SET at = $2, id = $3 WHERE account_id = $1 AND kind = 'top_up'",
            account_id,
            day,
            ids.first_from(day),
        )
    task = ids.to_wire("task", runs[0].task_id)
    today = clock.now().date()
    whole = ["dispute_reversal", "dispute"] + 2 * ["release", "charge"] + 2 * ["hold"] + ["top_up"]
    for query, kinds in (
        ("", whole),
        ("kind=top_up", ["top_up"]),
        ("kind=charge", ["charge", "charge"]),
        ("kind=dispute", ["dispute"]),
        ("kind=refund", []),
        ("kind=dispute,top_up", ["dispute", "top_up"]),
        ("kind=hold,dispute", ["dispute", "hold", "hold"]),
        ("kind=hold&kind=top_up", ["hold", "hold", "top_up"]),
        (f"taskId={task}", ["release", "charge", "hold"]),
        (f"taskId={task}&kind=hold", ["hold"]),
        (f"taskId={ids.to_wire('task', ids.new_uuid())}", []),
        ("taskId=task_unknown", []),
        ("from=2026-05-03&to=2026-05-03", ["top_up"]),
        ("to=2026-05-02", []),
        ("from=2026-05-04", whole[:-1]),
        (f"from={today}&kind=dispute", ["dispute"]),
        (f"from={date.min}&to={date.max}", whole),
        (f"to={date.min}", []),
        (f"from={date.max}", []),
    ):
        response = await person.get(f"/api/credits/transactions?{query}")
        assert response.status_code == 200, query
        page = response.json()
        assert [each["kind"] for each in page["transactions"]] == kinds, query
        assert page["total"] == len(kinds), query
    page = (await person.get("/api/credits/transactions?kind=charge&limit=1&offset=1")).json()
    assert (page["transactions"][0]["taskId"], page["total"]) == (task, 2)


@pytest.mark.parametrize(
    "query",
    ["kind=gift", "kind=hold,gift", "kind=", "from=2026-5-1", "from=2026-05-02&to=2026-05-01"],
)
async def test_invalid_filters_are_refused(shop: Shop, query: str) -> None:
    person = await newcomer(shop.service)
    assert (await person.get(f"/api/credits/transactions?{query}")).status_code == 400
