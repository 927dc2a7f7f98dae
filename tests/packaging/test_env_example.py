"""`.env.example` lists every setting, no other, with its default and a comment."""

import re
from pathlib import Path

import pytest

from rota.platform.settings import Settings

TEXT = (Path(__file__).parents[2] / ".env.example").read_text()
LISTED = re.findall(r"^# (ROTA_\w+)=(.*)$", TEXT, re.MULTILINE)
FIELDS = {f"ROTA_{name.upper()}": field for name, field in Settings.model_fields.items()}


def test_it_lists_every_setting_once_and_no_other() -> None:
    assert sorted(name for name, _ in LISTED) == sorted(FIELDS)


def test_it_sets_nothing_until_a_line_is_uncommented() -> None:
    assert [line for line in TEXT.splitlines() if line and not line.startswith("#")] == []


@pytest.mark.parametrize(("name", "value"), LISTED)
def test_it_shows_the_default(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    default = FIELDS[name].default
    if default is None:
        assert value == ""
        return
    monkeypatch.setenv(name, value)
    assert getattr(Settings(), name.removeprefix("ROTA_").lower()) == default


@pytest.mark.parametrize("name", [name for name, _ in LISTED])
def test_a_comment_explains_the_setting(name: str) -> None:
    paragraph = next(part for part in TEXT.split("\n\n") if f"# {name}=" in part)
    comment = paragraph.splitlines()[0]
    assert comment.startswith("# ")
    assert not comment.startswith("# ROTA_")
