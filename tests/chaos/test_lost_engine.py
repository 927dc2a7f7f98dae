"""Temporal loses its database. Every run continues from its rows in PostgreSQL."""

from rota.dev.stack import Stack
from tests.chaos.invariants import violations
from tests.chaos.world import World
from tests.runs.runner import new_namespace, until
from tests.runs.scripted import calls, says


async def test_runs_that_temporal_has_lost_are_started_again_from_their_rows(
    killable_stack: Stack,
) -> None:
    async with World.start(killable_stack, "lost_engine", workers=1) as world:
        person = await world.newcomer()
        held = await world.scripted.script(
            calls(("desk__lookup", {"ref": "lost"})), says("Done.", hold=True)
        )
        gated = await world.scripted.script(calls(("desk__send", {"ref": "lost"})), says("Done."))
        running = [await world.create(person, "writer", held) for _ in range(3)]
        waiting = await world.create(person, "careful", gated)
        await world.until(person, waiting, "WAITING_APPROVAL")

        async def asked() -> dict[int, int]:
            return await world.scripted.count(held)

        # Each is in its second call, so its first one is stored.
        await until(asked, lambda turns: turns.get(1, 0) == len(running))

        [worker], temporal = world.workers, killable_stack.temporal
        await worker.kill()
        await temporal.kill()
        for file in killable_stack.directory.path.glob("temporal.db*"):
            file.unlink()
        await temporal.start()
        await new_namespace(temporal.address, world.settings.temporal_namespace)
        await world.scripted.release(held)
        await worker.start()

        # The decision restarts its run. The next periodic check restarts the others.
        await world.request_until_response(person, "POST", f"/api/tasks/{waiting}/approve")
        await world.until(person, waiting, "COMPLETED")
        async with world.service.owner() as connection:
            await connection.execute("UPDATE outbox SET due_at = now() WHERE kind = 'run.check'")
        for task_id in running:
            await world.until(person, task_id, "COMPLETED")
        wrong = await violations(world, [*running, waiting])
        assert not any(wrong.values()), wrong
        # No finished model call is repeated.
        assert (await world.scripted.count(held))[0] == 3
