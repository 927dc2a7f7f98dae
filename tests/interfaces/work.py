"""One scenario through one interface: what it uses, and everything that it leaves behind."""

import re
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import uuid4

from rota.auth import secrets
from rota.limits import window
from rota.limits.result import Ceilings
from tests.interfaces.a2a_program import A2a
from tests.interfaces.interfaces import Interface, Json, Refused, Rest, Sdk
from tests.interfaces.programs import Mcp
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, Turn
from tests.sdk.any_client import AnyClient, url_of
from tests.sdk.test_same_work import comparable, left_behind
from tests.service import Person
from tests.tasks.world import HIGHEST_TIER, newcomers

T = TypeVar("T")

# What a program needs. Interfaces for programs accept no key that may approve.
PROGRAM = ("tasks:read", "tasks:write", "agents:read")
APPROVER = (*PROGRAM, "tasks:approve")
# The names of scripts, and of what a tool is called with. Each run has its own.
NAMES = re.compile(r"(script:s|ref-)[0-9a-f]{16}")
# What depends on the clock and not on the work.
TIMES = ("durationMs", "waitedMs")

# In the order of the table. REST is what the others are compared with.
INTERFACES = {
    "rest": "REST",
    "sync": "Python SDK, sync",
    "async": "Python SDK, async",
    "node24": "TypeScript SDK",
    "command_line": "Command line",
    "mcp": "MCP server",
    "a2a": "A2A agent",
}


def opened(kind: str, url: str, token: str, *, retries: bool = True) -> Interface:
    """Without retries where refusals are compared, and not what a client does about them."""
    if kind == "rest":
        return Rest(url, token)
    if kind == "mcp":
        return Mcp(url, token)
    if kind == "a2a":
        return A2a(url, token)
    options = {} if retries else {"max_retries": 0}
    return Sdk(AnyClient.open(kind, url, token, **options))


@dataclass
class Work:
    """A new account, a person in it who decides, and a program that uses the interface."""

    runner: Runner
    kind: str
    person: Person
    program: Person
    interface: Interface
    refused: list[Json] = field(default_factory=list)
    # What the interface answered.
    answers: list[Any] = field(default_factory=list)

    @classmethod
    async def begin(
        cls, runner: Runner, kind: str, *, tier: str | None, scopes: tuple[str, ...]
    ) -> "Work":
        person, program = await newcomers(runner.service, 2, tier=tier)
        await limit(program, scopes)
        interface = opened(kind, url_of(runner.service), program.token, retries=False)
        return cls(runner, kind, person, program, interface)

    def ref(self) -> str:
        """What a tool is called with. The test can say what it answers."""
        return f"ref-{uuid4().hex[:16]}"

    @property
    def scripted(self) -> Scripted:
        return self.runner.scripted

    async def create(self, agent: str, *turns: Turn, key: str | None = None, **more: Any) -> str:
        """A task whose model says this."""
        text = f"Please. {await self.scripted.script(*turns)}"
        fields = {"name": "A task", "agent": agent, "input": text, **more}
        return await self.interface.create(key, **fields)

    async def attempt(self, doing: Awaitable[T]) -> T | None:
        """Notes the refusal."""
        try:
            return await doing
        except Refused as refusal:
            self.refused.append(
                {"code": refusal.code, "status": refusal.status, "details": refusal.details}
            )
            return None

    async def rests(self, task_id: str) -> Json:
        """Waits through the interface, and notes what it shows of the task."""
        task = await self.interface.wait(task_id)
        self.note(task)
        return task

    def note(self, task: Json) -> None:
        names = ["status", "outputData", "error", "usage"]
        # The same data as a text is not shown everywhere.
        names += [] if task["outputData"] else ["output"]
        self.answers.append({name: task[name] for name in names})

    async def outcome(self) -> Json:
        """Everything that can be compared. IDs are numbered in the order of the events."""
        left = await left_behind(self.person)
        steps: list[Any] = []
        for task in left["tasks"]:
            found, _ = await self.runner.timeline(self.person, task)
            steps.append(found)
        entries = (await self.person.get("/api/audit", params={"limit": 100})).json()["entries"]
        audit = [[each["actor"], each["action"]] for each in entries]
        found = comparable({**left, "steps": steps, "audit": audit, "answers": self.answers}, {})
        return {"refused": self.refused, **_plain(found)}


def _plain(value: Any) -> Any:
    """Without names that each run has, and without how long something took."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if name not in TIMES}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return NAMES.sub(r"\1", value) if isinstance(value, str) else value


async def limit(program: Person, scopes: tuple[str, ...]) -> None:
    """Gives the key of the program these scopes only."""
    async with program.service.owner() as connection:
        await connection.execute(
            "UPDATE api_keys SET scopes = $3 WHERE account_id = $1 AND secret_hash = $2",
            program.user_id,
            secrets.hash_of(program.token),
            list(scopes),
        )


async def exhaust(person: Person) -> None:
    """Counts as many requests of the account as it may send in a minute."""
    ceilings = Ceilings(all=600, ai=300)
    redis = window.connect(person.service.settings.redis_url.get_secret_value())
    counting = window.Window(redis, processes=1)
    key = f"acct:{person.user_id.hex}"
    await counting.run_script(key, ceilings, ai=False, cost=ceilings.all)
    await counting.aclose()
    await redis.aclose()
    await _answers(person, 429)


async def raise_tier(person: Person) -> None:
    """After it, the account can send requests again."""
    tier = HIGHEST_TIER[person.service.variant]
    async with person.service.owner() as connection:
        await connection.execute(
            "UPDATE accounts SET tier = $2 WHERE id = $1", person.user_id, tier
        )
    await _answers(person, 200)


async def _answers(person: Person, wanted: int) -> None:
    async def status() -> int:
        return (await person.get("/api/me")).status_code

    await until(status, lambda seen: seen == wanted)
