"""The outbox: instructions are written with a change, handled after it, and never lost."""

import asyncio
import json
import signal
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
import structlog

from rota.events import outbox
from rota.events.outbox import Instruction, Relay, Reschedule
from rota.platform.db import Database
from tests.service import Service
from tests.tasks.world import AGENT, create, newcomer, picture, uuid_of

RELAY = """
import asyncio, sys
from rota.events.outbox import Relay
from rota.platform.db import Database

async def handle(instruction):
    print("taken", flush=True)
    await asyncio.Event().wait()

async def main(url, kind):
    db = Database(url, pool_size=2)
    await db.open()
    await Relay(db, {kind: handle}).run()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def kind() -> str:
    """A kind of instruction that only this test handles."""
    return f"test.{uuid4().hex}"


async def put(db: Database, kind: str, count: int = 1) -> UUID:
    account_id = uuid4()
    async with db.write(account_id) as tx:
        for number in range(count):
            await outbox.put(tx, Instruction(account_id, kind, uuid4(), {"number": number}))
    return account_id


async def rows(board: Service, kind: str) -> list[Any]:
    async with board.owner() as connection:
        found: list[Any] = await connection.fetch(
            "SELECT *, due_at - now() AS wait FROM outbox WHERE kind = $1 ORDER BY id", kind
        )
    return found


async def test_creating_a_hosted_task_writes_one_instruction_and_an_external_one_none(
    board: Service,
) -> None:
    person = await newcomer(board)
    await create(person)
    await create(person, agent=AGENT, status="COMPLETED")
    await create(person, agent=AGENT, status="WAITING_APPROVAL")
    hosted = await create(person, agent=AGENT)
    async with board.owner() as connection:
        seen = await picture(connection, person.user_id)
    [row] = seen["outbox"]
    assert (row["kind"], row["task_id"]) == ("run.start", uuid_of(hosted))
    assert json.loads(row["payload"])["run"] == 1


async def test_a_creation_that_is_rolled_back_leaves_no_instruction(board: Service) -> None:
    person = await newcomer(board)
    async with board.owner() as connection:
        # The last statement of the transaction fails.
        await connection.execute(
            f"""
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF NEW.account_id = '{person.user_id}' THEN RAISE 'refused'; END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER refuse AFTER INSERT ON idempotency_keys
                FOR EACH ROW EXECUTE FUNCTION refuse()
            """
        )
        headers = {"Idempotency-Key": "k"}
        with structlog.testing.capture_logs():
            response = await person.post(
                "/api/tasks", {"name": "x", "agent": AGENT}, headers=headers
            )
        await connection.execute("DROP TRIGGER refuse ON idempotency_keys; DROP FUNCTION refuse")
        assert response.status_code == 500
        assert response.json()["error"]["code"] == "DATABASE_ERROR"
        seen = await picture(connection, person.user_id)
    assert not any(seen[table] for table in ("tasks", "events", "outbox", "idempotency_keys"))


async def test_two_relays_handle_each_instruction_once(
    board: Service, db: Database, kind: str
) -> None:
    account_id = await put(db, kind, 100)
    done: Counter[int] = Counter()
    by: Counter[int] = Counter()
    all_done = asyncio.Event()

    def handler(relay: int) -> Callable[[Instruction], Any]:
        async def handle(instruction: Instruction) -> None:
            assert (instruction.account_id, instruction.kind) == (account_id, kind)
            await asyncio.sleep(0)
            done[instruction.payload["number"]] += 1
            by[relay] += 1
            if len(done) == 100:
                all_done.set()

        return handle

    relays = [asyncio.create_task(Relay(db, {kind: handler(n)}).run()) for n in range(2)]
    async with asyncio.timeout(20):
        await all_done.wait()
        while await rows(board, kind):
            await asyncio.sleep(0.01)
    for relay in relays:
        relay.cancel()
    await asyncio.gather(*relays, return_exceptions=True)
    assert done == dict.fromkeys(range(100), 1)
    assert min(by[0], by[1]) > 0


async def test_a_failed_instruction_is_retried_with_growing_delays(
    board: Service, db: Database, kind: str
) -> None:
    await put(db, kind)
    tries: list[Instruction] = []

    async def handle(instruction: Instruction) -> None:
        tries.append(instruction)
        if len(tries) <= 8:
            raise ValueError("expected")

    relay = Relay(db, {kind: handle})
    waits = []
    for attempt in range(1, 9):
        assert await relay.step()
        assert not await relay.step(), "it is not due yet"
        [row] = await rows(board, kind)
        assert row["attempts"] == attempt
        waits.append(round(row["wait"].total_seconds()))
        async with board.owner() as connection:
            await connection.execute("UPDATE outbox SET due_at = now() WHERE kind = $1", kind)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert await relay.step()
    assert await rows(board, kind) == []
    assert len(tries) == 9


async def test_a_failed_instruction_does_not_delay_the_others(
    board: Service, db: Database, kind: str
) -> None:
    await put(db, kind, 3)
    done = []

    async def handle(instruction: Instruction) -> None:
        if instruction.payload["number"] == 0:
            raise ValueError("expected")
        done.append(instruction.payload["number"])

    relay = Relay(db, {kind: handle})
    while await relay.step():
        pass
    assert done == [1, 2]
    assert len(await rows(board, kind)) == 1


async def test_a_handler_that_hangs_times_out_and_is_retried(
    board: Service, db: Database, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "HANDLER_TIMEOUT_S", 0.05)
    await put(db, kind)

    async def handle(_: Instruction) -> None:
        await asyncio.Event().wait()

    assert await Relay(db, {kind: handle}).step()
    [row] = await rows(board, kind)
    assert row["attempts"] == 1


async def test_a_handler_can_reschedule_its_instruction_as_another_kind(
    board: Service, db: Database, kind: str
) -> None:
    await put(db, kind)

    async def handle(_: Instruction) -> Reschedule:
        return Reschedule(f"{kind}.check", 30)

    assert await Relay(db, {kind: handle}).step()
    assert await rows(board, kind) == []
    [row] = await rows(board, f"{kind}.check")
    assert 25 < row["wait"].total_seconds() <= 30
    assert (row["attempts"], json.loads(row["payload"])) == (0, {"number": 0})


async def test_a_relay_ignores_kinds_without_a_handler(
    board: Service, db: Database, kind: str
) -> None:
    await put(db, kind)
    assert not await Relay(db, {f"{kind}.other": None}).step()  # type: ignore[dict-item]
    assert len(await rows(board, kind)) == 1


async def test_another_relay_handles_the_instruction_of_a_killed_relay(
    board: Service, db: Database, kind: str
) -> None:
    await put(db, kind)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", RELAY, board.database_url, kind, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(20):
        assert await process.stdout.readline() == b"taken\n"
    taken: list[Instruction] = []

    async def handle(instruction: Instruction) -> None:
        taken.append(instruction)

    relay = Relay(db, {kind: handle})
    assert not await relay.step(), "another relay has locked it"
    process.send_signal(signal.SIGKILL)
    await process.wait()
    async with asyncio.timeout(10):
        while not await relay.step():
            await asyncio.sleep(0.01)
    assert len(taken) == 1
    assert await rows(board, kind) == []


async def test_a_relay_continues_after_the_database_was_down(
    board: Service, db: Database, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "POLL_EVERY_S", 0.02)
    taken = asyncio.Event()

    async def handle(_: Instruction) -> None:
        taken.set()

    cut = """
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE '%FROM outbox%'
          AND pid <> pg_backend_pid()
    """
    relay = asyncio.create_task(Relay(db, {kind: handle}).run())
    with structlog.testing.capture_logs() as logs:
        async with board.owner() as connection, asyncio.timeout(10):
            while not any(line["event"] == "relay_failed" for line in logs):
                await connection.fetchval(cut)
                await asyncio.sleep(0.01)
        await put(db, kind)
        async with asyncio.timeout(10):
            await taken.wait()
    relay.cancel()
    await asyncio.gather(relay, return_exceptions=True)


async def test_requests_see_only_their_own_account_in_the_outbox(
    board: Service, db: Database, kind: str
) -> None:
    account_id = await put(db, kind)
    count = "SELECT count(*) FROM outbox WHERE kind = $1"
    async with db.read(uuid4()) as tx:
        assert await tx.fetchval(count, kind) == 0
    async with db.read(account_id) as tx:
        assert await tx.fetchval(count, kind) == 1
