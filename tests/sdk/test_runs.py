"""Runs through the SDK: the text of a model while it is written, and decisions about tool calls."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.dev.stack import Stack
from rota_sdk import Event, TextDelta, TextSnapshot
from tests.runs.runner import CATALOG, Runner, until
from tests.runs.scripted import Scripted, calls, says
from tests.sdk.any_client import AnyClient, url_of
from tests.sdk.installed import Example, Sdk
from tests.sdk.proxy import CuttingProxy
from tests.sdk.test_follow import CUTS

PROSE = "".join(f"Sentence {number} has an ü, a 🜁 and a \u2028.\n" for number in range(40))
# Where the model waits: near the end of the text, which it sends 20 characters at a time.
HOLD = len(PROSE) // 20 - 2


@pytest.fixture(scope="module")
async def scripted() -> AsyncIterator[Scripted]:
    async with Scripted.start() as started:
        yield started


@pytest.fixture(scope="module")
async def runner(
    stack: Stack, scripted: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runner]:
    folder = tmp_path_factory.mktemp("worker")
    async with started_runner(stack, scripted, "sdk_runs", folder) as started:
        yield started


@asynccontextmanager
async def started_runner(
    stack: Stack, scripted: Scripted, name: str, folder: Path
) -> AsyncIterator[Runner]:
    """A service with a worker, the agents of the tests and one of the catalog."""
    agents = folder / "catalog"
    agents.mkdir()
    for file in (*CATALOG.glob("*.md"), *catalog_folder().rglob("process-writer.md")):
        copy(file, agents)
    async with Runner.start(stack, scripted, name, folder / "log") as started:
        await sync(started.service.database_url, agents)
        yield started


async def test_the_text_of_a_model_is_whole_however_often_the_connection_breaks(
    runner: Runner, scripted: Scripted, kind: str
) -> None:
    person = await runner.newcomer()
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "live"}), text="I look it up."),
        says(PROSE, paceS=0.01, holdAfter=HOLD),
    )
    async with CuttingProxy.to(runner.service.settings.port) as proxy:
        chance = random.Random(11)
        limits = iter([chance.randint(900, 6000) for _ in range(CUTS)])
        proxy.limit, proxy.silence_s = lambda: next(limits, None), 0.1
        client = AnyClient.open(kind, proxy.url, person.token)
        plain = AnyClient.open(kind, url_of(runner.service), person.token)
        task = await plain(
            lambda c: c.tasks.create(name="T", agent="writer", input=f"Please. {script}")
        )
        following = asyncio.create_task(client.all(lambda c: c.tasks.follow(task)))

        async def cuts() -> int:
            return proxy.cuts

        await until(cuts, lambda count: count == CUTS or following.done())
        await scripted.release(script)
        seen = await following
        assert proxy.cuts == CUTS
        ended = await plain(lambda c: c.tasks.wait(task))
        await asyncio.gather(client.close(), plain.close())
    texts: dict[tuple[int, int], str] = {}
    for event in seen:
        if isinstance(event, TextDelta):
            place = (event.run, event.step)
            texts[place] = texts.get(place, "") + event.text
        elif isinstance(event, TextSnapshot):
            texts[event.run, event.step] = event.text
    assert texts == {(1, 1): "I look it up.", (1, 2): PROSE}
    assert ended.output == PROSE
    events = [event for event in seen if isinstance(event, Event)]
    first = events[0].sequence
    assert [event.sequence for event in events] == list(range(first, first + len(events)))
    assert events[0].type == "task.created"
    assert isinstance(seen[-1], Event)
    assert seen[-1].type == "task.completed"


async def test_a_tool_call_is_approved_with_other_arguments(
    runner: Runner, scripted: Scripted, kind: str
) -> None:
    person = await runner.newcomer()
    script = await scripted.script(calls(("desk__send", {"ref": "first"})), says("Sent."))
    client = AnyClient.open(kind, url_of(runner.service), person.token)
    task = await client(
        lambda c: c.tasks.create(name="T", agent="careful", input=f"Please. {script}")
    )
    waiting = await client(lambda c: c.tasks.wait(task, until_review=True, timeout=60))
    assert waiting.status == "WAITING_APPROVAL"
    review = await client(lambda c: c.tasks.review(task))
    [item] = review.items
    assert (review.gate, item.tool, item.arguments) == ("tool", "send", {"ref": "first"})
    decisions: list[Any] = [{"id": item.id, "arguments": {"ref": "second"}}]
    await client(lambda c: c.tasks.approve(task, review=review, decisions=decisions))
    ended = await client(lambda c: c.tasks.wait(task, timeout=60))
    assert (ended.status, ended.output) == ("COMPLETED", "Sent.")
    steps = await client.all(lambda c: c.tasks.timeline(task, page_size=2))
    [sent] = [step for step in steps if step.kind == "tool"]
    assert sent.arguments == {"ref": "second"}
    fork = await client(lambda c: c.tasks.fork(task, from_step=0))
    assert fork.forked_from.task_id == task.id
    assert (await client(lambda c: c.tasks.fork_options(task))).available
    await client.close()


@pytest.mark.parametrize("example", Example.all(), ids=lambda example: example.name)
async def test_the_examples_of_the_readme_run(
    runner: Runner, installed_sdk: Sdk, example: Example
) -> None:
    person = await runner.newcomer()
    await asyncio.to_thread(
        installed_sdk.run,
        "-c",
        example.code,
        ROTA_BASE_URL=url_of(runner.service),
        ROTA_API_KEY=person.token,
    )
