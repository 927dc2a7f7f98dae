"""The finished tasks of the demonstration's month: who did what, and how it ended."""

from dataclasses import dataclass

_UNAVAILABLE = ("MODEL_UNAVAILABLE", "The model provider did not answer. Retry the task.")
_TOOL_DOWN = (
    "TOOL_UNAVAILABLE",
    "The tool server accounting did not answer. Check it, then retry the task.",
)


@dataclass(frozen=True, slots=True)
class Plan:
    agent: str
    name: str
    input: str
    project: str | None = None
    # The step at which it fails, and how.
    fails_at: int | None = None
    failure: tuple[str, str] = _UNAVAILABLE
    # Why a person rejects it at its first gate.
    rejected: str | None = None


def _reply(ticket: str, name: str, **more: object) -> Plan:
    text = f"Reply to ticket {ticket}."
    return Plan("ticket-responder", name, text, "support", **more)  # type: ignore[arg-type]


def _pay(name: str, **more: object) -> Plan:
    text = "Prepare the payment batch for the bills that are due."
    return Plan("payables-clerk", name, text, "finance", **more)  # type: ignore[arg-type]


def _write(agent: str, name: str, text: str, **more: object) -> Plan:
    return Plan(agent, name, text, "marketing", **more)  # type: ignore[arg-type]


_WEEK = (
    _reply("T-4821", "Answer Mina about the password"),
    _reply("T-4822", "Answer Jonas about his invoice"),
    _write("social-media-writer", "Post about the new label printers", "Write a short post."),
    Plan("meeting-scribe", "Minutes of the Monday meeting", "Summarise the meeting.", "office"),
    _pay("Weekly payments"),
    _reply("T-4823", "Answer Aiko about the missing boxes"),
    Plan("feedback-analyst", "What customers ask most", "Find the main topics.", "support"),
    _reply("T-4824", "Answer Luis about his colleague"),
    Plan("process-writer", "Receiving goods", "Write the steps for receiving goods.", "office"),
    _write("blog-writer", "Five ways to pack fragile goods", "Write an outline and a first draft."),
    _reply("T-4825", "Answer Ruth about the damaged printer"),
    _write("content-lead", "Plan the spring guide", "Plan the spring guide for customers."),
)

PLANS = (
    *_WEEK,
    _reply("T-4821", "Second answer to Mina", rejected="She has been helped on the phone."),
    _pay("Payments before the holiday", fails_at=2, failure=_TOOL_DOWN),
    *_WEEK,
    _write("seo-analyst", "Pages that lost visitors", "Compare with last month.", fails_at=1),
    _pay("Payments of the second week", rejected="Castle Energy is disputed. Wait."),
    *_WEEK[:8],
    _reply("T-4823", "Follow up with Aiko", fails_at=3),
    *_WEEK[2:],
)
