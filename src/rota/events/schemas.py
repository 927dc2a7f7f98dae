"""The public schema of an event."""

from typing import Annotated, Any

from rota.events import journal
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import Timestamp, Total, Wire, doc


class Event(Wire):
    """Something that happened in the account. Each `data` line of an event stream is one."""

    id: Annotated[str, doc("The ID of the event, `evt_…`.", examples.EVENT_ID)]
    sequence: Annotated[
        int,
        doc(
            "The number of the event in the account, starting at 1, without gaps except at an "
            "`account.restored`. It is also the `id` line of the stream: send it as Last-Event-ID "
            "to continue.",
            42,
        ),
    ]
    type: Annotated[
        str,
        doc(
            "What happened: `task.created`, `task.started`, `task.waiting_approval`, "
            "`task.approved`, `task.rejected`, `task.completed`, `task.failed`, `task.cancelled`, "
            "`task.retried`, `task.forked`, `task.updated`, `step.started`, `step.finished`, "
            "`credits.topped_up`, `credits.granted`, `credits.depleted`, `credits.low`, "
            "`subscription.updated`, "
            "`schedule.created`, `schedule.updated`, `schedule.deleted`, `schedule.failed`, "
            "`mcp.connected`, `mcp.disconnected`, `mcp.changed`, `key.created`, `key.revoked`, "
            "`company.created`, `company.updated`, `company.seats_exceeded`, `member.added`, "
            "`member.updated`, `member.removed`, `invitation.created`, `invitation.deleted`, "
            "`policy.updated`, `rule.created`, `rule.used`, `rule.revoked`, `webhook.created`, "
            "`webhook.updated`, `webhook.enabled`, `webhook.disabled`, `webhook.deleted`, "
            "`webhook.replayed`, `webhook.secret_rotated`, `webhook.skipped`, "
            "`account.restored`, `session.created` or `session.revoked`. Ignore types that you do "
            "not know.",
            "task.completed",
        ),
    ]
    task_id: Annotated[
        str | None, doc("The task that the event is about. Null if none.", examples.TASK_ID)
    ]
    data: Annotated[
        dict[str, Any],
        doc(
            "More about the event; the fields depend on `type`. Task events have `status`, "
            "`previousStatus` and `by`, the user who caused it. `task.updated` has `fields`, the "
            "names of the changed fields. Step events have `run`, `step`, `call`, `kind` (`model` "
            "or `tool`), `tool` and `server`, and at the end `outcome`.",
            {"status": "COMPLETED", "previousStatus": "RUNNING", "by": None},
        ),
    ]
    created_at: Annotated[Timestamp, doc("When it happened.", examples.FINISHED)]

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


class EventsResponse(Wire):
    """A page of stored events."""

    events: Annotated[list[Event], doc("The events on this page, oldest first.")]
    total: Total
    last_sequence: Annotated[
        int,
        doc(
            "The number of the account's newest event, whether or not you see it. If the page has "
            "all matching events, continue with it as `after`.",
            42,
            ge=0,
        ),
    ]
