"""How the demonstration model chooses its next step. The same conversation has the same next step.

It reads with the tools that read, then calls one tool that writes, then answers. It can delegate to
an agent that the task names, and ask a person if the task says so.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rota.dev.demo import answers
from rota.dev.demo.arguments import correct, fill
from rota.dev.demo.conversation import Call, Conversation, Tool
from rota.dev.demo.structured import example

# The most calls that it reads with before it writes or answers.
MAX_READS = 5
# After this many rejections of its calls, it ends without the call.
MAX_REJECTIONS = 2
_DETAIL = ("get", "read", "fetch")
_DELEGATE = re.compile(
    r"[^.\n]*\bdelegate\b[^.\n]*?\bto (?:the )?`?([a-z]+(?:-[a-z]+)+)`?\.?", re.I
)
_ASK = re.compile(r"\bask me\b[^.?\n]*", re.I)


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model says, and the calls that it requests, as (name, arguments)."""

    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


def next_turn(conversation: Conversation) -> Turn:
    if conversation.note is None:
        for choose in (_read, _ask, _delegate, _write):
            if (turn := choose(conversation)) is not None:
                return turn
    if conversation.output_schema is not None:
        return Turn(json.dumps(example(conversation.output_schema, conversation.facts)))
    return Turn(answers.final(conversation))


def _read(conversation: Conversation) -> Turn | None:
    if any(not Tool(call.name, "", {}).reads for call in conversation.calls):
        return None
    read = {call.name.partition("__")[0] for call in conversation.calls}
    chosen: dict[str | None, tuple[Tool, dict[str, Any]]] = {}
    readers = [tool for tool in conversation.tools if tool.reads and not conversation.made(tool)]
    for tool in sorted(readers, key=lambda each: _preference(each, conversation)):
        is_detail = tool.name.startswith(_DETAIL)
        # A search where a detail is known already, or where one was made, finds nothing new.
        if tool.server in chosen or (not is_detail and tool.server in read):
            continue
        # What the task names comes first: a search can then use its words.
        if not is_detail and not conversation.calls and chosen:
            continue
        arguments = fill(tool, conversation.facts, "")
        if arguments is not None:
            chosen[tool.server] = (tool, arguments)
    picked = list(chosen.values())[: MAX_READS - len(conversation.calls)]
    if not picked:
        return None
    text = answers.before_reading(conversation, [tool for tool, _ in picked])
    return Turn(text, tuple((tool.full_name, arguments) for tool, arguments in picked))


def _preference(tool: Tool, conversation: Conversation) -> tuple[bool, int]:
    """Details of a thing that the task names come first, then what the task's words fit best."""
    return not tool.name.startswith(_DETAIL), -_shared_words(tool, conversation)


def _ask(conversation: Conversation) -> Turn | None:
    asks = _ASK.search(conversation.task)
    offered = _named(conversation, "ask_person")
    if asks is None or offered is None or conversation.made(offered):
        return None
    question = f"Your task says “{asks.group().strip()}”. What should I do?"
    return Turn("I need your decision first.", (("ask_person", {"question": question}),))


def _delegate(conversation: Conversation) -> Turn | None:
    named = _DELEGATE.search(conversation.task)
    offered = _named(conversation, "delegate")
    if named is None or offered is None or conversation.made(offered):
        return None
    rest = _DELEGATE.sub("", conversation.task)
    rest = re.sub(r"^#.*\n*", "", rest).strip() or conversation.title
    arguments = {"agent": named.group(1).lower(), "name": rest[:80].rstrip(), "input": rest}
    return Turn(
        f"I delegate this part to `{arguments['agent']}` and wait for the result.",
        (("delegate", arguments),),
    )


def _write(conversation: Conversation) -> Turn | None:
    if any(call.name == "delegate" for call in conversation.calls):
        return None
    earlier = [call for call in conversation.calls if _is_write(call)]
    if earlier:
        return _write_again(conversation, earlier)
    writers = [tool for tool in conversation.tools if tool.writes]
    message = answers.message(conversation)
    for tool in sorted(writers, key=lambda each: -_shared_words(each, conversation)):
        arguments = fill(tool, conversation.facts, message)
        if arguments is not None:
            text = answers.before_writing(tool, answers.sources(conversation))
            return Turn(text, ((tool.full_name, arguments),))
    return None


def _write_again(conversation: Conversation, earlier: Sequence[Call]) -> Turn | None:
    """A corrected call, if a person rejected the last one with a reason."""
    last = earlier[-1]
    rejected = [call for call in earlier if call.rejection is not None]
    tool = _named(conversation, last.name)
    if tool is None or not last.rejection or len(rejected) >= MAX_REJECTIONS:
        return None
    arguments, changed = correct(tool, last.arguments, last.rejection)
    text = answers.after_rejection(tool, last.rejection, changed)
    return Turn(text, ((tool.full_name, arguments),))


def _is_write(call: Call) -> bool:
    return Tool(call.name, "", {}).writes


def _named(conversation: Conversation, full_name: str) -> Tool | None:
    return next((tool for tool in conversation.tools if tool.full_name == full_name), None)


def _shared_words(tool: Tool, conversation: Conversation) -> int:
    """How many words of the tool's name the task has, in any of their forms."""
    task = conversation.task.lower()
    return sum(word[:4] in task for word in tool.name.split("_") if len(word) > 2)
