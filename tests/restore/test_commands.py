"""Files, refusals, and what happens to keys, Temporal, Redis and payments."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr
from temporalio.client import Client, WorkflowExecutionStatus

from rota.app import create_app
from rota.composition import Composition
from rota.dev.stack import Stack
from rota.platform import ids
from rota.platform.start_checks import StartRefused
from rota.restore import file
from rota.restore.finishing import UNKNOWN_EVENTS
from tests.plans.world import World
from tests.restore.world import SINCE_FORMAT, Restored, run, there
from tests.service import Service
from tests.tasks.world import AGENT, create

BY_HAND = "rota-restore-tests"


async def test_a_file_that_is_damaged_or_foreign_is_refused(old_a: Service, tmp_path: Path) -> None:
    restored = await Restored.of(old_a, "restored_only_a")
    await create(await old_a.sign_in())
    path = tmp_path / "file"
    assert (await restored.collect(path)).exit_code == 0
    assert path.stat().st_mode & 0o777 == 0o600
    lines = path.read_text().splitlines(keepends=True)
    for text, problem in (
        ("", "its end is missing"),
        ("".join(lines[:-1]), "its end is missing"),
        ("".join([lines[0], *lines[2:]]), "its digest is wrong"),
        ("".join(['{"format": "other"}\n', *lines[1:]]), "another format"),
    ):
        path.write_text(text)
        refused = await restored.finish("--file", str(path))
        assert refused.exit_code == 1
        assert problem in refused.output
    refused = await restored.finish("--file", str(tmp_path / "nowhere"))
    assert "No such file" in refused.output


async def test_the_hours_before_now_are_collected_into_a_folder(
    old_a: Service, tmp_path: Path
) -> None:
    folder = tmp_path / "collected"
    folder.mkdir()
    command = ("admin", "restore", "collect", "--since")
    for since in ("26h", "2d"):
        done = await run(old_a.settings, *command, since, "--output", str(folder))
        assert done.exit_code == 0, done.output
        [path] = folder.iterdir()
        hours = (datetime.now(UTC) - file.read([path]).since) / timedelta(hours=1)
        assert hours == pytest.approx({"26h": 26, "2d": 48}[since], abs=0.1)
        assert path.name.startswith(f"collected-{datetime.now(UTC):%Y-%m-%dT}")
        path.unlink()
    for since in ("26", "0h", "yesterday", "26h ago"):
        wrong = await run(old_a.settings, *command, since, "--output", str(folder))
        assert wrong.exit_code == 2
        assert "is not a time" in wrong.output


async def test_a_file_that_begins_after_the_moment_is_refused(
    old_a: Service, tmp_path: Path
) -> None:
    restored = await Restored.of(old_a, "restored_only_a")
    await restored.owned("UPDATE installation SET beat_at = beat_at - interval '3 hours'")
    path = tmp_path / "file"
    tomorrow = await restored.collect(path, since=restored.moment + timedelta(days=1))
    assert tomorrow.exit_code == 1
    assert "is in the future" in tomorrow.output
    at = restored.moment.strftime(SINCE_FORMAT)
    command = ("admin", "restore", "collect", "--since", at, "--output", str(path))
    assert (await run(old_a.settings, *command, "--from", old_a.database_url)).exit_code == 0
    refused = await restored.finish("--file", str(path))
    assert refused.exit_code == 1
    assert "Collect again with --since" in refused.output


async def test_running_processes_and_contradicting_options_are_refused(
    old_a: Service, tmp_path: Path
) -> None:
    restored = await Restored.of(old_a, "restored_only_a")
    app = create_app(restored.settings)
    with pytest.raises(StartRefused, match="copy of another one"):
        async with app.router.lifespan_context(app):
            pass
    moved = await restored.finish("--nothing-lost")
    assert "Processes can now start on this server." in moved.output
    async with restored.serve() as service:
        await service.sign_in()
        refused = await restored.finish("--without-file")
        assert refused.exit_code == 1
        assert "Stop every rota serve" in refused.output
    for options in ((), ("--without-file", "--nothing-lost"), ("--file", "x", "--without-file")):
        assert (await restored.finish(*options)).exit_code == 2


async def test_what_a_file_of_the_old_database_cannot_come_from_is_refused(
    old_a: Service, tmp_path: Path
) -> None:
    restored = await Restored.of(old_a, "restored_only_a")
    await old_a.sign_in()
    since = restored.moment.strftime(SINCE_FORMAT)
    path = tmp_path / "file"
    command = ("admin", "restore", "collect", "--since", since, "--output", str(path))
    # The service runs, so something can happen after the file.
    refused = await run(old_a.settings, *command, "--final")
    assert refused.exit_code == 1
    assert "Stop every rota serve" in refused.output
    # It would say that nothing has ended.
    refused = await run(restored.settings, *command)
    assert refused.exit_code == 1
    assert "Collect from the old one" in refused.output
    assert not path.exists()
    path.write_text("the only file")
    refused = await run(old_a.settings, *command)
    assert refused.exit_code == 1
    assert f"Cannot write {path}: it already exists." in refused.output
    assert path.read_text() == "the only file"
    refused = await run(old_a.settings, *command[:-1], str(tmp_path / "nowhere" / "file"))
    assert refused.exit_code == 1
    assert "No such file or directory. Choose another --output." in refused.output
    nowhere = await run(old_a.settings, *command, "--from", "postgresql://x@127.0.0.1:1/x")
    assert nowhere.exit_code == 1
    assert "Check --from." in nowhere.output


async def test_nothing_is_collected_from_a_database_that_was_restored_in_its_place(
    old_a: Service, tmp_path: Path
) -> None:
    command = ("admin", "restore", "collect", "--since", "26h", "--output", str(tmp_path))
    async with Composition(old_a.settings, pool_size=1) as parts:
        await parts.continuity.beat()
    async with old_a.owner() as connection:
        await connection.execute("UPDATE installation SET beat = beat - 1")
    refused = await run(old_a.settings, *command)
    async with old_a.owner() as connection:
        await connection.execute("UPDATE installation SET beat = beat + 1")
    assert refused.exit_code == 1
    assert "Collect from the old one" in refused.output
    assert not list(tmp_path.iterdir())
    done = await run(old_a.settings, *command)
    assert done.exit_code == 0, done.output


async def test_without_a_file_all_sessions_end(old_a: Service) -> None:
    person = await old_a.sign_in()
    restored = await Restored.of(old_a, "restored_only_a")
    finished = await restored.finish("--without-file", "--ignore-connections")
    assert finished.exit_code == 0, finished.output
    async with restored.serve() as service:
        assert (await there(person, service).get("/api/me")).status_code == 401
        again = await service.sign_in(person.subject)
        # Nobody knows how many numbers of events were used.
        found = await again.get("/api/events?limit=100", headers={"Accept": "application/json"})
        [news] = [each for each in found.json()["events"] if each["type"] == "account.restored"]
        assert news["sequence"] > UNKNOWN_EVENTS


async def test_several_files_are_joined_and_a_gap_between_them_is_refused(
    old_a: Service, tmp_path: Path
) -> None:
    person = await old_a.sign_in()
    account = ids.to_wire("acct", person.user_id)
    tasks = [await create(person, agent=AGENT) for _ in range(2)]
    restored = await Restored.of(old_a, "restored_only_a")
    first, second, late = (tmp_path / name for name in ("first", "second", "late"))
    for number, path in enumerate((first, second)):
        where = f"/api/tasks/{tasks[number]['id']}"
        ended = await person.request("PATCH", where, json={"status": "CANCELLED"})
        assert ended.status_code == 200
        grant = ("admin", "credits", "grant", account, "5", "--reason", "Outage")
        assert (await run(old_a.settings, *grant, "--key", f"o{number}")).exit_code == 0
        collected = await restored.collect(path, *(("--final",) if number else ()))
        assert collected.exit_code == 0, collected.output
        if not number:
            # What the next file contains began later than this.
            async with old_a.owner() as connection:
                await connection.execute(
                    "UPDATE tasks SET updated_at = updated_at - interval '2 hours' "
                    "WHERE account_id = $1 AND status = 'CANCELLED'",
                    person.user_id,
                )
    assert (await restored.collect(late, since=datetime.now(UTC))).exit_code == 0
    refused = await restored.finish("--file", str(first), "--file", str(late))
    assert refused.exit_code == 1
    assert "No file has the changes between" in refused.output

    finished = await restored.finish("--file", str(second), "--file", str(first))
    assert finished.exit_code == 0, finished.output
    async with restored.serve() as service:
        owner = there(person, service)
        for task in tasks:
            found = (await owner.get(f"/api/tasks/{task['id']}")).json()["task"]
            assert found["status"] == "CANCELLED"
        assert (await owner.get("/api/credits/balance")).json()["topUpCents"] == 1_000


async def test_a_signing_key_that_was_retired_stays_retired(
    stack: Stack, namespace: str, tmp_path: Path
) -> None:
    name = "restore_rotated"
    async with Service.start(stack, variant="a", name=name, temporal_namespace=namespace) as old:
        person = await old.sign_in()
        restored = await Restored.of(old, "restored_rotated")
        rotated = await run(old.settings, "admin", "signing-keys", "rotate", "--immediately")
        assert rotated.exit_code == 0, rotated.output
        finished = await restored.collect_and_finish(tmp_path / "file")
    assert "signing keys: 1" in finished.output
    async with restored.serve() as service:
        assert (await there(person, service).get("/api/me")).status_code == 401
        await service.sign_in(person.subject)


async def test_runs_in_temporal_end_and_start_again_from_their_rows(
    old_a: Service, tmp_path: Path
) -> None:
    person = await old_a.sign_in()
    task = await create(person, agent=AGENT)
    restored = await Restored.of(old_a, "restored_only_a")
    client = await Client.connect(
        old_a.settings.temporal_address, namespace=old_a.settings.temporal_namespace
    )
    names = [f"run/{task['id']}/1", f"run/{ids.to_wire('task', ids.new_uuid())}/1"]
    other = f"other/{ids.new_uuid()}"
    for name in (*names, other):
        await client.start_workflow("TaskRun", id=name, task_queue=BY_HAND)
    # The relay has started the run, and checks it now and then.
    await restored.owned("UPDATE outbox SET kind = 'run.check', due_at = now() + interval '1 hour'")
    await restored.collect_and_finish(tmp_path / "file")
    for name in names:
        found = await client.get_workflow_handle(name).describe()
        assert found.status == WorkflowExecutionStatus.TERMINATED
    handle = client.get_workflow_handle(other)
    assert (await handle.describe()).status == WorkflowExecutionStatus.RUNNING
    await handle.terminate()
    rows = await restored.owned("SELECT due_at <= now() AS due FROM outbox")
    assert rows
    assert all(row["due"] for row in rows)


async def test_peers_that_are_down_are_named_and_the_command_can_be_repeated(
    old_a: Service,
) -> None:
    await old_a.sign_in()
    restored = await Restored.of(old_a, "restored_only_a")
    restored.settings = restored.settings.model_copy(
        update={
            "temporal_address": "127.0.0.1:1",
            "redis_url": SecretStr("redis://127.0.0.1:1"),
            "stripe_secret_key": SecretStr("sk_test_1"),
            "stripe_api_url": "http://127.0.0.1:1",
        }
    )
    for _ in range(2):
        refused = await restored.finish("--without-file")
        assert refused.exit_code == 1
        for text in ("Temporal does not respond", "Redis does not respond", "Payments: "):
            assert text in refused.output
        assert "Problems left: 3" in refused.output
        # Numbers of events are skipped once.
        heads = await restored.owned("SELECT skipped FROM account_heads")
        assert {row["skipped"] for row in heads} == {UNKNOWN_EVENTS}


async def test_a_payment_after_the_moment_is_taken_from_stripe(
    stack: Stack, namespace: str, tmp_path: Path
) -> None:
    async with World.start(stack, "a", "restore_paid", temporal_namespace=namespace) as world:
        person = await world.service.sign_in()
        restored = await Restored.of(world.service, "restored_paid")
        answer = await person.post("/api/credits/topup", {"amountCents": 2_500})
        await world.stripe_server.pay(answer.json()["checkoutUrl"])
        finished = await restored.collect_and_finish(tmp_path / "file")
        assert "Repaired 1 of 1 differences with Stripe." in finished.output
        async with restored.serve() as service:
            balance = (await there(person, service).get("/api/credits/balance")).json()
            assert balance["topUpCents"] == 2_500
