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
        ("exit 3", "failed, so the arguments stay as they were"),
        ('echo "{" > "$1"', "stay as they were. Line 3 is not valid JSON: "),
        ('echo > "$1"', "The file is empty, so the arguments stay as they were"),
        ('echo NaN > "$1"', "This is not valid JSON: NaN"),
        ('echo "[1]" > "$1"', "The arguments must be a JSON object"),
        ('rm "$1"', "The file cannot be edited"),
    ],
)
def test_what_cannot_be_arguments_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    editor(tmp_path, monkeypatch, script)
    with pytest.raises(EditRefused, match=reason):
        edited({"ref": "first"})


def test_a_text_that_is_not_valid_is_opened_again_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = """case "$(cat "$1")" in
//*second*) cp "$1" "$0.seen"; echo '{"ref": "third"}' >> "$1"; sed -i /second/d "$1" ;;
*) printf '\n{"ref": "second"\n' > "$1" ;;
esac"""
    editor(tmp_path, monkeypatch, once)
    assert edited({"ref": "first"}) == {"ref": "third"}
    note, *text = (tmp_path / "editor.seen").read_text().splitlines()
    # The line of the file, which begins with the note.
    assert note.startswith("// Line 4 is not valid JSON: ")
    assert text == ["", '{"ref": "second"']


def test_an_editor_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "/no/such/editor")
    with pytest.raises(EditRefused, match="Cannot start /no/such/editor"):
        edited({})
