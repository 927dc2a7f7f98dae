"""What the demonstration model writes: remarks beside its calls, messages, and its answers."""

import re
from typing import Any

from rota.dev.demo.conversation import Call, Conversation, Tool

SIGNATURE = (
    "_Written by the demonstration model of `rota dev`: a script with rules, not a language model. "
    "Use a real one with `rota dev --model openai`, `anthropic` or `ollama`._"
)
MAX_QUOTE = 240


def before_reading(conversation: Conversation, tools: list[Tool]) -> str:
    plan = "" if conversation.calls else "Plan: read what is known, do the work, report. "
    return f"{plan}I’ll look it up with {' and '.join(shown(tool.full_name) for tool in tools)}."


def before_writing(tool: Tool, sources: list[str]) -> str:
    based = f", based on {', '.join(sources)}" if sources else ""
    return (
        f"I’d like to call {shown(tool.full_name)}{based}. Please check the arguments. "
        "(I am the demonstration model.)"
    )


def after_rejection(tool: Tool, reason: str, changed: list[str]) -> str:
    fields = f" I changed {', '.join(changed)}." if changed else ""
    return (
        f"You rejected the call and wrote: “{_quoted(reason)}”.{fields} "
        f"I’d like to call {shown(tool.full_name)} again. (I am the demonstration model.)"
    )


def message(conversation: Conversation) -> str:
    """A text for a person outside, from what the tools returned."""
    facts = conversation.facts
    customer = next((v for v in facts.of_key("customer") if isinstance(v, dict)), {})
    first_name = str(customer.get("name", "")).split(" ")[0]
    answer = next((v for v in facts.of_key("answer") if isinstance(v, str)), None)
    steps = next((v for v in facts.of_key("steps") if isinstance(v, list)), [])
    subject = next((v for v in facts.of_key("subject") if isinstance(v, str)), conversation.title)
    paragraphs = [f"Hello {first_name}," if first_name else "Hello,"]
    paragraphs.append(
        answer or f"We have read your message about “{subject}” and are looking into it."
    )
    if steps:
        paragraphs.append("\n".join(f"{n}. {step}" for n, step in enumerate(steps, 1)))
    paragraphs.append("Kind regards\nFernhill Supply")
    return "\n\n".join(paragraphs)


def sources(conversation: Conversation) -> list[str]:
    """The things that the model read, by their IDs."""
    found = [
        value
        for key in ("ticketId", "articleId")
        for value in conversation.facts.of_key(key)
        if isinstance(value, str)
    ]
    return list(dict.fromkeys(found))[:4]


def final(conversation: Conversation) -> str:
    """The answer that ends the task."""
    parts = [f"## {conversation.title}"]
    if (reason := conversation.answer_rejection) is not None:
        wish = f": “{_quoted(reason)}”" if reason else ""
        parts.append(f"**Changed after your decision{wish}.**")
    parts += _with_tools(conversation) if conversation.calls else _without_tools(conversation)
    return "\n\n".join([*parts, "---", SIGNATURE])


def _with_tools(conversation: Conversation) -> list[str]:
    rows = ["| step | tool | result |", "|---|---|---|"]
    rows += [
        f"| {number} | {shown(call.name)} | {_outcome(call)} |"
        for number, call in enumerate(conversation.calls, 1)
    ]
    parts = [_headline(conversation.calls), "\n".join(rows)]
    written = [c for c in conversation.calls if not _reads(c.name) and _worked(c)]
    if written:
        parts.append("**What I sent**\n\n" + "\n".join(_fields(written[-1])))
    if found := sources(conversation):
        parts.append(f"**Sources:** {', '.join(found)}")
    return parts


def _headline(calls: tuple[Call, ...]) -> str:
    last = calls[-1]
    if last.rejection is not None:
        reason = f" You wrote: “{_quoted(last.rejection)}”." if last.rejection else ""
        return f"I did not call {shown(last.name)}, because you rejected it.{reason}"
    if last.failed:
        return f"{shown(last.name)} failed, so the work is not complete: {_quoted(last.answer)}"
    if _reads(last.name):
        return "This is what I found. I changed nothing."
    return f"Done. {shown(last.name)} confirmed the last step."


def _without_tools(conversation: Conversation) -> list[str]:
    work = re.sub(r"^#.*\n*", "", conversation.task).strip() or conversation.title
    wishes = [s.strip() for s in re.split(r"(?<=[.!?])\s+|\n+", work) if s.strip()][:5]
    steps = [f"{n}. **{_quoted(wish)}**" for n, wish in enumerate(wishes, 1)]
    return [
        "**The work, one part at a time**\n\n" + "\n".join(steps),
        "**What a good answer needs**\n\n- The facts, each with its source\n"
        "- What has to be ready, and when\n- Who has to agree before it is used",
        "**Tools:** none of this agent's tool servers is connected, so I changed nothing.",
    ]


def _outcome(call: Call) -> str:
    if call.rejection is not None:
        return "rejected"
    return "failed" if call.failed else "ok"


def _worked(call: Call) -> bool:
    return call.rejection is None and not call.failed


def _fields(call: Call) -> list[str]:
    lines = []
    for name, value in call.arguments.items():
        edited = " (edited by you)" if name in call.edited else ""
        lines.append(f"- `{name}`: {_quoted(_flat(value))}{edited}")
    return lines


def _flat(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_flat(item) for item in value)
    if isinstance(value, dict):
        return " ".join(_flat(item) for item in value.values())
    return str(value)


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_QUOTE else line[: MAX_QUOTE - 1] + "…"


def _reads(full_name: str) -> bool:
    return Tool(full_name, "", {}).reads


def shown(full_name: str) -> str:
    return f"`{full_name.replace('__', '/', 1)}`"
