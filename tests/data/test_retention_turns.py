"""Which account retention looks at, when, and what the operator allows."""

import asyncio
from typing import Any

import pytest

from rota.data import queries, retention
from rota.platform import clock
from tests.data.test_retention import dispute, ended, ids_of, later, set_days
from tests.data.world import DAYS, World


async def test_old_idempotency_keys_go_also_in_an_account_that_sends_no_more(
    world_a: World,
) -> None:
    person = await world_a.service.sign_in()
    for key in ("one", "two"):
        await person.post("/api/tasks", {"name": "x"}, headers={"Idempotency-Key": key})
    async with world_a.service.owner() as connection:
        await connection.execute(
            "UPDATE idempotency_keys SET created_at = now() - interval '2 days' "
            "WHERE account_id = $1 AND key LIKE '%one'",
            person.user_id,
        )
    deleted = await world_a.retention().apply(person.user_id)
    assert deleted == {"idempotency_keys": 1}
    assert await world_a.rows("idempotency_keys", person.user_id) == 1


async def test_a_sweep_gives_each_account_its_turn_and_one_worker_has_the_lease(
    world_a: World,
) -> None:
    person = await world_a.service.sign_in()
    await set_days(person, tasks=DAYS)
    await ended(person)
    now = later(clock.now())
    first, second = world_a.sweep(now), world_a.sweep(now)
    db = world_a.parts.db
    assert await queries.hold_lease(db, "retention", person.user_id, 60)
    assert await first.apply_retention() == {}
    await queries.give_back_lease(db, "retention", person.user_id)
    found = await asyncio.gather(first.apply_retention(), second.apply_retention())
    assert sum(each.get("tasks", 0) for each in found) >= 1
    assert await ids_of(person) == set()
    async with db.relay() as connection:
        assert await queries.due_accounts(connection, 100) == []


async def test_a_busy_account_gets_another_turn_soon(world_a: World) -> None:
    person = await world_a.service.sign_in()
    await set_days(person, tasks=DAYS)
    await ended(person)
    async with world_a.service.owner() as connection, connection.transaction():
        await connection.execute(
            "SELECT * FROM account_heads WHERE account_id = $1 FOR UPDATE", person.user_id
        )
        await world_a.sweep(later(clock.now())).apply_retention()
    assert len(await ids_of(person)) == 1
    async with world_a.service.owner() as connection:
        due = await connection.fetchval(
            "SELECT due_at - now() < interval '1 hour' FROM retention_turns WHERE account_id = $1",
            person.user_id,
        )
    assert due


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "TASKS", 1)
    monkeypatch.setattr(retention, "ROWS", 1)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("kind", ["tasks", "steps", "events", "audit"])
async def test_a_policy_that_keeps_more_applies_in_the_middle_of_a_turn(
    world_a: World, kind: str
) -> None:
    person = await world_a.service.sign_in()
    table = {"audit": "audit_entries"}.get(kind, kind)
    await set_days(person, **{kind: DAYS})
    for _ in range(3):
        await world_a.run_task(person, person.user_id)
    left = 0

    async def keep_all() -> bool:
        """After the first piece."""
        nonlocal left
        if not left:
            assert (await set_days(person, **{kind: None})).status_code == 200
            left = await world_a.rows(table, person.user_id)
        return True

    with pytest.raises(retention.Changed):
        await world_a.retention(later(clock.now())).apply(person.user_id, keep_all)
    assert await world_a.rows(table, person.user_id) >= left > 1


@pytest.mark.usefixtures("small_pieces")
async def test_a_dispute_in_the_middle_of_a_turn_ends_it(world_a: World) -> None:
    person = await world_a.service.sign_in()
    await set_days(person, tasks=DAYS)
    for _ in range(3):
        await ended(person)

    async def disputed() -> bool:
        await dispute(world_a, person)
        return True

    with pytest.raises(retention.Changed):
        await world_a.retention(later(clock.now())).apply(person.user_id, disputed)
    assert len(await ids_of(person)) == 2


@pytest.mark.usefixtures("small_pieces")
async def test_an_account_whose_policy_changes_has_its_turn_under_the_new_one(
    world_a: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await world_a.service.sign_in()
    await set_days(person, tasks=DAYS)
    for _ in range(3):
        await ended(person)
    sweep = world_a.sweep(later(clock.now()))
    hold = sweep._hold_lease

    async def renew() -> bool:
        if len(await ids_of(person)) == 2:
            await set_days(person, tasks=None, events=DAYS)
        return await hold()

    monkeypatch.setattr(sweep, "_hold_lease", renew)
    assert (await sweep.apply_retention())["events"] > 0
    assert len(await ids_of(person)) == 2
    async with world_a.parts.db.relay() as connection:
        assert await queries.due_accounts(connection, 100) == []


async def test_the_operators_limits_apply(stack: Any) -> None:
    changes = {
        "retention_days": {"tasks": 100, "steps": 50},
        "retention_min_days": {"audit": 30},
        "retention_max_days": {"tasks": 200, "events": 300},
    }
    async with World.start(stack, "a", "data_limits", **changes) as world:
        person = await world.service.sign_in()
        shown = (await person.get("/api/policies")).json()
        none = {"tasks": None, "steps": None, "events": None, "audit": None}
        assert shown["retention"] == none
        assert shown["retentionInEffect"] == none | {"tasks": 100, "steps": 50, "events": 300}
        refused = await set_days(person, tasks=201, audit=29)
        assert refused.status_code == 400
        assert [each["field"] for each in refused.json()["error"]["details"]] == [
            "retention.tasks",
            "retention.audit",
        ]
        saved = await set_days(person, tasks=200, audit=30)
        assert saved.status_code == 200
        assert saved.json()["retention"] == none | {"tasks": 200, "audit": 30}
        # Policies without retention leave it as it is.
        body = {"approvals": {"secondPerson": False, "approvers": "anyone"}}
        kept = await person.request("PUT", "/api/policies", json=body)
        assert kept.json()["retention"] == none | {"tasks": 200, "audit": 30}
