"""What a decision is about, as canonical JSON. Its SHA-256 is the digest of the review.

A review stores this text when its gate opens, and a decision names its digest. So a person decides
about what was shown, or about nothing.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from rota.agents.model import AgentVersion
from rota.platform import ids
from rota.platform.canonical import canonical_json
from rota.tasks.model import ReviewItem, Task
from rota.tasks.states import Gate


def review(
    account_id: UUID, task: Task, number: int, gate: Gate | None, subject: Mapping[str, Any]
) -> str:
    """The text of a review. Its nonce makes it unique, so no digest can be computed in advance."""
    return canonical_json(
        {
            "account": ids.to_wire("acct", account_id),
            "task": ids.to_wire("task", task.id),
            "run": task.run,
            "number": number,
            "gate": gate,
            "nonce": uuid4().hex,
            **subject,
        }
    )


def call(
    server: tuple[str, int] | None, tool: str, definition_hash: str, arguments: Mapping[str, Any]
) -> str:
    """The text of a tool call. `server` is the ID and the revision of the tool server."""
    return canonical_json(
        {
            "server": {"id": server[0], "revision": server[1]} if server else None,
            "tool": tool,
            "definitionHash": definition_hash,
            "arguments": arguments,
        }
    )


def with_arguments(sealed: str, arguments: Mapping[str, Any]) -> str:
    """The text of the same call with other arguments."""
    return canonical_json(json.loads(sealed) | {"arguments": arguments})


def run(task: Task, agent: AgentVersion, start_at: str) -> dict[str, Any]:
    """The subject of a run gate: what will run, and from where."""
    budget_cents = task.budget_cents
    work: dict[str, Any] = {
        "name": task.name,
        "description": task.description,
        "input": task.input,
        "agent": agent.name,
        "version": agent.version,
        "model": agent.model,
        "budgetCents": agent.budget_cents if budget_cents is None else budget_cents,
    }
    # Absent without a schema, as in the texts of earlier versions.
    if task.output_schema is not None:
        work["outputSchema"] = task.output_schema
    if task.forked_from is not None:
        work["forkedFrom"] = origin(task)
    return {"from": start_at, "work": work}


def origin(task: Task) -> dict[str, Any]:
    """Where a fork continues from."""
    assert task.forked_from is not None
    return {
        "taskId": ids.to_wire("task", task.forked_from),
        "run": task.forked_run,
        "step": task.forked_step,
    }


def items(items: Sequence[ReviewItem]) -> dict[str, Any]:
    """The subject of a tool gate or an output gate: the calls to make, or the output."""
    return {"items": [{"id": item["id"], **json.loads(text_of(item))} for item in items]}


def text_of(item: ReviewItem) -> str:
    """The text of an item as it is now. Items of earlier versions have none."""
    sealed = item["sealed"]
    assert sealed is not None
    return sealed


def item(review_sealed: str, item_id: str) -> str:
    """The text of an item as it was when its review was opened."""
    opened = next(each for each in json.loads(review_sealed)["items"] if each["id"] == item_id)
    return canonical_json({name: value for name, value in opened.items() if name != "id"})


def output(arguments: Mapping[str, Any]) -> str:
    """The text of an output that waits for approval: `{"output": …}`, or structured data."""
    return canonical_json({"arguments": arguments})


def arguments_of(sealed: str) -> dict[str, Any]:
    """The arguments of the call, or the output, with this text."""
    arguments: dict[str, Any] = json.loads(sealed)["arguments"]
    return arguments


def output_of(sealed: str) -> str:
    """The structured output that was approved with this text, as JSON."""
    return canonical_json(arguments_of(sealed))


def external(task: Task) -> dict[str, Any]:
    """The subject of a review of a task that a client runs: its texts."""
    texts = ("name", "description", "input", "output")
    return {"texts": {name: getattr(task, name) for name in texts}}


def is_same_work(sealed: str, task: Task, agent: AgentVersion) -> bool:
    """Whether the run that was approved with this text is the one that would start now."""
    return bool(json.loads(sealed).get("work") == run(task, agent, "start")["work"])


def has_same_texts(sealed: str, task: Task) -> bool:
    """Whether the task still has the texts that were approved with this text."""
    work = json.loads(sealed).get("work") or {}
    return all(work.get(name) == getattr(task, name) for name in ("name", "description", "input"))


def start_of(sealed: str) -> str:
    """Where an approved run starts."""
    return str(json.loads(sealed).get("from", "start"))
