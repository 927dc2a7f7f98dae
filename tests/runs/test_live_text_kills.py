"""A worker, a service and a Redis that die while a text is written: the watcher still gets it."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from rota.dev.stack import Stack
from tests.chaos.world import World
from tests.limits.server import RedisServer
from tests.runs.live_client import LiveClient
from tests.runs.runner import until
from tests.runs.scripted import says
from tests.sizes import size

# How often each of them dies.
KILLS = size(1, 10)
PROSE = "".join(f"Sentence {number} has an ü and a 🜁.\n" for number in range(200))


def _has_length(length: int, seen: list[Any]) -> bool:
    return len(seen) == length


@pytest.mark.long
async def test_the_final_text_is_the_stored_one_whatever_is_killed_in_the_middle(
    stack: Stack, tmp_path: Path
) -> None:
    redis = RedisServer(tmp_path)
    redis.start()
    try:
        async with World.start(
            stack, "live_kills", workers=1, redis_url=SecretStr(redis.url)
        ) as world:
            person = await world.newcomer()
            # Takes 20 minutes, so it is never whole before its worker dies.
            slow = says(PROSE * 100, paceS=0.04)
            script = await world.scripted.script(says(PROSE, paceS=0.001, failures=[slow] * KILLS))
            task_id = await world.create(person, "writer", script)
            client = LiveClient(person, f"/api/tasks/{task_id}/events")
            following = asyncio.create_task(client.to_end())

            async def more(than: int) -> None:
                """Waits until the watcher has seen more of the current attempt."""

                async def length() -> int:
                    return len(client.texts.get((1, 1), ""))

                await until(length, lambda seen: seen > than)

            for earlier in range(KILLS):
                await more(0)
                redis.kill()
                redis.start()
                # What was written before Redis died is there again.
                await more(len(client.texts[1, 1]))
                await world.api.kill()
                await world.api.start()
                await more(len(client.texts[1, 1]))
                [worker] = world.workers
                await worker.kill()
                await worker.start()
                # The call is repeated, and its text starts over.
                asked = partial(world.scripted.asked, script)
                await until(asked, partial(_has_length, earlier + 2))
            await following
            task = await world.until(person, task_id, "COMPLETED")
            assert client.texts == await client.stored(task) == {(1, 1): task["output"]}
            assert task["output"] == PROSE
            assert client.log.count("step.finished") == 1
    finally:
        redis.kill()
