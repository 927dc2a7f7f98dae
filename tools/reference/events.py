"""Every type of event with its data."""

import re

from rota.events.access import SCOPE_OF
from rota.events.schemas import Event
from tools.reference import markdown
from tools.reference.event_data import DATA, OPTIONAL, Data
from tools.reference.markdown import code

INTRODUCTION = """\
The types of events and the fields of their `data`. [Events](../events.md) describes the journal,
how to read it and how to follow it. `taskId` of an event is set if the event is about a task.
More types and fields will be added: ignore what you do not know."""
NOT_FOR_KEYS = "API keys do not see these events."
_TYPE = re.compile(r"`([a-z]+\.[a-z_]+)`")


def types() -> list[str]:
    """The types that the API names, in its order."""
    return _TYPE.findall(Event.model_fields["type"].description or "")


def pages() -> dict[str, str]:
    families: dict[str, list[str]] = {}
    for kind in types():
        families.setdefault(kind.partition(".")[0], []).append(kind)
    parts = [INTRODUCTION]
    for family, kinds in families.items():
        scope = SCOPE_OF.get(family)
        parts.append(f"## {family}")
        parts.append(f"An API key needs the scope `{scope}`." if scope else NOT_FOR_KEYS)
        for kind in kinds:
            parts += _event(kind)
    return {"events.md": markdown.page("Event types", *parts)}


def _event(kind: str) -> list[str]:
    data = DATA.get(kind, Data("", {}))
    rows = [
        (code(name.removesuffix(OPTIONAL)), meaning)
        if not name.endswith(OPTIONAL)
        else (f"{code(name.removesuffix(OPTIONAL))} (optional)", meaning)
        for name, meaning in data.fields.items()
    ]
    table = markdown.table(("field", "meaning"), rows) if rows else "`data` is empty."
    return [f"### {kind}", data.when, table]
