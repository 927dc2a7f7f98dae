"""The work of two cells through one router: runs, approvals, live streams and webhooks."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from standardwebhooks.webhooks import Webhook

from rota.dev.stack import Stack
from tests.cells.world import NAMES, World, address, assert_refused, started_router
from tests.events.reader import Reader
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, says
from tests.service import Person, free_port
from tests.sizes import size
from tests.webhooks.receiver import Receiver
from tests.webhooks.world import LOCAL
from tests.webhooks.world import create as create_webhook

REQUESTS = size(100, 1_000)


async def work(world: World, runner: Runner, person: Person, receiver: Receiver) -> None:
    """A task that waits for an approval, from its creation to the webhook about its end."""
    path = f"/{uuid4().hex}"
    webhook, secret = await create_webhook(person, f"{receiver.url}{path}")
    script = await runner.scripted.script(says("Done in this cell."))
    task: dict[str, Any] = await runner.begin(person, "starter", script)
    assert task["status"] == "WAITING_APPROVAL"
    port = world.router.settings.port
    async with Reader.open(port, person.token, f"/api/tasks/{task['id']}/events", 0) as reader:
        async with asyncio.timeout(60):
            await reader.until(2)  # Live: the run has not begun, and the stream is open.
            await runner.approve(person, task)
            await reader.to_end()
        types = [each.type for each in reader.messages if each.type.startswith("task.")]
    assert types[-2:] == ["task.started", "task.completed"]
    done = await runner.until(person, task, "COMPLETED")
    assert done["output"] == "Done in this cell."
    await receiver.until(
        lambda: any(r.event["type"] == "task.completed" for r in receiver.at(path))
    )
    for got in receiver.at(path):
        assert Webhook(secret).verify(got.body, got.headers) == got.event
    keys = (await world.router.http.get("/.well-known/webhook-keys.json")).json()["keys"]
    own = (await runner.service.http.get("/.well-known/webhook-keys.json")).json()["keys"]
    assert own
    assert all(key in keys for key in own)
    assert webhook["id"].startswith("wh_")


@pytest.mark.long
async def test_both_cells_work_and_one_works_alone(stack: Stack, tmp_path_factory: Any) -> None:
    port = free_port()
    logs: Path = tmp_path_factory.mktemp("cells")
    async with AsyncExitStack() as outer:
        scripted = await outer.enter_async_context(Scripted.start())
        receiver = await outer.enter_async_context(Receiver().serving())
        lives = {name: await outer.enter_async_context(AsyncExitStack()) for name in NAMES}

        async def start(name: str) -> Runner:
            return await lives[name].enter_async_context(
                Runner.start(
                    stack,
                    scripted,
                    f"cell_work_{name}",
                    logs / name,
                    cell=name,
                    public_url=f"http://127.0.0.1:{port}",
                    trusted_proxies=("127.0.0.1",),
                    egress_allow=LOCAL,
                )
            )

        started = [await start(name) for name in NAMES]
        runners = dict(zip(NAMES, started, strict=True))
        cells = {name: runner.service for name, runner in runners.items()}
        router, app = await outer.enter_async_context(started_router(stack, cells, port))
        world = World(stack, router, cells, app)
        people = {name: await world.person_of(name) for name in NAMES}
        for name, person in people.items():
            await promote(runners[name], person)
        await asyncio.gather(*[work(world, runners[n], people[n], receiver) for n in NAMES])
        jwks = (await router.http.get("/.well-known/jwks.json")).json()["keys"]
        assert len({key["kid"] for key in jwks}) == 2

        # One cell stops while the other one is used.
        east, west = people["east"], people["west"]
        stopping = asyncio.create_task(lives["east"].aclose())
        seen = [(await west.get("/api/tasks")).status_code for _ in range(REQUESTS)]
        await stopping
        seen += [(await west.get("/api/tasks")).status_code for _ in range(REQUESTS)]
        assert set(seen) == {200}
        assert_refused(await east.get("/api/tasks"), 503, "SERVICE_UNAVAILABLE")
        await work(world, runners["west"], west, receiver)
        again = await router.sign_in(west.subject)
        assert again.user_id == west.user_id
        # The keys of a cell that is down stay published.
        assert (await router.http.get("/.well-known/jwks.json")).json()["keys"] == jwks
        assert address(router) == f"http://127.0.0.1:{port}"


async def promote(runner: Runner, person: Person) -> None:
    async with runner.service.owner() as connection:
        await connection.execute(
            "UPDATE accounts SET tier = 'enterprise' WHERE id = $1", person.user_id
        )

    async def tier() -> str:
        shown: str = (await person.get("/api/me")).json()["effectiveTier"]
        return shown

    await until(tier, lambda seen: seen == "ENTERPRISE")
