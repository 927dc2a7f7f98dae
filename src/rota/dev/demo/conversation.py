"""What the demonstration model reads: a conversation in the format of OpenAI's chat completions."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

# How the first word of a tool's name shows that it only reads. The model is not told more.
READING = ("get", "list", "search", "read", "find", "query", "report", "fetch", "lookup", "show")
_REJECTED = re.compile(
    r"A person rejected this (?:call|answer)\.(?: Reason: (?P<reason>.*))?", re.S
)
_EDITED = re.compile(r"\n\n\[A person changed this call before approving it: (.*)\.\]\Z", re.S)
_FAILED = (
    "The arguments do not match",
    "The server rejected the call",
    "The server no longer has",
    "The tool no longer exists",
    "Tool not found",
    "The subtask did not complete",
    "This call was not made:",
    "This call was started and may have taken effect.",
    "Rota did not get the result of this call",
    "The service was upgraded",
    "No person",
)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that is offered. `server` is None for the built-in ones."""

    full_name: str
    description: str
    schema: Mapping[str, Any]

    @property
    def server(self) -> str | None:
        head, separator, _ = self.full_name.partition("__")
        return head if separator else None

    @property
    def name(self) -> str:
        return self.full_name.rpartition("__")[2]

    @property
    def reads(self) -> bool:
        return self.server is not None and self.name.split("_")[0] in READING

    @property
    def writes(self) -> bool:
        return self.server is not None and not self.reads


@dataclass(frozen=True, slots=True)
class Call:
    """A call that the model requested earlier, and its result."""

    name: str
    arguments: dict[str, Any]
    result: str

    @property
    def rejection(self) -> str | None:
        """The reason why a person rejected it, which can be empty. None if nobody did."""
        found = _REJECTED.match(self.result)
        return (found["reason"] or "").strip() if found else None

    @property
    def failed(self) -> bool:
        return self.result.startswith(_FAILED)

    @property
    def edited(self) -> list[str]:
        """The arguments that a person changed."""
        found = _EDITED.search(self.result)
        return found[1].split(", ") if found else []

    @property
    def answer(self) -> str:
        """What the tool returned."""
        return _EDITED.sub("", self.result)


@dataclass(frozen=True, slots=True)
class Conversation:
    instructions: str
    task: str
    tools: tuple[Tool, ...]
    calls: tuple[Call, ...]
    # What the last answer was, and the message that came after it, if there was one.
    note: str | None
    facts: "Facts" = field(compare=False)
    # What the final answer must match, if it is JSON.
    output_schema: Mapping[str, Any] | None = None

    @property
    def title(self) -> str:
        return self.task.splitlines()[0].lstrip("# ").strip() if self.task else "The task"

    @property
    def answer_rejection(self) -> str | None:
        found = _REJECTED.match(self.note or "")
        return (found["reason"] or "").strip() if found else None

    def made(self, tool: Tool) -> list[Call]:
        return [call for call in self.calls if call.name == tool.full_name]


class Facts:
    """The values that the model can use: those in the task, and those in results of tools."""

    def __init__(self, task: str, results: list[str]) -> None:
        self.task = task
        self.documents = [_parsed(text) for text in results]

    def of_key(self, key: str) -> Iterator[Any]:
        """The values under this key in all results, the newest result first."""
        wanted = _plain(key)
        for document in reversed(self.documents):
            for found in _objects(document):
                yield from (value for name, value in found.items() if _plain(name) == wanted)

    def lists(self) -> Iterator[list[dict[str, Any]]]:
        """The lists of objects in all results, the newest result first."""
        for document in reversed(self.documents):
            yield from _lists(document)

    def matching(self, pattern: str) -> str | None:
        """The first text that matches the pattern of a schema: in the task, then in results."""
        inner = pattern.removeprefix("^").removesuffix("$")
        texts = [self.task, *(json.dumps(each) for each in reversed(self.documents))]
        for text in texts:
            try:
                found = re.search(rf"(?<![\w-])(?:{inner})(?![\w-])", text)
            except re.error:
                return None
            if found:
                return found.group()
        return None


def read(body: Mapping[str, Any]) -> Conversation:
    """The conversation in the body of a request."""
    messages = body.get("messages") or []
    system = "\n".join(text_of(m) for m in messages if m.get("role") in ("system", "developer"))
    said = [text_of(m) for m in messages if m.get("role") == "user"]
    results = {m["tool_call_id"]: text_of(m) for m in messages if m.get("role") == "tool"}
    calls = tuple(
        Call(
            call["function"]["name"],
            _arguments(call["function"].get("arguments")),
            results.get(call["id"], ""),
        )
        for message in messages
        if message.get("role") == "assistant"
        for call in message.get("tool_calls") or ()
    )
    tools = tuple(
        Tool(
            tool["function"]["name"],
            tool["function"].get("description") or "",
            tool["function"].get("parameters") or {},
        )
        for tool in body.get("tools") or ()
        if tool.get("type") == "function"
    )
    task = said[0] if said else ""
    note = said[-1] if len(said) > 1 and messages[-1].get("role") == "user" else None
    good = [c.answer for c in calls if c.rejection is None and not c.failed]
    wanted = (body.get("response_format") or {}).get("json_schema") or {}
    return Conversation(
        system, task, tools, calls, note, Facts(task, good), output_schema=wanted.get("schema")
    )


def text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content if isinstance(part, dict))


def _arguments(text: Any) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _plain(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects(inner)


def _lists(value: Any) -> Iterator[list[dict[str, Any]]]:
    if isinstance(value, list):
        if value and all(isinstance(item, dict) for item in value):
            yield value
        for inner in value:
            yield from _lists(inner)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _lists(inner)
