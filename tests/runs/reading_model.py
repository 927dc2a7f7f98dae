"""A model that reads a long text part by part, and knows only what its requests contain.

A task selects it with `reader:ID`. It looks up one part after the other, writes down each fact
that it reads, and answers with all the facts that it finds in its last request. It reads the
appendix again before it answers. A request that does not fit into its window is refused, as
OpenAI does.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from rota.runs import token_estimate

READER = re.compile(r"reader:([\w-]+)")
FACT = re.compile(r"FACT-\d+-[0-9a-f]{8}")
# How the request for a summary names a call, and how a removed result says where it is.
_SUMMARIZED = re.compile(
    r"## Step (\d+), call (\d+): lookup\n\n.*\n\n(?:Result: |\[)[^#]{0,400}?APPENDIX"
)
_NOTED = re.compile(r"The appendix is at step (\d+), call (\d+)\.")


@dataclass
class Reader:
    parts: int
    window: int
    # What it saw of its requests.
    calls: list[dict[str, Any]] = field(default_factory=list)
    # The summaries that fail or wait, by number.
    hold_summary: int | None = None
    empty_summaries: int = 0
    cut_summaries: int = 0

    def says(self, body: dict[str, Any]) -> dict[str, Any]:
        messages, tools = body["messages"], body.get("tools", [])
        text = "\n".join(map(_text, messages))
        tokens = token_estimate.count(json.dumps([messages, tools], ensure_ascii=False))
        longest = int(body.get("max_completion_tokens") or body["max_tokens"])
        call = {"tokens": tokens, "maxTokens": longest, "summary": not tools, "refused": False}
        self.calls.append(call)
        if tokens + longest > self.window:
            call["refused"] = True
            code = {"code": "context_length_exceeded", "message": "Too long.", "type": "invalid"}
            return {"status": 400, "error": code}
        usage = {"inputTokens": tokens, "outputTokens": 50}
        if not tools:
            return {**usage, **self._summary(text)}
        return {**usage, **self._next(messages, text)}

    def _summary(self, text: str) -> dict[str, Any]:
        number = sum(call["summary"] for call in self.calls)
        if number <= self.empty_summaries:
            return {"text": " "}
        if number <= self.cut_summaries:
            return {"text": "Facts: FACT", "finishReason": "length"}
        lines = ["Facts: " + ", ".join(sorted(set(FACT.findall(text))))]
        found = _SUMMARIZED.search(text) or _NOTED.search(text)
        if found:
            lines.append(f"The appendix is at step {found[1]}, call {found[2]}.")
        held = {"hold": True} if number == self.hold_summary else {}
        return {"text": "\n".join(lines), **held}

    def _next(self, messages: list[dict[str, Any]], text: str) -> dict[str, Any]:
        made = [call for each in messages for call in each.get("tool_calls") or []]
        last = made[-1]["function"] if made else None
        number = (
            int(json.loads(last["arguments"])["ref"].split("-")[-1])
            if (last and last["name"] == "desk__lookup")
            else 0
        )
        if last and last["name"] == "read_result":
            return {"text": " ".join(sorted(set(FACT.findall(text))))}
        # Only what the newest result says, except for the appendix, which it reads again later.
        newest = _text(messages[-1]) if made else ""
        facts = [] if newest.startswith("APPENDIX") else FACT.findall(newest)
        noted = {"text": f"I note {' and '.join(facts)}."} if facts else {}
        arguments: dict[str, Any]
        if number < self.parts:
            prefix = READER.search(text)
            assert prefix is not None
            arguments = {"ref": f"{prefix[1]}-{number + 1}"}
            name = "desk__lookup"
        else:
            place = _NOTED.search(text)
            arguments = {"step": int(place[1]), "call": int(place[2])} if place else {}
            name = "read_result"
        # The number keeps the IDs of calls unique: turns are not counted in a short conversation.
        call = {"name": name, "arguments": arguments, "id": f"call-{number + 1}"}
        return {"toolCalls": [call], **noted}


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(p.get("text", "") for p in content)
