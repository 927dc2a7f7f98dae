"""The wire shape of a timeline."""

from typing import Any, Literal

from rota.credits.money import exact_usd
from rota.platform import ids
from rota.platform.http.schemas import Timestamp, Wire
from rota.runs.timeline import Entry


class TimelineStep(Wire):
    id: str
    kind: Literal["model", "tool", "approval"]
    run: int | None
    step: int | None
    # The model's name, the tool's, or which gate an approval was for.
    name: str | None
    server: str | None
    state: str
    outcome: str | None
    arguments: Any
    result: Any
    child_task_id: str | None
    input_tokens: int
    output_tokens: int
    cost_usd: str
    price_version: str | None
    started_at: Timestamp
    finished_at: Timestamp | None
    duration_ms: int | None
    decided_by: str | None

    @classmethod
    def of(cls, entry: Entry) -> "TimelineStep":
        took = entry.finished_at - entry.started_at if entry.finished_at else None
        return cls(
            id=entry.id,
            kind=entry.kind,
            run=entry.run,
            step=entry.step,
            name=entry.name,
            server=entry.server,
            state=entry.state,
            outcome=entry.outcome,
            arguments=entry.arguments,
            result=_told(entry),
            child_task_id=ids.to_wire("task", entry.child_task_id) if entry.child_task_id else None,
            input_tokens=entry.input_tokens,
            output_tokens=entry.output_tokens,
            cost_usd=exact_usd(entry.cost_micros),
            price_version=entry.price_version,
            started_at=entry.started_at,
            finished_at=entry.finished_at,
            duration_ms=round(took.total_seconds() * 1000) if took else None,
            decided_by=ids.to_wire("user", entry.decided_by) if entry.decided_by else None,
        )


class TimelineResponse(Wire):
    steps: list[TimelineStep]
    total: int


def _told(entry: Entry) -> Any:
    """A model's answer in plain words: what it said, and which tools it asked for."""
    if entry.kind != "model":
        return entry.result
    parts = entry.result["parts"]
    return {
        "text": "".join(p["content"] for p in parts if p["part_kind"] == "text") or None,
        "toolCalls": [p["tool_name"] for p in parts if p["part_kind"] == "tool-call"],
    }
