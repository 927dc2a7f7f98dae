"""What people see while parts come and go."""

import io
from pathlib import Path

from rich.console import Console

from rota.dev.display import Lines, LiveTable, display
from rota.dev.processes import PartState, Status

LOG = Path("/data/logs/redis.log")
READY = PartState("redis", Status.READY, LOG, 8082, "127.0.0.1:8082", took_s=0.25)
DIED = PartState("redis", Status.DIED, LOG, 8082, "127.0.0.1:8082", "ended with exit code 9")


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=120, color_system="standard")


def written(on: Console) -> str:
    assert isinstance(on.file, io.StringIO)
    return on.file.getvalue()


def test_without_a_terminal_each_change_is_a_line() -> None:
    out = console(terminal=False)
    with display(out) as shown:
        assert isinstance(shown, Lines)
        shown.changed(READY)
        shown.changed(DIED)
    first, second = written(out).splitlines()
    assert first.split() == ["redis", "ready", "0.2", "s", "127.0.0.1:8082"]
    assert second.endswith(f"ended with exit code 9; see {LOG}")


def test_on_a_terminal_a_dead_part_is_red_and_names_its_log() -> None:
    out = console(terminal=True)
    with display(out) as shown:
        assert isinstance(shown, LiveTable)
        shown.changed(READY)
        assert "\x1b[32mready" in written(out)
        shown.changed(DIED)
    assert "\x1b[1;31mdied" in written(out)
    assert str(LOG) in written(out)
