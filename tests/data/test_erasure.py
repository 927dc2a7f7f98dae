"""After an erasure nothing of the account is left but money records, which agree."""

import asyncio
import contextlib
from typing import Any

import pytest
from temporalio.service import RPCError, RPCStatusCode

from rota.accounts.service import Profile, sign_in
from rota.auth.queries import personal_access
from rota.data import queries
from rota.data.erasing import HISTORY_ATTEMPTS, Erasing
from rota.events.journal import AccountClosed, lock_open_account
from rota.payments.port import NoProcessor, PaymentFailed
from rota.platform import ids
from rota.runs import retention as runs
from rota.schedules import pausing
from rota.schedules import queries as schedules
from rota.tasks.bodies import CreateTask
from tests.data.filled import (
    MARKER,
    assert_erased,
    fill,
    in_temporal,
    own_name,
)
from tests.data.world import World
from tests.tasks.world import until_waiting_for_locks, uuid_of


@pytest.mark.parametrize("company", [False, True], ids=["personal", "company"])
async def test_nothing_is_left_but_money_records(
    world: World, company: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    filled = await fill(world, company)
    balance = await world.rows("entries", filled.account_id)
    assert await in_temporal(world, filled.tasks[2])
    assert "tasks" in await world.texts_with(MARKER)

    response = await filled.erase()

    assert response.status_code == 200, response.text
    assert response.json()["erasure"]["state"] == "running"
    # Everything has stopped already.
    key = {"Authorization": f"Bearer {filled.key}"}
    assert (await world.service.http.get("/api/tasks", headers=key)).status_code == 401
    me = await filled.person.get("/api/me")
    assert me.status_code == (200 if company else 401)
    if company:
        refused = await filled.person.get("/api/tasks", headers=filled.headers)
        assert refused.status_code == 403
        # The name of the person is not a text of the company.
        async with world.service.owner() as connection:
            await connection.execute("UPDATE users SET name = NULL, email = NULL")
    async with world.service.owner() as connection:
        open_tasks = await connection.fetchval(
            "SELECT count(*) FROM tasks WHERE account_id = $1 AND status IN "
            "('PENDING', 'RUNNING', 'WAITING_APPROVAL')",
            filled.account_id,
        )
        schedules = await connection.fetchval(
            "SELECT count(*) FROM schedules WHERE account_id = $1 AND NOT paused",
            filled.account_id,
        )
    assert (open_tasks, schedules) == (0, 0)
    for table in ("mcp_servers", "webhooks", "webhook_deliveries", "notification_settings"):
        assert await world.rows(table, filled.account_id) == 0
    # The hold of the open run is released by the sweep.
    assert await world.ledger_problems(filled.account_id) == []

    assert await world.sweep().erase() is None

    if company:
        # What the person has as a person stays.
        again = await filled.person.request(
            "DELETE", "/api/account", json={"name": (await own_name(filled.person))}
        )
        assert again.status_code == 200, again.text
        await world.sweep().erase()
    await assert_erased(world, filled)
    assert MARKER not in capfd.readouterr().out
    # The hold of the open run was released.
    assert await world.rows("entries", filled.account_id) == balance + 1
    if not company:
        fresh = await world.service.sign_in(filled.person.subject)
        assert fresh.user_id != filled.account_id
        assert (await fresh.get("/api/tasks")).json()["total"] == 0
        assert (await fresh.get("/api/credits/transactions")).json()["total"] <= 1
        async with world.service.owner() as connection:
            trial, made = await connection.fetchrow(
                "SELECT trial_ends_at, created_by FROM accounts WHERE id = $1", fresh.user_id
            )
        # Erasing an account and signing in again gives no second trial or free allowance.
        assert (trial, made) == (None, fresh.user_id)
        async with world.service.owner() as connection:
            await connection.execute(
                "UPDATE users SET name = NULL, email = NULL, verified_email = NULL"
            )
            await connection.execute("UPDATE sessions SET verified_email = NULL")
            await connection.execute("DELETE FROM identities")
            await connection.execute("UPDATE accounts SET name = 'x'")


class Killed(BaseException):
    """The process ends here."""


class DiesAt(Erasing):
    """A worker that is killed at a certain transaction."""

    left = 0

    async def run(self, erasure: queries.Erasure) -> None:
        real = self._db.removal

        def removal(*arguments: Any, **options: Any) -> Any:
            DiesAt.left -= 1
            if DiesAt.left < 0:
                raise Killed
            return real(*arguments, **options)

        self._db.removal = removal  # type: ignore[method-assign]
        try:
            await super().run(erasure)
        finally:
            self._db.removal = real  # type: ignore[method-assign]


async def test_an_erasure_that_is_killed_anywhere_continues(world_a: World) -> None:
    filled = await fill(world_a)
    assert (await filled.erase()).status_code == 200
    parts = world_a.parts
    stages = set()
    for attempt in range(200):
        # Each attempt gets a little further than the one before.
        DiesAt.left = attempt
        worker = DiesAt(
            parts.db,
            parts.temporal,
            parts.redis,
            parts.processor,
            leave_companies=parts.erasures.leave_companies,
            confirm_s=0,
        )
        with contextlib.suppress(Killed):
            if not await worker.step():
                break
        async with world_a.service.owner() as connection:
            stages.add(
                await connection.fetchval(
                    "UPDATE erasures SET due_at = now() WHERE account_id = $1 "
                    "AND finished_at IS NULL RETURNING stage",
                    filled.account_id,
                )
            )
            if None in stages:
                break
    assert stages >= {"tables", "audit"}
    # A worker that is not killed ends what is left.
    await world_a.sweep().erase()
    await assert_erased(world_a, filled)


class Down(NoProcessor):
    """A processor that fails a few times, then ends subscriptions."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.ended: list[str] = []

    async def end(self, subscription_id: str) -> None:
        if self.failures:
            self.failures -= 1
            raise PaymentFailed("The processor did not respond.")
        self.ended.append(subscription_id)


async def test_a_failing_processor_delays_only_the_end(world_a: World) -> None:
    filled = await fill(world_a)
    async with world_a.service.owner() as connection:
        await connection.execute(
            """
            INSERT INTO subscriptions (account_id, product, processor_id, status, tier, seats,
                entitled, period_start, period_end, cancel_at_period_end, updated_at)
            VALUES ($1, 'plan', 'sub_1', 'ACTIVE', 'standard', 1, true, now(),
                    now() + interval '30 days', false, now())
            """,
            filled.account_id,
        )
    assert (await filled.erase()).status_code == 200
    processor = Down(failures=2)
    worker = world_a.erasing(processor=processor)
    assert await worker.step()
    # The texts are gone although the plan has not ended.
    assert await world_a.texts_with(MARKER) == []
    async with world_a.parts.db.read(filled.account_id) as tx:
        erasure = await queries.find_erasure(tx)
    assert erasure is not None
    assert (erasure.stage, erasure.attempts, erasure.finished_at) == ("ending", 1, None)
    assert "did not respond" in str(erasure.error)
    async with world_a.service.owner() as connection:
        await connection.execute("UPDATE erasures SET due_at = now() WHERE due_at IS NOT NULL")
    assert await worker.step()
    assert processor.ended == ["sub_1"]
    await assert_erased(world_a, filled)


async def test_texts_are_erased_although_temporal_keeps_failing(
    world_a: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = await fill(world_a)
    assert (await filled.erase()).status_code == 200

    async def refuse(*arguments: Any) -> None:
        raise RPCError("no", RPCStatusCode.PERMISSION_DENIED, b"")

    real = runs.delete_history
    monkeypatch.setattr(runs, "delete_history", refuse)
    for attempt in range(HISTORY_ATTEMPTS + 1):
        assert ("tasks" in await world_a.texts_with(MARKER)) is True, attempt
        async with world_a.service.owner() as connection:
            await connection.execute("UPDATE erasures SET due_at = now() WHERE due_at IS NOT NULL")
        assert await world_a.erasing().step()
    assert await world_a.texts_with(MARKER) == []
    for task in filled.tasks[2:]:
        await real(world_a.parts.temporal, uuid_of(task), 1)
    await assert_erased(world_a, filled)


async def test_what_a_late_request_writes_is_erased_too(world_a: World) -> None:
    filled = await fill(world_a)
    await filled.erase()
    sweep = world_a.sweep(confirm_s=600)
    due_in_s = await sweep.erase()
    assert due_in_s is not None
    assert 500 < due_in_s <= 600
    assert await world_a.texts_with(MARKER) == []
    async with world_a.parts.db.write(filled.account_id) as tx:
        tx.record("task.created", {"name": MARKER})
    async with world_a.service.owner() as connection:
        await connection.execute(
            "INSERT INTO idempotency_keys VALUES ($1, $2, '', 200, '')",
            filled.account_id,
            MARKER,
        )
        await connection.execute(
            "UPDATE erasures SET due_at = now(), requested_at = now() - interval '1 hour' "
            "WHERE account_id = $1",
            filled.account_id,
        )
    await sweep.erase()
    await assert_erased(world_a, filled)


async def test_nothing_starts_after_the_erasure(world_a: World) -> None:
    """A request and a sign-in that began before it are refused."""
    person = await world_a.service.sign_in()
    caller = await world_a.parts.authenticator.authenticate(f"Bearer {person.token}", None)
    name = await own_name(person)
    db = world_a.parts.db
    async with db.directory() as signing_in:
        profile = Profile(world_a.service.stack.endpoints.issuer_url, person.subject, None, "Ada")
        await sign_in(signing_in, profile, None, None)
        erasing = asyncio.create_task(person.request("DELETE", "/api/account", json={"name": name}))
        done, _ = await asyncio.wait({erasing}, timeout=0.5)
        assert not done, "the erasure must wait for the sign-in, to revoke its session"
    assert (await erasing).status_code == 200
    with pytest.raises(AccountClosed):
        await world_a.parts.tasks.create(caller, CreateTask(name="Late", agent="bug-triager"), None)
    assert await world_a.rows("tasks", person.user_id) == 0
    async with db.read(person.user_id, person.user_id) as tx:
        assert await personal_access(tx, person.user_id) is None
    await world_a.sweep().erase()


async def test_an_erasure_does_not_wait_for_a_schedule_while_it_has_the_account(
    world_a: World,
) -> None:
    person = await world_a.service.sign_in()
    times = {"name": "Daily", "cron": "0 9 * * *", "timeZone": "UTC"}
    created = await person.post("/api/schedules", {**times, "task": {"name": "x"}})
    schedule_id = ids.from_wire("sched", created.json()["schedule"]["id"])
    assert schedule_id is not None
    db = world_a.parts.db
    async with db.write(person.user_id) as changing:
        await schedules.find_for_change(changing, schedule_id)
        async with asyncio.timeout(10), db.write(person.user_id) as erasing:
            # What changes the schedule may be waiting for the account that this has locked.
            await pausing.pause_all(erasing, wait=False)
    async with db.read(person.user_id) as tx:
        schedule = await schedules.find(tx, schedule_id)
        assert schedule is not None
        assert not schedule.paused
    async with db.write(person.user_id) as tx:
        await pausing.pause_all(tx, wait=False)
        schedule = await schedules.find(tx, schedule_id)
        assert schedule is not None
        assert schedule.paused


async def test_a_schedule_that_is_resumed_meanwhile_is_paused(world_a: World) -> None:
    person = await world_a.service.sign_in()
    name = await own_name(person)
    times = {"name": "Daily", "cron": "0 9 * * *", "timeZone": "UTC", "paused": True}
    created = await person.post("/api/schedules", {**times, "task": {"name": "x"}})
    assert created.status_code == 201, created.text
    async with world_a.parts.db.write(person.user_id) as resuming:
        await lock_open_account(resuming)
        erasing = asyncio.create_task(person.request("DELETE", "/api/account", json={"name": name}))
        await until_waiting_for_locks(world_a.service, 1)
        await resuming.execute(
            "UPDATE schedules SET paused = false, next_at = now(), check_at = now() "
            "WHERE account_id = $1",
            person.user_id,
        )
    assert (await erasing).status_code == 200
    async with world_a.service.owner() as connection:
        [schedule] = await connection.fetch(
            "SELECT paused, check_at FROM schedules WHERE account_id = $1", person.user_id
        )
    assert tuple(schedule) == (True, None)
