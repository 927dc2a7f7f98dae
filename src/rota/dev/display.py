"""The output of `rota dev`: a live table on a terminal, or one line for each change."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rota.dev.processes import ComponentState, Status

STYLES = {
    Status.STARTING: "yellow",
    Status.READY: "green",
    Status.DONE: "green",
    Status.MISSING: "yellow",
    Status.FAILED: "bold red",
    Status.CRASHED: "bold red",
}


def took(state: ComponentState) -> str:
    return f"{state.took_s:.1f} s" if state.took_s is not None else ""


def remark(state: ComponentState) -> str:
    """The detail, with the path of the log if the component has failed."""
    if state.status in (Status.FAILED, Status.CRASHED):
        return f"{state.detail}; see {state.log}"
    return state.detail


class Lines:
    """For logs and pipes: one line for each change."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def changed(self, state: ComponentState) -> None:
        columns = (f"{state.name:<10}", str(state.status), took(state), state.url, remark(state))
        self._console.print(" ".join(filter(None, columns)), soft_wrap=True, highlight=False)


class LiveTable:
    """For terminals: one table that shows the current states."""

    def __init__(self, console: Console) -> None:
        self._states: dict[str, ComponentState] = {}
        self._live = Live(console=console, get_renderable=self._table, refresh_per_second=8)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.__exit__(kind, error, traceback)

    def changed(self, state: ComponentState) -> None:
        self._states[state.name] = state
        self._live.refresh()

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        for column in ("component", "state", "port", "took", "address", ""):
            table.add_column(column, overflow="fold")
        for state in list(self._states.values()):
            table.add_row(
                state.name,
                Text(state.status, STYLES.get(state.status, "dim")),
                str(state.port or ""),
                took(state),
                state.url or "",
                Text(remark(state), STYLES.get(state.status, "dim")),
            )
        return table


def display(console: Console) -> Lines | LiveTable:
    return LiveTable(console) if console.is_terminal else Lines(console)
