"""The output of `rota dev` while components start and crash."""

import io
from pathlib import Path

from rich.console import Console

from rota.dev.display import Lines, LiveTable, display
from rota.dev.processes import ComponentState, Status

LOG = Path("/data/logs/redis.log")
READY = ComponentState("redis", Status.READY, LOG, 8082, "127.0.0.1:8082", took_s=0.25)
CRASHED = ComponentState("redis", Status.CRASHED, LOG, 8082, "127.0.0.1:8082", "exited with code 9")


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=120, color_system="standard")


def written(on: Console) -> str:
    assert isinstance(on.file, io.StringIO)
    return on.file.getvalue()


def test_without_a_terminal_each_change_is_one_line() -> None:
    out = console(terminal=False)
    with display(out) as shown:
        assert isinstance(shown, Lines)
        shown.changed(READY)
        shown.changed(CRASHED)
    first, second = written(out).splitlines()
    assert first.split() == ["redis", "ready", "0.2", "s", "127.0.0.1:8082"]
    assert second.endswith(f"exited with code 9; see {LOG}")


def test_on_a_terminal_a_crashed_component_is_red_with_the_path_of_its_log() -> None:
    out = console(terminal=True)
    with display(out) as shown:
        assert isinstance(shown, LiveTable)
        shown.changed(READY)
        assert "\x1b[32mready" in written(out)
        shown.changed(CRASHED)
    assert "\x1b[1;31mcrashed" in written(out)
    assert str(LOG) in written(out)
