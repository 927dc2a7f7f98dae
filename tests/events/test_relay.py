"""The relay: every instruction is handled, also after a crash, and none delays the others."""

import asyncio
import json
import signal
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
import structlog

from rota.events import relay as relay_module
from rota.events.outbox import Instruction, Reschedule
from rota.events.relay import Relay
from rota.platform.db import Database
from tests.events.relaying import make_due, put, rows, running
from tests.service import Service

RELAY = """
import asyncio, sys
from rota.events.relay import Relay
from rota.platform.db import Database

async def handle(instruction):
    print("taken", flush=True)
    await asyncio.Event().wait()

async def main(url, kind):
    db = Database(url, pool_size=2)
    await db.open()
    await Relay(db, {kind: handle}, lease_s=5).run()

asyncio.run(main(*sys.argv[1:]))
"""


async def nothing(_: Instruction) -> None:
    pass


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

    async with running(*[Relay(db, {kind: handler(n)}) for n in range(2)]), asyncio.timeout(20):
        await all_done.wait()
        while await rows(board, kind):
            await asyncio.sleep(0.01)
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
        assert (row["attempts"], row["error"]) == (attempt, "ValueError: expected")
        waits.append(round(row["wait"].total_seconds()))
        await make_due(board, kind)
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
    board: Service, db: Database, kind: str
) -> None:
    await put(db, kind)

    async def handle(_: Instruction) -> None:
        await asyncio.Event().wait()

    assert await Relay(db, {kind: handle}, lease_s=0.3).step()
    [row] = await rows(board, kind)
    assert row["attempts"] == 1


async def test_a_slow_handler_does_not_delay_the_others(
    board: Service, db: Database, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_module, "ROOM", 3)
    await put(db, kind, 10)
    done: list[int] = []
    others_done = asyncio.Event()

    async def handle(instruction: Instruction) -> None:
        if instruction.payload["number"] == 0:
            await others_done.wait()
        done.append(instruction.payload["number"])
        if len(done) == 9:
            others_done.set()

    async with running(Relay(db, {kind: handle})), asyncio.timeout(10):
        while await rows(board, kind):
            await asyncio.sleep(0.01)
    assert sorted(done) == list(range(10))
    assert done[-1] == 0


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


async def test_instructions_with_the_same_key_become_one(
    board: Service, db: Database, kind: str
) -> None:
    account_id, other = await put(db, kind, 30), await put(db, kind)
    started, both = 0, asyncio.Event()

    async def handle(_: Instruction) -> Reschedule:
        nonlocal started
        started += 1
        if started > 20:
            both.set()
        # Two relays save at the same moment.
        await both.wait()
        return Reschedule(f"{kind}.check", 30, "once")

    relays = [Relay(db, {kind: handle}) for _ in range(2)]
    async with asyncio.timeout(20):
        await asyncio.gather(*[relay.step() for relay in relays])
        while await relays[0].step():
            pass
    assert await rows(board, kind) == []
    found = [row["account_id"] for row in await rows(board, f"{kind}.check")]
    assert sorted(found) == sorted([account_id, other])


@pytest.mark.parametrize("goes_on", [True, False])
async def test_a_key_passes_from_a_finished_instruction_to_a_new_one(
    board: Service, db: Database, kind: str, goes_on: bool
) -> None:
    account_id = await put(db, kind)
    first = Relay(db, {kind: lambda _: _later(kind)})
    assert await first.step()
    # A new instruction that takes the key, in one batch with the one that has it.
    async with board.owner() as connection:
        await connection.execute(
            "UPDATE outbox SET due_at = now(), ready = true WHERE kind = $1", f"{kind}.check"
        )
    await put(db, kind, account_id=account_id)

    started, both = 0, asyncio.Event()

    async def together() -> None:
        nonlocal started
        started += 1
        if started == 2:
            both.set()
        await both.wait()

    async def begin(_: Instruction) -> Reschedule:
        await together()
        return await _later(kind)

    async def check(_: Instruction) -> Reschedule | None:
        await together()
        return await _later(kind) if goes_on else None

    second = Relay(db, {kind: begin, f"{kind}.check": check})
    async with asyncio.timeout(20):
        while await second.step():
            pass
    assert len(await rows(board, f"{kind}.check")) == 1
    assert await rows(board, kind) == []


async def _later(kind: str) -> Reschedule:
    return Reschedule(f"{kind}.check", 30, "once")


async def test_a_relay_ignores_kinds_without_a_handler(
    board: Service, db: Database, kind: str
) -> None:
    await put(db, kind)
    assert not await Relay(db, {f"{kind}.other": nothing}).step()
    assert len(await rows(board, kind)) == 1


async def test_a_handler_runs_without_a_transaction_or_a_connection(
    board: Service, kind: str
) -> None:
    db = Database(board.database_url, pool_size=1)
    await db.open()
    await put(db, kind, 5)
    seen: list[int] = []

    async def handle(instruction: Instruction) -> None:
        # It would wait for the only connection of the pool for ever.
        async with db.read(instruction.account_id) as tx:
            seen.append(await tx.fetchval("SELECT count(*) FROM outbox WHERE kind = $1", kind))

    async with asyncio.timeout(10):
        assert await Relay(db, {kind: handle}).step()
    await db.close()
    assert seen == [5] * 5
    assert await rows(board, kind) == []


async def test_another_relay_handles_the_instruction_of_a_killed_relay(
    board: Service, db: Database, kind: str
) -> None:
    await put(db, kind)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", RELAY, board.database_url, kind, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(30):
        assert await process.stdout.readline() == b"taken\n"
    taken: list[Instruction] = []

    async def handle(instruction: Instruction) -> None:
        taken.append(instruction)

    relay = Relay(db, {kind: handle})
    assert not await relay.step(), "another relay has claimed it"
    process.send_signal(signal.SIGKILL)
    await process.wait()
    async with running(relay), asyncio.timeout(15):
        while await rows(board, kind):
            await asyncio.sleep(0.01)
    assert len(taken) == 1


async def test_a_relay_that_comes_back_after_its_lease_changes_nothing(
    board: Service, db: Database, kind: str
) -> None:
    await put(db, kind)
    taken, resume = asyncio.Event(), asyncio.Event()

    async def late(_: Instruction) -> Reschedule:
        taken.set()
        await resume.wait()
        return Reschedule(kind, 0)

    async def handle(_: Instruction) -> Reschedule:
        return Reschedule(f"{kind}.next", 60)

    paused = Relay(db, {kind: late}, lease_s=30)
    step = asyncio.create_task(paused.step())
    await taken.wait()
    assert not await Relay(db, {kind: handle}).step()
    await make_due(board, kind)  # The lease ends.
    assert await Relay(db, {kind: handle}).step()
    resume.set()
    assert await step
    assert await rows(board, kind) == []
    assert len(await rows(board, f"{kind}.next")) == 1


async def test_a_relay_that_stops_gives_back_what_it_has_claimed(
    board: Service, db: Database, kind: str
) -> None:
    await put(db, kind)
    taken = asyncio.Event()

    async def handle(_: Instruction) -> None:
        taken.set()
        await asyncio.Event().wait()

    async with running(Relay(db, {kind: handle})), asyncio.timeout(10):
        await taken.wait()
        [row] = await rows(board, kind)
        assert (row["ready"], row["attempts"]) == (False, 1)
    [row] = await rows(board, kind)
    assert (row["ready"], row["attempts"]) == (True, 0)
    assert await Relay(db, {kind: nothing}).step()
    assert await rows(board, kind) == []


async def test_a_delayed_instruction_is_handled_when_it_is_due(
    board: Service, db: Database, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So long that only the relay's own timer can be in time.
    monkeypatch.setattr(relay_module, "POLL_EVERY_S", 60)
    await put(db, kind, delay_s=1)
    async with running(Relay(db, {kind: nothing})), asyncio.timeout(10):
        while await rows(board, kind):
            await asyncio.sleep(0.01)


async def test_a_retry_is_made_when_it_is_due(
    board: Service, db: Database, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_module, "POLL_EVERY_S", 60)
    await put(db, kind)
    tries: list[Instruction] = []

    async def handle(instruction: Instruction) -> None:
        tries.append(instruction)
        if len(tries) == 1:
            raise ValueError("expected")

    async with running(Relay(db, {kind: handle})), asyncio.timeout(10):
        while await rows(board, kind):
            await asyncio.sleep(0.01)
    assert len(tries) == 2


async def test_a_relay_continues_after_the_database_was_down(
    board: Service, db: Database, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_module, "POLL_EVERY_S", 0.02)
    monkeypatch.setattr(relay_module, "RETRY_AFTER_ERROR_S", 0.02)
    taken = asyncio.Event()

    async def handle(_: Instruction) -> None:
        taken.set()

    cut = """
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'rota'
          AND pid <> pg_backend_pid()
    """
    with structlog.testing.capture_logs() as logs:
        async with running(Relay(db, {kind: handle})):
            async with board.owner() as connection, asyncio.timeout(10):
                while not any(line["event"] == "relay_failed" for line in logs):
                    await connection.fetchval(cut)
                    await asyncio.sleep(0.01)
            await put(db, kind, account_id=uuid4())
            async with asyncio.timeout(10):
                await taken.wait()
