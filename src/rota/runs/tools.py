"""Tools an agent can call, wherever they come from.

`ToolSource` is the one interface that a kind of tools fills. The built-in ones
(`delegate`, `ask_person`) are not here: the loop itself carries them out.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

import orjson

from rota.agents.model import AgentVersion


def model_name(server: str | None, name: str) -> str:
    """The name a model sees; providers take letters, digits, `_` and `-` only."""
    return f"{server}__{name}" if server else name


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    server: str | None
    description: str
    arguments_schema: dict[str, Any]
    # A hint of the server's. What is not known to be read-only counts as writing.
    read_only: bool = False
    # Whether models are told of it. A call that was asked for before can still be made.
    offered: bool = True
    # Why a person has to look at it again before it is called: it is not what was accepted.
    changed: str | None = None

    @property
    def full_name(self) -> str:
        return f"{self.server}/{self.name}" if self.server else self.name

    @property
    def model_name(self) -> str:
        return model_name(self.server, self.name)

    @property
    def definition_hash(self) -> str:
        """Changes when anything does that a person saw when deciding."""
        shown = (self.full_name, self.description, self.arguments_schema, self.read_only)
        return hashlib.sha256(orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)).hexdigest()


@dataclass(frozen=True, slots=True)
class ToolResult:
    content: Any
    is_error: bool = False


class ToolUnavailable(Exception):
    """The call did not reach the tool, so it can safely be tried again."""


class ToolChanged(Exception):
    """The tool is not the one that was accepted, so it was not called. Carries what it is now."""

    def __init__(self, now: Tool) -> None:
        super().__init__(now.full_name)
        self.now = now


class ToolSource(Protocol):
    async def tools(self, account_id: UUID, agent: AgentVersion) -> Sequence[Tool]:
        """What this agent may use in this account."""
        ...

    async def call(
        self, account_id: UUID, tool: Tool, arguments: dict[str, Any], key: str
    ) -> ToolResult:
        """Calls a tool. `key` is the same whenever the same call is made again."""
        ...


ASK_PERSON = Tool(
    name="ask_person",
    server=None,
    description="Ask the person in charge a question, and wait for the answer. Use it when a "
    "decision is theirs to make or something you need is missing.",
    arguments_schema={
        "type": "object",
        "properties": {"question": {"type": "string", "minLength": 1, "maxLength": 4000}},
        "required": ["question"],
        "additionalProperties": False,
    },
    read_only=True,
)

# What a person may send along with approving a question.
ANSWER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "question": {"type": "string"},
        "answer": {"type": "string", "maxLength": 20_000},
    },
    "additionalProperties": False,
}

DELEGATE = Tool(
    name="delegate",
    server=None,
    description="Hand a part of the work to an agent of a lower rank and wait for its result. "
    "The cost comes out of your own budget.",
    arguments_schema={
        "type": "object",
        "properties": {
            "agent": {"type": "string", "minLength": 1, "maxLength": 64},
            "name": {"type": "string", "minLength": 1, "maxLength": 200},
            "input": {"type": "string", "minLength": 1, "maxLength": 50_000},
        },
        "required": ["agent", "name", "input"],
        "additionalProperties": False,
    },
    read_only=True,
)


@dataclass(slots=True)
class Toolbox:
    """Everything one agent may use in one account, by the name its model calls it."""

    sources: Sequence[ToolSource] = field(default_factory=tuple)

    async def open(
        self, account_id: UUID, agent: AgentVersion
    ) -> "dict[str, tuple[Tool, ToolSource | None]]":
        found: dict[str, tuple[Tool, ToolSource | None]] = {
            ASK_PERSON.model_name: (ASK_PERSON, None)
        }
        if agent.rank < 3:
            found[DELEGATE.model_name] = (DELEGATE, None)
        for source in self.sources:
            for tool in await source.tools(account_id, agent):
                found.setdefault(tool.model_name, (tool, source))
        return found
