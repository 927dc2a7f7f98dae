"""What must be the same through every interface."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from tests.interfaces.work import APPROVER, PROGRAM, Work, exhaust, opened, raise_tier
from tests.runs.runner import until
from tests.runs.scripted import calls, delegates, says
from tests.sdk.any_client import url_of
from tests.sdk.proxy import CuttingProxy
from tests.tasks.world import create, newcomers

INVOICE = {
    "type": "object",
    "properties": {"total": {"type": "number"}, "paid": {"type": "boolean"}},
    "required": ["total", "paid"],
    "additionalProperties": False,
}
TOO_LONG = "x" * 50_001
# How many bytes of the first connections arrive.
CUTS = (300, 900)


@dataclass(frozen=True)
class Other:
    """An interface that must answer in another way. What is left behind is the same."""

    refused: tuple[str, ...]
    why: str
    # What the table says if nothing is refused.
    instead: str = ""


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    run: Callable[[Work], Awaitable[None]]
    # The codes of the refusals, in order.
    refused: tuple[str, ...] = ()
    tier: str | None = None
    scopes: tuple[str, ...] = PROGRAM
    others: Mapping[str, Other] = field(default_factory=dict)
    in_ci: bool = False


SCENARIOS: dict[str, Scenario] = {}


def scenario(
    title: str,
    *refused: str,
    tier: str | None = None,
    scopes: tuple[str, ...] = PROGRAM,
    others: Mapping[str, Other] | None = None,
    in_ci: bool = False,
) -> Callable[[Callable[[Work], Awaitable[None]]], Callable[[Work], Awaitable[None]]]:
    def add(run: Callable[[Work], Awaitable[None]]) -> Callable[[Work], Awaitable[None]]:
        name = run.__name__
        SCENARIOS[name] = Scenario(name, title, run, refused, tier, scopes, others or {}, in_ci)
        return run

    return add


@scenario("A task is created and finishes", in_ci=True)
async def finishes(work: Work) -> None:
    task_id = await work.create("writer", says("Written."))
    ended = await work.rests(task_id)
    assert (ended["status"], ended["output"]) == ("COMPLETED", "Written.")
    work.note(await work.interface.get(task_id))


@scenario("The output matches a schema")
async def structured(work: Work) -> None:
    answer = says('{"total": 12.5, "paid": true}')
    ended = await work.rests(await work.create("writer", answer, outputSchema=INVOICE))
    assert ended["outputData"] == {"total": 12.5, "paid": True}


async def _waits(work: Work) -> str:
    """A task with a tool call that waits for a person."""
    turns = calls(("desk__send", {"ref": work.ref()})), says("Sent.")
    task_id = await work.create("careful", *turns)
    assert (await work.rests(task_id))["status"] == "WAITING_APPROVAL"
    return task_id


@scenario("A tool call waits, and a person approves it in the dashboard", in_ci=True)
async def approved(work: Work) -> None:
    task_id = await _waits(work)
    await work.runner.approve(work.person, {"id": task_id})
    assert (await work.rests(task_id))["output"] == "Sent."


@scenario("A person approves the call with other arguments")
async def edited(work: Work) -> None:
    task_id = await _waits(work)
    [item] = (await work.runner.review(work.person, {"id": task_id}))["items"]
    decision = {"id": item["id"], "arguments": {"ref": "another"}}
    await work.runner.approve(work.person, {"id": task_id}, decision)
    assert (await work.rests(task_id))["output"] == "Sent."


@scenario("A person rejects the call")
async def rejected(work: Work) -> None:
    task_id = await _waits(work)
    await work.runner.reject(work.person, {"id": task_id}, reason="Not now.")
    assert (await work.rests(task_id))["status"] == "CANCELLED"


@scenario("A tool returns an error, and the agent goes on")
async def tool_fails(work: Work) -> None:
    ref = work.ref()
    await work.scripted.behave(ref, {"result": "No such customer.", "isError": True})
    turns = calls(("desk__send", {"ref": ref})), says("I see.")
    assert (await work.rests(await work.create("writer", *turns)))["output"] == "I see."


@scenario("A task fails")
async def fails(work: Work) -> None:
    # More steps than the agent can take.
    turns = [calls(("desk__lookup", {"ref": "again"}))] * 3
    ended = await work.rests(await work.create("hasty", *turns))
    assert ended["status"] == "FAILED"


@scenario("An agent gives a part of the work to another agent")
async def delegated(work: Work) -> None:
    part = await work.scripted.script(says("The part."))
    ended = await work.rests(
        await work.create("lead", calls(delegates("writer", part)), says("The whole."))
    )
    assert ended["output"] == "The whole."


@scenario("A task is a subtask of another")
async def subtask(work: Work) -> None:
    parent = (await create(work.person, name="The whole"))["id"]
    child = await work.create("writer", says("The part."), parentTaskId=parent)
    assert (await work.rests(child))["output"] == "The part."
    assert (await work.interface.get(child))["parentTaskId"] == parent


@scenario("A task that waits is cancelled")
async def cancelled(work: Work) -> None:
    task_id = await work.create(
        "careful", calls(("desk__send", {"ref": work.ref()})), says("Sent.")
    )
    await work.rests(task_id)
    work.note(await work.interface.cancel(task_id))
    assert (await work.rests(task_id))["status"] == "CANCELLED"


@scenario(
    "A task is followed to its end over a connection that breaks twice",
    others={
        "a2a": Other(
            (),
            "a client that connects again gets the current state of the task, and then the events "
            "that follow",
            "the end, without the events before",
        )
    },
    in_ci=True,
)
async def followed(work: Work) -> None:
    script = await work.scripted.script(
        calls(("desk__lookup", {"ref": "live"})), says("Found.", hold=True)
    )
    fields = {"name": "A task", "agent": "writer", "input": f"Please. {script}"}
    task_id = await work.interface.create(**fields)
    # At the second turn, so that there are events to follow.
    await until(lambda: work.scripted.asked(script), lambda asked: len(asked) == 2)
    service = work.runner.service
    async with CuttingProxy.to(service.settings.port) as proxy:
        limits = iter(CUTS)
        proxy.limit, proxy.silence_s = lambda: next(limits, None), 0.2
        interface = opened(work.kind, proxy.url, work.program.token)

        async def cuts() -> int:
            return proxy.cuts

        following = asyncio.create_task(interface.follow(task_id))
        await until(cuts, lambda count: count == len(CUTS) or following.done())
        await work.scripted.release(script)
        work.answers.append(await following)
        assert proxy.cuts == len(CUTS)
        await interface.close()
    assert work.answers[-1][-1:] == ["task.completed"]


@scenario("The same idempotency key is sent again, then with another body", "CONFLICT", in_ci=True)
async def replayed(work: Work) -> None:
    fields = {"name": "Once", "agent": "writer", "input": "Hello."}
    first = await work.interface.create("the-key", **fields)
    assert await work.interface.create("the-key", **fields) == first
    await work.attempt(work.interface.create("the-key", **{**fields, "input": "Twice."}))
    await work.rests(first)


@scenario("The agent does not exist", "VALIDATION_ERROR", in_ci=True)
async def unknown_agent(work: Work) -> None:
    fields = {"name": "A task", "agent": "nobody", "input": "Hello."}
    await work.attempt(work.interface.create(**fields))


@scenario("The input is too long", "VALIDATION_ERROR")
async def too_long(work: Work) -> None:
    fields = {"name": "A task", "agent": "writer", "input": TOO_LONG}
    await work.attempt(work.interface.create(**fields))


_LANGUAGE = Other(("TypeError",), "the method has no such argument, so nothing is sent")


@scenario(
    "A field does not exist",
    "VALIDATION_ERROR",
    others={
        "sync": _LANGUAGE,
        "async": _LANGUAGE,
        "command_line": Other(("exit code 2",), "the command has no such option"),
    },
)
async def unknown_field(work: Work) -> None:
    fields = {"name": "A task", "agent": "writer", "input": "Hello.", "colour": "red"}
    await work.attempt(work.interface.create(**fields))


@scenario("The balance is too low", "INSUFFICIENT_CREDITS", tier="basic")
async def no_balance(work: Work) -> None:
    fields = {"name": "A task", "agent": "writer", "input": "Hello."}
    await work.attempt(work.interface.create(**fields))


@scenario("The account is over its rate limit", "RATE_LIMIT_EXCEEDED", tier="basic")
async def limited(work: Work) -> None:
    await exhaust(work.person)
    fields = {"name": "A task", "agent": "writer", "input": "Hello."}
    await work.attempt(work.interface.create(**fields))
    await raise_tier(work.person)


@scenario("A task of another account is read and cancelled", "NOT_FOUND", "NOT_FOUND")
async def foreign(work: Work) -> None:
    [stranger] = await newcomers(work.runner.service)
    task = await create(stranger, name="Mine", status="WAITING_APPROVAL")
    await work.attempt(work.interface.get(task["id"]))
    await work.attempt(work.interface.cancel(task["id"]))


@scenario(
    "A key without `tasks:approve` decides",
    "AUTHORIZATION_ERROR",
    others={
        "mcp": Other(("Unknown tool",), "no tool can approve or reject"),
        "a2a": Other(("UnsupportedOperationError",), "no message can approve or reject"),
    },
)
async def decides(work: Work) -> None:
    task = await create(work.person, name="Send it", status="WAITING_APPROVAL")
    await work.attempt(work.interface.approve(task["id"]))


_PROGRAMS_ONLY = Other(("AUTHORIZATION_ERROR",), "these interfaces refuse keys that can approve")


@scenario(
    "A key with `tasks:approve` reads a task",
    scopes=APPROVER,
    others={"mcp": _PROGRAMS_ONLY, "a2a": _PROGRAMS_ONLY},
)
async def may_approve(work: Work) -> None:
    task = await create(work.person, name="Send it", status="WAITING_APPROVAL")
    await work.attempt(work.interface.get(task["id"]))


@scenario("The key does not exist", "AUTHENTICATION_ERROR")
async def unknown_key(work: Work) -> None:
    url = url_of(work.runner.service)
    interface = opened(work.kind, url, "rota_" + "a" * 38, retries=False)
    fields = {"name": "A task", "agent": "writer", "input": "Hello."}
    await work.attempt(interface.create(**fields))
    await interface.close()
