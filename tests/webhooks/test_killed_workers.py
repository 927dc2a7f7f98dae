"""A worker that is killed while it sends delays its webhooks, and loses nothing."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rota.composition import Composition
from tests.forks import Fork, forked
from tests.service import Person, Service, environment, free_port
from tests.webhooks.receiver import OK, Received, Receiver
from tests.webhooks.world import create, happen, until


@asynccontextmanager
async def worker_process(service: Service) -> AsyncIterator[Fork]:
    settings = service.settings.model_copy(update={"worker_port": free_port()})
    process = await forked("rota.cli", "worker", env=os.environ | environment(settings))
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def test_a_killed_worker_loses_no_event_and_another_one_continues_in_order(
    office: Service, person: Person, receiver: Receiver
) -> None:
    async def slowly(_: Received) -> bytes:
        await asyncio.sleep(0.01)
        return OK

    receiver.answers["/"] = slowly
    webhook, _ = await create(person, receiver.url + "/")
    start, count = webhook["confirmedSequence"], 150
    async with Composition(office.settings, pool_size=2) as parts:
        await happen(parts, person, count)
    for killed_after in (20, 60):
        async with worker_process(office) as process:
            await receiver.until(lambda n=killed_after: len(receiver.received) > n, 60)  # type: ignore[misc]
            process.kill()
            await process.wait()
    async with worker_process(office):
        await until(person, webhook, 60, confirmedSequence=start + count + 1)
    sequences = receiver.sequences()
    assert sorted(set(sequences)) == list(range(start + 1, start + count + 2))
    # In order: a number that comes again is not behind what was confirmed, but never jumps ahead.
    highest = start
    for sequence in sequences:
        assert sequence <= highest + 1
        highest = max(highest, sequence)
