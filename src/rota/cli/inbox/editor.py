"""Lets a person change the arguments of a call in their editor."""

import json
import os
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

# Lines above the text that say what is wrong with it.
_NOTE = re.compile(r"\A(//.*\n)+")


class EditRefused(Exception):
    """The arguments did not change. The message says why."""


class _NotArguments(ValueError):
    pass


def edited(arguments: dict[str, Any]) -> dict[str, Any]:
    """What the person leaves in the file. A text that is not valid is opened again with the reason,
    until the person leaves it as it is or deletes it."""
    command = _command()
    text = json.dumps(arguments, indent=2, ensure_ascii=False) + "\n"
    note = ""
    try:
        # Only this user can read the folder.
        with tempfile.TemporaryDirectory(prefix="rota-") as folder:
            file = Path(folder) / "arguments.json"
            while True:
                file.write_text(note + text, encoding="utf-8")
                _run([*command, str(file)])
                before, text = text, _NOTE.sub("", file.read_text(encoding="utf-8"))
                if not text.strip():
                    raise EditRefused("The file is empty, so the arguments stay as they were.")
                try:
                    return _parsed(text)
                except _NotArguments as error:
                    if text == before:
                        raise EditRefused(f"The arguments stay as they were. {error}") from None
                    note = f"// {error} Close the file without a change to give up.\n"
    except (OSError, UnicodeError) as error:
        reason = f"The file cannot be edited, so the arguments stay as they were: {error}"
        raise EditRefused(reason) from None


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        # The note above the text is the first line.
        raise _NotArguments(f"Line {error.lineno + 1} is not valid JSON: {error.msg}.") from None
    except (ValueError, RecursionError) as error:
        raise _NotArguments(f"This is not valid JSON: {error}.") from None
    if not isinstance(found, dict):
        raise _NotArguments("The arguments must be a JSON object.")
    return found


def is_same(one: object, other: object) -> bool:
    """Whether both are the same JSON. In Python, 1, 1.0 and true are equal."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _command() -> list[str]:
    name = "VISUAL" if os.environ.get("VISUAL") else "EDITOR"
    try:
        return shlex.split(os.environ.get(name, "")) or ["vi"]
    except ValueError as error:
        raise EditRefused(f"{name} is not a valid command: {error}.") from None


def _run(command: list[str]) -> None:
    try:
        with _uninterrupted():
            done = subprocess.run(command, check=False)  # noqa: S603
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise EditRefused(f"Cannot start {command[0]}: {why}. Set EDITOR.") from None
    if done.returncode:
        raise EditRefused(f"{command[0]} failed, so the arguments stay as they were.")


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C is for the editor. A handler, unlike SIG_IGN, does not apply to the editor too."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
