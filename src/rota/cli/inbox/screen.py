"""Draws the inbox. Everything that others have written is made safe first."""

from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from rota.cli.inbox.state import Opened, State, View
from rota.cli.reviews import Fields, as_json, item_fields, review_fields
from rota.cli.text import ago, counted, safe, safe_line

if TYPE_CHECKING:
    from rota_sdk.models import ReviewItem

HELP = {
    View.LIST: "↑↓ choose   Enter open   q quit",
    View.REVIEW: "a approve   e edit   r reject   n reject, agent continues   ↑↓ scroll   q back",
    View.CONFIRM: "y approve exactly this   any other key: back",
    View.REASON: "Enter reject   Esc back",
}


def draw(state: State, console: Console) -> RenderableType:
    width, height = console.size
    options = console.options.update(width=width)
    body = _list(state) if state.view is View.LIST else _review(state)
    lines = console.render_lines(body, options, pad=False)
    status = _status(state, width)
    # Beside the body: the title and an empty line, the line about what is below, and the footer.
    room = max(1, height - 4 - len(console.render_lines(status, options)))
    last = max(0, len(lines) - room)
    if state.view is View.LIST:
        # The heading has one line.
        start = max(0, min(state.selected + 2 - room, last))
    else:
        start = state.scroll = min(state.scroll, last)
    shown = Text("\n").join(
        Text.assemble(*[(part.text, part.style or "") for part in line])
        for line in lines[start : start + room]
    )
    below = len(lines) - start - room
    more = (
        f"({counted(below, 'more line')} below)"
        if below > 0 and state.view is not View.LIST
        else ""
    )
    return Group(
        _line(_title(state), "bold"),
        Text(),
        shown,
        _line(more, "bold"),
        status,
        _line(HELP[state.view], "dim"),
    )


def _line(text: str, style: str) -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _title(state: State) -> str:
    if state.opened is not None:
        return safe_line(state.opened.task.name)
    return f"Rota inbox: {state.total} waiting"


def _status(state: State, width: int) -> Text:
    style = "bold yellow"
    if state.view is View.CONFIRM:
        return _line("Approve exactly what is shown?", style)
    if state.view is View.REASON:
        label = "Reason (the agent continues): " if state.resumes else "Reason: "
        text, room = safe_line(state.reason), max(1, width - len(label) - 2)
        # The end is where the person types.
        end = text if len(text) <= room else "…" + text[1 - room :]
        return _line(f"{label}{end}█", style)
    return Text(safe_line(f"{state.message} {state.trouble}"), style=style, overflow="fold")


def _list(state: State) -> RenderableType:
    if not state.approvals:
        return Text("No reviews are waiting. New reviews appear here automatically.")
    table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    for name, share in (("", 0), ("Waits", 0), ("Gate", 0), ("Task", 2), ("What", 3)):
        table.add_column(name, no_wrap=True, overflow="ellipsis", ratio=share or None)
    for place, each in enumerate(state.approvals):
        review, chosen = each.review, place == state.selected
        since = ago(review.requested_at) if review.requested_at else ""
        cells = ("▶" if chosen else " ", since, review.gate or "", each.task.name)
        texts = [Text(safe_line(cell)) for cell in (*cells, review.summary or "")]
        table.add_row(*texts, style="reverse" if chosen else "")
    return table


def _review(state: State) -> RenderableType:
    opened = state.opened
    assert opened is not None
    items = [_item(each, opened) for each in opened.review.items]
    fields = review_fields(opened.review, opened.task)
    if opened.edits:
        # The summary of the review is about the arguments that the person has replaced.
        fields = [field for field in fields if field[0] != "What"]
    return Group(_fields(fields), *items)


def _item(item: "ReviewItem", opened: Opened) -> RenderableType:
    edited = opened.edits.get(item.id)
    summary = item.summary if edited is None else f"{item.summary} (before your edit)"
    parts: list[RenderableType] = [
        Text(),
        Text(safe(summary), style="bold cyan" if edited is None else "dim"),
        _fields(item_fields(item)),
    ]
    if edited is not None:
        parts += [Text("Your version:", style="bold yellow"), Text(safe(_arguments(edited)))]
        parts.append(Text("Instead of:", style="dim"))
    if item.arguments is not None:
        style = "" if edited is None else "dim"
        parts.append(Text(safe(_arguments(item.arguments)), style=style))
    return Group(*parts)


def _fields(fields: Fields) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields:
        if value is not None and value != "":
            style = "red" if name == "Warning" else ""
            table.add_row(Text(safe_line(name)), Text(safe(str(value)), style=style))
    return table


def _arguments(value: object) -> str:
    # A text of several lines is easier to read as such.
    if isinstance(value, dict) and len(value) == 1:
        [(name, text)] = value.items()
        if isinstance(text, str) and "\n" in text:
            return f"{name}:\n{text}"
    return as_json(value)
