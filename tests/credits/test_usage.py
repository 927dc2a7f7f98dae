"""Usage over HTTP: by day, by agent or model, and for stacked charts."""

from datetime import UTC, date, datetime, timedelta

import pytest

from rota.credits import ledger
from rota.platform import clock
from tests.credits.world import CENT, Shop, spend, start_run
from tests.service import Person
from tests.tasks.world import newcomer


async def person_with_usage(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Person:
    """A person whose agents used two models on two days of May 2026."""
    person = await newcomer(shop.service, tier="basic")
    account_id = person.user_id
    async with shop.db.write(account_id) as tx:
        await ledger.top_up(tx, 500 * CENT, "pi_1")
        run = await start_run(tx, 100 * CENT)
        with monkeypatch.context() as turned:
            calls = [
                (3, "scribe", "small", 100),
                (3, "scribe", "large", 2_000_000),
                (5, "triager", "small", 300),
                (5, "scribe", "small", 0),
            ]
            for step, (day, agent, model, cost) in enumerate(calls):
                at = datetime(2026, 5, day, 23, 59, tzinfo=UTC)
                turned.setattr(clock, "now", lambda at=at: at)
                await spend(tx, run, step, cost, agent=agent, model=model)
    return person


async def test_usage_by_day_includes_days_without_usage(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await person_with_usage(shop, monkeypatch)
    shown = (await person.get("/api/usage?from=2026-05-02&to=2026-05-05")).json()
    assert (shown["from"], shown["to"], shown["groupBy"]) == ("2026-05-02", "2026-05-05", "day")
    rows = [(each["key"], each["calls"], each["costUsd"]) for each in shown["usage"]]
    # The expensive call was charged up to the hold.
    assert rows == [
        ("2026-05-02", 0, "0.000000"),
        ("2026-05-03", 2, "1.000000"),
        ("2026-05-04", 0, "0.000000"),
        ("2026-05-05", 2, "0.000000"),
    ]
    assert shown["totals"] == {
        "calls": 4,
        "inputTokens": 400,
        "outputTokens": 80,
        "costUsd": "1.000000",
    }


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("agent", [("scribe", 3, "1.000000"), ("triager", 1, "0.000000")]),
        ("model", [("large", 1, "0.999900"), ("small", 3, "0.000100")]),
    ],
)
async def test_usage_by_agent_or_model_starts_with_the_most_expensive(
    shop: Shop,
    monkeypatch: pytest.MonkeyPatch,
    group: str,
    expected: list[tuple[str, int, str]],
) -> None:
    person = await person_with_usage(shop, monkeypatch)
    shown = (await person.get(f"/api/usage?from=2026-05-01&to=2026-05-31&groupBy={group}")).json()
    assert [(each["key"], each["calls"], each["costUsd"]) for each in shown["usage"]] == expected


async def test_usage_by_day_and_agent_or_model_is_for_stacked_charts(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await person_with_usage(shop, monkeypatch)
    span = "from=2026-05-01&to=2026-05-31"
    shown = (await person.get(f"/api/usage?{span}&groupBy=day,agent")).json()
    assert shown["groupBy"] == "day,agent"
    rows = [(each["key"], each["group"], each["calls"]) for each in shown["usage"]]
    assert rows == [
        ("2026-05-03", "scribe", 2),
        ("2026-05-05", "scribe", 1),
        ("2026-05-05", "triager", 1),
    ]
    shown = (await person.get(f"/api/usage?{span}&groupBy=day,model")).json()
    rows = [(each["key"], each["group"], each["costUsd"]) for each in shown["usage"]]
    assert rows == [
        ("2026-05-03", "large", "0.999900"),
        ("2026-05-03", "small", "0.000100"),
        ("2026-05-05", "small", "0.000000"),
    ]
    assert shown["totals"]["calls"] == 4
    shown = (await person.get(f"/api/usage?{span}&groupBy=agent")).json()
    assert {each["group"] for each in shown["usage"]} == {None}


async def test_a_chart_has_the_ten_most_expensive_agents_and_the_sum_of_the_others(
    shop: Shop,
) -> None:
    person = await newcomer(shop.service, tier="basic")
    async with shop.db.write(person.user_id) as tx:
        await ledger.top_up(tx, 500 * CENT, "pi_1")
        run = await start_run(tx, 100 * CENT)
        for number in range(13):
            await spend(tx, run, number, 1_000 + number, agent=f"agent-{number:02}")
    shown = (await person.get("/api/usage?groupBy=day,agent")).json()
    groups = [(each["group"], each["costUsd"]) for each in shown["usage"]]
    expensive = [(f"agent-{number:02}", f"0.{1_000 + number:06}") for number in range(12, 2, -1)]
    # All others together cost the most on this day.
    assert groups == [(None, "0.003003"), *expensive]
    assert shown["totals"]["costUsd"] == "0.013078"


async def test_usage_covers_the_last_30_days_by_default(shop: Shop) -> None:
    person = await newcomer(shop.service)
    shown = (await person.get("/api/usage")).json()
    today = clock.now().date()
    assert (shown["from"], shown["to"]) == (str(today - timedelta(29)), str(today))
    assert len(shown["usage"]) == 30
    shown = (await person.get("/api/usage?to=2026-03-30")).json()
    assert (shown["from"], shown["to"]) == ("2026-03-01", "2026-03-30")
    shown = (await person.get("/api/usage?from=2027-01-01&to=2028-01-01")).json()
    assert len(shown["usage"]) == 366
    shown = (await person.get(f"/api/usage?to={date.min}")).json()
    assert shown["from"] == str(date.min)


@pytest.mark.parametrize(
    "query",
    [
        "from=2026-05-02&to=2026-05-01",
        "from=2027-01-01&to=2028-01-02",
        "from=2026-5-1",
        "from=20260501",
        "from=2026-02-30",
        "to=1777593600",
        "groupBy=week",
        "groupBy=agent,day",
        "groupBy=day,day",
    ],
)
async def test_invalid_days_are_refused(shop: Shop, query: str) -> None:
    person = await newcomer(shop.service)
    assert (await person.get(f"/api/usage?{query}")).status_code == 400
