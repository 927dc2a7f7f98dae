"""Lets a person change the arguments of a call in their editor."""

import json
import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any


class EditRefused(Exception):
    """The arguments did not change. The message says why."""


def edited(arguments: dict[str, Any]) -> dict[str, Any]:
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    # Only this user can read the folder.
    with tempfile.TemporaryDirectory(prefix="rota-") as folder:
        file = Path(folder) / "arguments.json"
        file.write_text(json.dumps(arguments, indent=2, ensure_ascii=False) + "\n")
        try:
            done = subprocess.run([*command, str(file)], check=False)  # noqa: S603
        except OSError as error:
            raise EditRefused(f"Cannot start {command[0]}: {error.strerror}. Set EDITOR.") from None
        if done.returncode:
            raise EditRefused(f"{command[0]} failed, so nothing was changed.")
        try:
            found = json.loads(file.read_text())
        except (OSError, ValueError) as error:
            raise EditRefused(f"That is not valid JSON, so nothing was changed: {error}") from None
    if not isinstance(found, dict):
        raise EditRefused("The arguments must be a JSON object. Nothing was changed.")
    return found
