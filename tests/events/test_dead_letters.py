"""What keeps failing becomes a dead letter, which an operator can see and retry."""

import asyncio
import json
import time
from typing import Any

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs
from typer.testing import CliRunner, Result

from rota.cli import cli
from rota.events import outbox
from rota.events.outbox import Instruction, Unavailable, lane_of
from rota.events.relay import Relay
from rota.platform import ids
from rota.platform.db import Database
from tests.events.relaying import make_due, put, rows
from tests.service import Service, environment

SECRET = "rota_" + "a1B2c3D4e5F6" * 3


async def admin(board: Service, *arguments: str) -> Result:
    """`rota admin outbox …`, in a thread, because it has its own event loop."""
    env = dict(environment(board.settings))
    return await asyncio.to_thread(
        lambda: CliRunner().invoke(cli, ["admin", "outbox", *arguments], env=env)
    )


async def refuse(_: Instruction) -> None:
    raise ValueError(f"refused by {SECRET}")


async def fail(board: Service, relay: Relay, kind: str, times: int) -> Any:
    """Fails so many times. Returns the row."""
    for _ in range(times):
        assert await relay.step()
        [row] = await rows(board, kind)
        if row["dead_at"] is None:
            await make_due(board, kind)
    return row


async def test_an_instruction_that_keeps_failing_becomes_a_dead_letter(
    board: Service, db: Database, kind: str
) -> None:
    account_id = await put(db, kind)
    relay = Relay(db, {kind: refuse}, max_attempts=3)
    with capture_logs() as logs:
        row = await fail(board, relay, kind, 2)
        assert row["dead_at"] is None
        row = await fail(board, relay, kind, 1)
    assert row["dead_at"] is not None
    assert row["error"] == "ValueError: refused by [hidden]"
    [line] = [line for line in logs if line["event"] == "instruction_dead"]
    assert (line["id"], line["kind"], line["attempts"]) == (row["id"], kind, 3)
    assert line["account_id"] == str(account_id)
    assert REGISTRY.get_sample_value("rota_outbox_dead_letters_total", {"kind": kind}) == 1
    await outbox.count_waiting(db, [relay.lane])
    assert (REGISTRY.get_sample_value("rota_outbox_dead") or 0) >= 1
    # No relay takes it, not even one that would succeed.
    assert not await Relay(db, {kind: refuse}).step()


async def test_an_operator_lists_and_retries_dead_letters(
    board: Service, db: Database, kind: str
) -> None:
    await put(db, kind)
    alive = await put(db, f"{kind}.alive")
    row = await fail(board, Relay(db, {kind: refuse}, max_attempts=1), kind, 1)
    shown = await admin(board, "list", "--dead")
    assert shown.exit_code == 0, shown.output
    [line] = [line for line in shown.stdout.splitlines() if kind in line]
    assert line.split()[0] == str(row["id"])
    assert ids.to_wire("task", row["task_id"]) in line
    assert "ValueError: refused by [hidden]" in line
    listed = json.loads((await admin(board, "list", "--dead", "--json")).stdout)["instructions"]
    [dead] = [each for each in listed if each["kind"] == kind]
    assert (dead["id"], dead["task"]) == (row["id"], ids.to_wire("task", row["task_id"]))
    assert dead["deadAt"] is not None
    everything = (await admin(board, "list", "--limit", "100000")).stdout
    assert ids.to_wire("acct", alive) in everything
    retried = await admin(board, "retry", str(row["id"]))
    assert retried.stdout == "1 instruction will be retried.\n"
    [row] = await rows(board, kind)
    assert (row["dead_at"], row["attempts"], row["ready"]) == (None, 0, True)
    again = await admin(board, "retry", str(row["id"]))
    assert (again.exit_code, again.stderr) == (
        1,
        f"No dead letter has the ID {row['id']}.\n",
    )
    await fail(board, Relay(db, {kind: refuse}, max_attempts=1), kind, 1)
    retried = await admin(board, "retry", "--all", "--json")
    assert json.loads(retried.stdout)["retried"] >= 1

    async def handle(_: Instruction) -> None:
        pass

    assert await Relay(db, {kind: handle}).step()
    assert await rows(board, kind) == []
    assert (await admin(board, "list", "--dead")).stdout == "There are no dead letters.\n"
    assert (await admin(board, "retry")).exit_code == 2
    assert (await admin(board, "retry", "1", "--all")).exit_code == 2


async def test_a_parked_instruction_waits_until_it_is_released(
    board: Service, db: Database, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    account_id = await put(db, kind)
    async with board.owner() as connection:
        task_id = await connection.fetchval(
            "UPDATE outbox SET ready = false, due_at = 'infinity' WHERE kind = $1 "
            "RETURNING task_id",
            kind,
        )
    handled: list[Instruction] = []

    async def handle(instruction: Instruction) -> None:
        handled.append(instruction)

    assert not await Relay(db, {kind: handle}).step()
    # A time without an end has no time zone.
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        shown = await admin(board, "list", "--limit", "100000")
    time.tzset()
    assert shown.exit_code == 0, shown.output
    [line] = [line for line in shown.stdout.splitlines() if kind in line]
    assert " parked" in line
    async with db.write(account_id) as tx:
        await outbox.release_parked(tx, [task_id])
    assert await Relay(db, {kind: handle}).step()
    assert [each.kind for each in handled] == [kind]


async def test_an_outage_makes_no_dead_letters(board: Service, db: Database, kind: str) -> None:
    await put(db, kind)

    async def handle(_: Instruction) -> None:
        raise Unavailable("down")

    row = await fail(board, Relay(db, {kind: handle}, max_attempts=2), kind, 6)
    assert (row["dead_at"], row["error"]) == (None, "Unavailable: down")


async def test_an_instruction_that_ends_its_process_each_time_becomes_a_dead_letter(
    board: Service, db: Database, kind: str
) -> None:
    await put(db, kind)
    calls: list[Instruction] = []

    async def handle(instruction: Instruction) -> None:
        calls.append(instruction)
        raise KeyboardInterrupt  # As if the process ended: nothing is saved.

    for _ in range(2):
        relay = Relay(db, {kind: handle}, max_attempts=2)
        claims, _wait_s = await relay._claim(1)
        assert len(claims) == 1
        await make_due(board, kind)
    assert await Relay(db, {kind: handle}, max_attempts=2).step()
    [row] = await rows(board, kind)
    assert row["dead_at"] is not None
    assert row["error"] == "The process ended during every attempt."
    assert calls == []


async def test_the_age_of_the_oldest_instruction_is_a_metric(
    board: Service, db: Database, kind: str
) -> None:
    def age_s() -> float | None:
        return REGISTRY.get_sample_value("rota_outbox_oldest_seconds", {"lane": lane_of(kind)})

    await put(db, kind)
    async with board.owner() as connection:
        await connection.execute(
            "UPDATE outbox SET due_at = now() - interval '90 s' WHERE kind = $1", kind
        )
    await put(db, kind)
    await outbox.count_waiting(db, [lane_of(kind)])
    assert 90 <= (age_s() or 0) < 900
    async with board.owner() as connection:
        await connection.execute("DELETE FROM outbox WHERE kind = $1", kind)
    await outbox.count_waiting(db, [lane_of(kind)])
    assert age_s() == 0
