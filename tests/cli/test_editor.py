"""Editing the arguments of a call in an editor, and what is refused."""

from pathlib import Path

import pytest

from rota.cli.inbox.editor import EditRefused, edited


def editor(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    file = folder / "editor"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", str(file))


def test_the_arguments_are_what_the_editor_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor(tmp_path, monkeypatch, 'sed -i s/first/second/ "$1"')
    assert edited({"ref": "first ü"}) == {"ref": "second ü"}


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 3", "failed, so nothing was changed"),
        ('echo "{" > "$1"', "That is not valid JSON, so nothing was changed"),
        ('echo "[1]" > "$1"', "The arguments must be a JSON object"),
    ],
)
def test_what_cannot_be_arguments_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    editor(tmp_path, monkeypatch, script)
    with pytest.raises(EditRefused, match=reason):
        edited({"ref": "first"})


def test_an_editor_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "/no/such/editor")
    with pytest.raises(EditRefused, match="Cannot start /no/such/editor"):
        edited({})
