"""Lets a person change the arguments of a call in their editor."""

import json
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn


class EditRefused(Exception):
    """The arguments did not change. The message says why."""


def edited(arguments: dict[str, Any]) -> dict[str, Any]:
    command = _command()
    try:
        # Only this user can read the folder.
        with tempfile.TemporaryDirectory(prefix="rota-") as folder:
            file = Path(folder) / "arguments.json"
            text = json.dumps(arguments, indent=2, ensure_ascii=False) + "\n"
            file.write_text(text, encoding="utf-8")
            _run([*command, str(file)])
            changed = file.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise EditRefused(f"The file cannot be edited, so nothing was changed: {error}") from None
    try:
        found = json.loads(changed, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise EditRefused(f"That is not valid JSON, so nothing was changed: {error}") from None
    if not isinstance(found, dict):
        raise EditRefused("The arguments must be a JSON object. Nothing was changed.")
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
        raise EditRefused(f"{command[0]} failed, so nothing was changed.")


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
