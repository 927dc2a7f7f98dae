"""What commands print: tables for people, JSON for programs."""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from rota.cli.text import safe, safe_json, safe_line

if TYPE_CHECKING:
    from rich.console import Console

    from rota_sdk import Pages

T = TypeVar("T")

# In a pipe, no line is wrapped or cut.
PIPE_WIDTH = 10_000
# The most items that the service puts into one page of a list.
LARGEST_PAGE = 100


def console(*, err: bool = False) -> "Console":
    from rich.console import Console

    stream = sys.stderr if err else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(stderr=err, width=width, highlight=False, markup=False, emoji=False)


def wire(value: Any) -> Any:
    """A model, or several, as the API sends them."""
    if isinstance(value, list | tuple):
        return [wire(each) for each in value]
    if isinstance(value, dict):
        return {name: wire(each) for name, each in value.items()}
    if isinstance(value, datetime):
        moment = value.astimezone(UTC).isoformat(timespec="milliseconds")
        return moment.replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    return wire(value.model_dump(by_alias=True)) if hasattr(value, "model_dump") else value


def print_json(value: Any, *, indent: int | None = 2) -> None:
    text = json.dumps(wire(value), indent=indent, ensure_ascii=False)
    sys.stdout.write(safe_json(text) + "\n")
    sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> None:
    """Rows under bold headings. Cells are texts of others, so they are made safe."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*[Text(safe_line("" if cell is None else str(cell))) for cell in row])
    if not table.row_count:
        print_text(empty)
        return
    console().print(table)


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    """One thing: the names of its fields, and their values."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields:
        if value is not None and value != "":
            table.add_row(name, Text(safe(str(value))))
    console().print(table)


def print_text(text: str, *, end: str = "\n") -> None:
    sys.stdout.write(safe(text) + end)
    sys.stdout.flush()


def print_note(text: str) -> None:
    """Something beside the result, so that a pipe gets only the result."""
    sys.stderr.write(safe(text) + "\n")
    sys.stderr.flush()


def page_size(limit: int) -> int:
    return min(limit, LARGEST_PAGE)


def print_list(
    name: str,
    pages: "Pages[T]",
    limit: int,
    columns: Sequence[str],
    row: Callable[[T], Sequence[object]],
    empty: str,
    *,
    as_json: bool,
) -> None:
    """The first items of a list, and how many it has."""
    page = pages.first_page()
    has_all = len(page.items) >= min(limit, page.total)
    items = page.items[:limit] if has_all else list(islice(pages, limit))
    if as_json:
        print_json({name: items, "total": page.total})
        return
    print_table(columns, map(row, items), empty)
    if len(items) < page.total:
        print_note(f"{len(items):,} of {page.total:,}. --limit shows more.")
