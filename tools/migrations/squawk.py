"""Runs squawk, a linter for migrations."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tools.migrations.files import VERSIONS, SqlFile, sql_files
from tools.migrations.rules import Finding

CONFIG = Path(__file__).with_name("squawk.toml")
# Where `make migrations` installs it.
INSTALLED = Path(__file__).parents[2] / "dist" / "migration-tools" / "bin" / "squawk"


def program() -> Path | None:
    """None if squawk is not installed."""
    path = Path(os.environ.get("ROTA_TEST_SQUAWK") or INSTALLED)
    return path if path.is_file() else None


def check(squawk: Path, folder: Path = VERSIONS) -> list[Finding]:
    files = list(sql_files(folder))
    in_transaction = [file for file in files if not file.concurrent]
    outside = [file for file in files if file.concurrent]
    return [
        *_run(squawk, folder, in_transaction, "--assume-in-transaction"),
        *_run(squawk, folder, outside, "--no-assume-in-transaction"),
    ]


def _run(squawk: Path, folder: Path, files: Sequence[SqlFile], option: str) -> list[Finding]:
    if not files:
        return []
    names = [file.name for file in files]
    command = [str(squawk), "--config", str(CONFIG), "--reporter", "json", option, *names]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    # 1: it has found something. The output is JSON then, too.
    if ended.returncode not in (0, 1) or not ended.stdout.strip():
        raise RuntimeError(f"squawk failed: {ended.stderr or ended.stdout}")
    return [
        Finding(each["file"], each["line"] + 1, each["rule_name"], each["message"])
        for each in json.loads(ended.stdout)
    ]
