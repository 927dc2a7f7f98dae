"""Tools that an agent can call.

Every kind of external tool implements `ToolSource`. The run handles the built-in tools `delegate`,
`ask_person` and `read_result` itself.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from rota.agents import model as agents
from rota.agents.model import AgentVersion
from rota.platform.canonical import canonical_json, digest
from rota.platform.db import AccountTransaction
from rota.platform.errors import RateLimited
from rota.runs.steps import Step
from rota.tasks import questions, seals


def model_name(server: str | None, name: str) -> str:
    """The name that the model sees. Providers accept only letters, digits, `_` and `-`."""
    return f"{server}__{name}" if server else name


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    server: str | None
    description: str
    arguments_schema: dict[str, Any]
    # As declared by the tool server. A tool not declared read-only counts as writing.
    read_only: bool = False
    # What the tool server says about the tool, and the hash of its definition there.
    title: str | None = None
    annotations: dict[str, Any] | None = None
    server_definition_hash: str | None = None
    # The template of the sentence that describes a call, if the agent's file has none.
    describe: str | None = None
    # Whether the model can request it. A call that was requested earlier can still be made.
    offered: bool = True
    # Why a person has to decide again before a call, if the tool differs from the accepted one.
    changed: str | None = None
    # The ID and the revision of the tool server, and its URL. None for built-in tools.
    server_revision: tuple[str, int] | None = None
    server_url: str | None = None
    # Where its source sends a call. Nothing else decides where a call goes.
    target: Any = field(default=None, compare=False, repr=False)

    @property
    def full_name(self) -> str:
        return f"{self.server}/{self.name}" if self.server else self.name

    @property
    def model_name(self) -> str:
        return model_name(self.server, self.name)

    @property
    def definition_hash(self) -> str:
        """Changes when anything changes that a review shows."""
        reviewed: list[Any] = [
            self.full_name,
            self.description,
            self.arguments_schema,
            self.read_only,
        ]
        # What reviews show since a later version. Tools without it keep their hashes, so a call
        # that waits during an upgrade does not have to be approved again.
        if self.title is not None or self.annotations is not None:
            reviewed += [self.title, self.annotations]
        return digest(canonical_json(reviewed))

    def seal(self, arguments: dict[str, Any]) -> str:
        """A call of this tool as canonical JSON."""
        return seals.call(self.server_revision, self.name, self.definition_hash, arguments)


@dataclass(frozen=True, slots=True)
class ToolResult:
    content: Any
    is_error: bool = False


class ToolUnavailable(Exception):
    """The call did not reach the tool, so it can safely be repeated."""

    retry_after_s = 0


class AccountBusy(ToolUnavailable):
    """The account uses its share of the tools, or of the checks of values against schemas."""

    def __init__(self, refused: RateLimited) -> None:
        super().__init__(refused.message)
        self.retry_after_s = refused.retry_after_s


class ToolChanged(Exception):
    """The tool differs from the accepted one, so it was not called. `now` is the current one."""

    def __init__(self, now: Tool) -> None:
        super().__init__(now.full_name)
        self.now = now


class OutcomeUnknown(Exception):
    """The server responded with an error to a call of a tool that writes, which may have run.

    The message is text of the server, so logs do not get it.
    """

    def __init__(self, message: str) -> None:
        super().__init__()
        self.message = message


class ToolSource(Protocol):
    async def tools(self, account_id: UUID, agent: AgentVersion) -> Sequence[Tool]:
        """The tools that this agent can use in this account."""
        ...

    async def current(
        self, tx: AccountTransaction, agent: AgentVersion, server_id: str, name: str
    ) -> Tool | None:
        """The tool as it is now, read in the transaction that starts its call.

        None if the server or the tool is gone, or if the agent can no longer use it.
        """
        ...

    async def call(
        self,
        account_id: UUID,
        tool: Tool,
        arguments: dict[str, Any],
        key: str,
        before_send: Callable[[], Awaitable[None]],
    ) -> ToolResult:
        """Calls a tool at its target. `key` stays the same when the same call is repeated.

        `before_send` is awaited right before the call leaves, and can still raise.
        """
        ...


ASK_PERSON = Tool(
    name=questions.ASK,
    server=None,
    description="Ask the person who owns the task a question and wait for the answer. Use it when "
    "a decision is theirs to make or information is missing.",
    arguments_schema={
        "type": "object",
        "properties": {"question": {"type": "string", "minLength": 1, "maxLength": 4000}},
        "required": ["question"],
        "additionalProperties": False,
    },
    read_only=True,
    describe="Answer the question {question}",
)

# The arguments with which a person answers a question.
ANSWER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "question": {"type": "string"},
        "answer": {"type": "string", "maxLength": 20_000},
    },
    "additionalProperties": False,
}

DELEGATE = Tool(
    name=agents.DELEGATE,
    server=None,
    description="Give a part of the work to an agent of a lower rank and wait for its result. "
    "The cost is paid from your own budget.",
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
    describe="Give the task {name} to the agent {agent}",
)


READ_RESULT = Tool(
    name="read_result",
    server=None,
    description="Read the result of an earlier tool call again. In a long conversation, older "
    "results are removed. When you read a result, write down what you will need from it. `start` "
    "is the character at which to begin, for a result that is truncated.",
    arguments_schema={
        "type": "object",
        "properties": {
            "step": {"type": "integer", "minimum": 1, "maximum": 100_000},
            "call": {"type": "integer", "minimum": 1, "maximum": 1_000},
            "start": {"type": "integer", "minimum": 0, "maximum": 100_000_000},
        },
        "required": ["step", "call"],
        "additionalProperties": False,
    },
    read_only=True,
    describe="Read the result of call {call} of step {step} again",
)


def built_in(agent: AgentVersion) -> list[Tool]:
    """The tools that the run handles itself."""
    return [ASK_PERSON, READ_RESULT, *([DELEGATE] if agent.can_delegate else [])]


def asks_person(row: Step) -> bool:
    """Whether the call is a question to a person, and not a call of a server's tool."""
    return row.name == ASK_PERSON.name and row.server is None


def needs_approval(agent: AgentVersion, tool: Tool) -> bool:
    if tool is ASK_PERSON:
        return True
    if tool is READ_RESULT:
        # It returns only what this run has already read.
        return False
    return agent.asks_before(tool.full_name, read_only=tool.read_only)


@dataclass(slots=True)
class Toolbox:
    """All tools that an agent can use in an account, by the name that the model sees."""

    sources: Sequence[ToolSource] = field(default_factory=tuple)

    async def open(
        self, account_id: UUID, agent: AgentVersion
    ) -> "dict[str, tuple[Tool, ToolSource | None]]":
        found: dict[str, tuple[Tool, ToolSource | None]] = {
            tool.model_name: (tool, None) for tool in built_in(agent)
        }
        for source in self.sources:
            for tool in await source.tools(account_id, agent):
                found.setdefault(tool.model_name, (tool, source))
        return found

    async def current(
        self, tx: AccountTransaction, agent: AgentVersion, server_id: str, name: str
    ) -> tuple[Tool, ToolSource] | None:
        """The tool of this server as it is now, and its source."""
        for source in self.sources:
            if (tool := await source.current(tx, agent, server_id, name)) is not None:
                return tool, source
        return None
