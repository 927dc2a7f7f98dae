"""The wire shape of an event."""

from typing import Any

from rota.events import journal
from rota.platform import ids
from rota.platform.http.schemas import Timestamp, Wire


class Event(Wire):
    id: str
    sequence: int
    type: str
    task_id: str | None
    data: dict[str, Any]
    created_at: Timestamp

    @classmethod
    def of(cls, event: journal.Event) -> "Event":
        return cls(
            id=ids.to_wire("evt", event.id),
            sequence=event.sequence,
            type=event.type,
            task_id=ids.to_wire("task", event.task_id) if event.task_id else None,
            data=event.data,
            created_at=event.created_at,
        )
