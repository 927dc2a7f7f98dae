"""The text of a model call reaches its watchers while it is written, whole and in order."""

import asyncio
import random
from typing import Any

from redis.asyncio import Redis

from rota.events.live_text import key_of
from rota.platform import ids
from tests.runs.live_client import LiveClient
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person
from tests.sizes import size

CUTS = size(200, 1_000)
PROSE = "".join(f"Sentence {number} has an ü and a 🜁.\n" for number in range(150))


def client_of(person: Person, task: dict[str, Any]) -> LiveClient:
    return LiveClient(person, f"/api/tasks/{task['id']}/events")


async def shows(client: LiveClient, place: tuple[int, int], text: str) -> None:
    """Reads until the client has this text."""

    async def look() -> str:
        return client.texts.get(place, "")

    following = asyncio.create_task(client.follow())
    try:
        await until(look, lambda seen: seen == text, deadline_s=30)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def test_a_watcher_sees_the_text_before_the_answer_is_whole(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says(PROSE, pieceCharacters=100, holdAfter=3))
    task = await runner.begin(person, "writer", script)
    client = client_of(person, task)
    await shows(client, (1, 1), PROSE[:300])
    # A second watcher gets the text so far in one message.
    late = client_of(person, task)
    await shows(late, (1, 1), PROSE[:300])
    assert [entry for entry in late.log if entry.startswith(("text", "delta"))] == ["text 1"]
    assert (await runner.task(person, task["id"]))["status"] == "RUNNING"
    await scripted.release(script)
    await asyncio.gather(client.to_end(), late.to_end())
    output = (await runner.task(person, task["id"]))["output"]
    assert client.texts == late.texts == {(1, 1): output} == {(1, 1): PROSE}


async def test_an_uninterrupted_watcher_gets_only_additions_between_the_events_of_the_steps(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "live"}), text="I look it up.", holdAfter=0),
        says(PROSE, paceS=0.01),
    )
    task = await runner.begin(person, "writer", script)
    client = client_of(person, task)
    following = asyncio.create_task(client.to_end())

    async def log() -> list[str]:
        return client.log

    await until(log, lambda seen: "step.started" in seen)
    await scripted.release(script)
    await following
    assert client.texts == {(1, 1): "I look it up.", (1, 2): PROSE} == await client.stored(task)
    order = [entry for number, entry in enumerate(client.log) if client.log[number - 1] != entry]
    assert order == [
        *("task.created", "task.started"),
        *("step.started", "delta 1", "step.finished"),
        # The tool call, and the next model call.
        *("step.started", "step.finished", "step.started", "delta 2", "step.finished"),
        "task.completed",
    ]


async def test_the_steps_of_a_run_have_numbered_events_and_no_texts(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "a"}), ("nothing", {}), text="Secret words."), says("Done.")
    )
    task = await runner.finish(person, "writer", script)
    async with runner.service.owner() as connection:
        rows = await connection.fetch(
            "SELECT type, data::text AS data FROM events WHERE task_id = $1 ORDER BY sequence",
            ids.from_wire("task", task["id"]),
        )
    assert not any("Secret" in row["data"] for row in rows)
    steps = [row["type"] for row in rows if row["type"].startswith("step.")]
    # The call of a tool that does not exist only ends.
    assert steps.count("step.started") == 3
    assert steps.count("step.finished") == 4


async def test_a_watcher_starts_over_when_the_provider_stops_in_the_middle(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(
        says(
            "The right answer.",
            failures=[
                says("A wrong beginning that breaks off.", breakAfter=2, paceS=0.05),
            ],
        )
    )
    task = await runner.begin(person, "writer", script)
    client = client_of(person, task)
    seen: set[str] = set()

    async def watch() -> None:
        while not client.ended:
            seen.add(client.texts.get((1, 1), ""))
            await asyncio.sleep(0.005)

    await asyncio.gather(client.to_end(), watch())
    assert client.texts == {(1, 1): "The right answer."}
    assert {text[:5] for text in seen} >= {"A wro", ""}
    assert len(await scripted.asked(script)) == 2
    # Only the whole answer is charged, and only it has an event.
    found = await runner.task(person, task["id"])
    assert found["usage"]["costUsd"] == "0.000020"
    assert await runner.events(person, task, "step") == ["step.started", "step.finished"]


async def test_texts_are_whole_and_in_order_after_random_disconnections(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    pace = {"paceS": 0.02, "pieceCharacters": 25}
    look = calls(("desk__lookup", {"ref": "cut"}), text=PROSE, **pace)
    script = await scripted.script(look, says(PROSE[::-1], **pace))
    task = await runner.begin(person, "writer", script)
    client = client_of(person, task)
    chance = random.Random(5)
    whole = {(1, 1): PROSE, (1, 2): PROSE[::-1]}
    while not client.ended:
        length = chance.randint(1, 1_500) if client.connections < CUTS else 2**30
        await client.follow(at_most=length)
        for place, text in client.texts.items():
            assert whole[place].startswith(text)
    assert client.connections >= CUTS
    assert client.texts == whole == await client.stored(task)


async def test_redis_does_not_keep_a_text_for_longer_than_its_call(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    script = await scripted.script(says(PROSE, holdAfter=1))
    task = await runner.begin(person, "writer", script)
    await shows(client_of(person, task), (1, 1), PROSE[:20])
    task_id = ids.from_wire("task", task["id"])
    assert task_id is not None
    redis = Redis.from_url(runner.service.settings.redis_url.get_secret_value())

    async def left_s() -> int:
        return int(await redis.ttl(key_of(task_id)))

    assert 60 < await left_s() <= 660
    await scripted.release(script)
    await runner.until(person, task, "COMPLETED")
    await until(left_s, lambda left: left <= 60)
    await redis.aclose()
