"""Draws the inbox. Everything that others have written is made safe first."""

import json
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from rota.cli.inbox.state import Opened, State, View
from rota.cli.text import ago, moment, safe, safe_line

if TYPE_CHECKING:
    from rota_sdk.models import ReviewItem

HELP = {
    View.LIST: "↑↓ choose   Enter open   q quit",
    View.REVIEW: "a approve   e edit   r reject   n reject, agent goes on   ↑↓ scroll   q back",
    View.CONFIRM: "y approve exactly this   any other key: back",
    View.REASON: "Enter reject   Esc back",
}


def draw(state: State, console: Console) -> RenderableType:
    width, height = console.size
    body = _list(state) if state.view is View.LIST else _review(state)
    lines = console.render_lines(body, console.options.update(width=width), pad=False)
    room = max(1, height - 4)
    last = max(0, len(lines) - room)
    if state.view is View.LIST:
        # The heading has one line.
        start = max(0, min(state.selected + 2 - room, last))
    else:
        start = state.scroll = min(state.scroll, last)
    shown = Text("\n").join(
        Text.assemble(*((part.text, part.style or "") for part in line))
        for line in lines[start : start + room]
    )
    below = len(lines) - start - room
    more = f"  ({below} more lines below)" if below > 0 and state.view is not View.LIST else ""
    title = Text(_title(state), style="bold", no_wrap=True, overflow="ellipsis")
    return Group(title, Text(), shown, *_footer(state, more))


def _title(state: State) -> str:
    if state.opened is not None:
        return safe_line(state.opened.task.name)
    return f"Rota inbox: {state.total} waiting"


def _footer(state: State, more: str) -> list[RenderableType]:
    if state.view is View.CONFIRM:
        line = Text("Approve exactly what is shown?", style="bold yellow")
    elif state.view is View.REASON:
        goes_on = " The agent goes on." if state.resumes else ""
        line = Text(f"Reason:{goes_on} {safe_line(state.reason) or ''}█", style="bold yellow")
    else:
        line = Text(safe_line(state.message), style="bold yellow")
    return [line, Text(HELP[state.view] + more, style="dim")]


def _list(state: State) -> RenderableType:
    if not state.approvals:
        return Text("Nothing waits for you. New reviews appear here by themselves.")
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
    assert state.opened is not None
    review = state.opened.review
    about = Table(box=None, pad_edge=False, show_header=False)
    about.add_column(style="bold", no_wrap=True)
    about.add_column(overflow="fold")
    work, task = review.work, state.opened.task
    # What a task is about that a client runs, and whose review has no items.
    texts = task if work is None and not review.items else None
    shown = work or texts
    fields = [
        ("Waits at", review.gate),
        ("What", review.summary),
        ("Asked", moment(review.requested_at)),
        ("Expires", moment(review.expires_at)),
        ("Agent", task.assigned_agent),
        ("Version", f"{work.version}, model {work.model}" if work else None),
        ("Budget", f"{work.budget_cents} cents" if work else None),
        ("Description", shown.description if shown else None),
        ("Input", shown.input if shown else None),
        ("Output", texts.output if texts else None),
        ("Review", f"{review.number} · {review.digest}"),
    ]
    for name, value in fields:
        if value:
            about.add_row(name, Text(safe(str(value))))
    items = [_item(each, state.opened) for each in review.items]
    return Group(about, *items)


def _item(item: "ReviewItem", opened: Opened) -> RenderableType:
    parts: list[RenderableType] = [Text(), Text(safe(item.summary), style="bold cyan")]
    if item.tool:
        parts.append(Text(safe_line(f"{item.server or 'rota'}/{item.tool}"), style="dim"))
    if item.definition_accepted is False:
        parts.append(Text("The tool's definition has changed and is not accepted.", style="red"))
    if item.agent_says:
        parts.append(Text(f"The agent says: {safe(item.agent_says)}", style="italic"))
    edited = opened.edits.get(item.id)
    if edited is not None:
        parts += [Text("Your version:", style="bold yellow"), Text(safe(_json(edited)))]
        parts.append(Text("Instead of:", style="dim"))
    if item.arguments is not None:
        style = "" if edited is None else "dim"
        parts.append(Text(safe(_json(item.arguments)), style=style))
    return Group(*parts)


def _json(value: object) -> str:
    # A text of several lines is easier to read as such.
    if isinstance(value, dict) and len(value) == 1:
        [(name, text)] = value.items()
        if isinstance(text, str) and "\n" in text:
            return f"{name}:\n{text}"
    return json.dumps(value, indent=2, ensure_ascii=False)
