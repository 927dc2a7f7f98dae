"""The pages in docs/reference are what the code says now."""

import re
from pathlib import Path

import pytest

from rota.platform.settings import Settings
from tools.reference import events, metrics
from tools.reference.__main__ import REFERENCE, ROOT, files
from tools.reference.event_data import DATA

UPDATE = "run: python -m tools.reference"


def test_the_pages_are_up_to_date() -> None:
    wanted = files()
    stored = {path: path.read_text() for path in REFERENCE.rglob("*.md")}
    assert sorted(stored) == sorted(wanted), UPDATE
    stale = [str(path.relative_to(ROOT)) for path in wanted if stored[path] != wanted[path]]
    assert stale == [], UPDATE


def test_the_width_of_the_terminal_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = files()
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("TERM", "dumb")
    assert files() == before


def test_every_setting_has_a_type_and_a_meaning() -> None:
    rows = re.findall(r"^\| `(ROTA_\w+)` \| (.+?) \| .*? \| (.+) \|$", page("settings.md"), re.M)
    assert sorted(name for name, _, _ in rows) == sorted(
        f"ROTA_{name.upper()}" for name in Settings.model_fields
    )
    assert all(kind and len(meaning) > 10 for _, kind, meaning in rows)


def test_every_metric_of_the_monitoring_page_is_listed() -> None:
    monitoring = (ROOT / "docs" / "monitoring.md").read_text()
    explained = set(re.findall(r"`(rota_\w+?)(?:\{[^`]*\})?`", monitoring)) - {"rota_top_account_"}
    listed = set(re.findall(r"^\| `(\w+)`", metrics.pages()["metrics.md"], re.M))
    assert {name for name in explained if not name.endswith("_")} == listed


def test_every_type_of_event_has_its_data() -> None:
    assert sorted(DATA) == sorted(events.types()), (
        "Add the new type to tools/reference/event_data.py, then " + UPDATE
    )


def test_every_command_has_a_section() -> None:
    commands = page("commands.md")
    for name in ("rota tasks create", "rota admin keys create", "rota dev", "rota listen"):
        assert f"### {name}\n" in commands
    # A meaning for each option, so that no option is without help.
    assert re.findall(r"^\| `--.*\|  ?\|$", commands, re.M) == []


def page(name: str) -> str:
    return Path(REFERENCE / name).read_text()
