"""What a review shows: every part that its digest covers, in `rota inbox` and `rota tasks review`.

A decision is about the digest, so a part that is not listed here would be approved unseen.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rota.cli.text import moment

if TYPE_CHECKING:
    from rota_sdk.models import Review, ReviewedWork, ReviewItem, Task

Fields = list[tuple[str, object]]


def review_fields(review: "Review", task: "Task") -> Fields:
    """The review as a whole. `task` must be read after the review.

    The review of a task that a client runs is about the task's texts. If they changed after the
    review was read, the digest is the older one and decides nothing.
    """
    return [
        ("Gate", review.gate),
        ("What", review.summary),
        ("Asked", moment(review.requested_at)),
        ("Expires", moment(review.expires_at)),
        *(_work(review.work) if review.work else _task(task, has_items=bool(review.items))),
        ("Review", review.number),
        ("Digest", review.digest),
    ]


def _work(work: "ReviewedWork") -> Iterator[tuple[str, object]]:
    yield "Task", work.name
    yield "Agent", work.agent
    yield "Version", work.version
    yield "Model", work.model
    yield "Budget", f"{work.budget_cents} cents"
    if (origin := work.forked_from) is not None:
        yield "Continues", f"{origin.task_id}, run {origin.run}, step {origin.step}"
    yield "Description", work.description
    yield "Input", work.input
    if work.output_schema is not None:
        yield "Output schema", as_json(work.output_schema)
    yield from _unknown(work.model_extra)


def _task(task: "Task", *, has_items: bool) -> Iterator[tuple[str, object]]:
    yield "Task", task.name
    yield "Agent", task.assigned_agent
    if not has_items:
        yield "Description", task.description
        yield "Input", task.input
        yield "Output", task.output


def item_fields(item: "ReviewItem") -> Fields:
    """A call or an output without its arguments."""
    fields: Fields = [("Item", item.id), ("Decided", item.decision), ("Why", item.reason)]
    if item.tool:
        fields.append(("Tool", f"{item.server or 'rota'}/{item.tool}"))
    fields.append(("Title", item.tool_title))
    if item.server_id:
        server = f"{item.server_id}, revision {item.server_revision}"
        fields.append(("Server", f"{item.server_url} ({server})" if item.server_url else server))
    fields.append(("Tool description", item.tool_description))
    if item.annotations is not None:
        fields.append(("Annotations", as_json(item.annotations)))
    if item.definition_hash:
        fields.append(("Definition", item.definition_hash))
    if item.definition_accepted is False:
        fields.append(("Warning", "The tool's definition has changed and is not accepted."))
    fields.append(("Agent says", item.agent_says))
    return fields + list(_unknown(item.model_extra))


def _unknown(extra: dict[str, Any] | None) -> Iterator[tuple[str, object]]:
    """What a newer service has sent, under the names of the API."""
    for name, value in (extra or {}).items():
        yield name, None if value is None else as_json(value)


def as_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
