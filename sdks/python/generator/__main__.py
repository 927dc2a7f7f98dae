"""Writes the generated part of the SDK: `python -m generator` in this folder.

With `--check`, nothing is written: it fails if a file is not up to date.
"""

import subprocess
import sys
from pathlib import Path

from generator import operations
from generator.descriptions import (
    in_requests,
    in_responses,
    load,
    merged_operations,
    merged_schemas,
)
from generator.models import Writer
from generator.sync import synchronous

PACKAGE = Path(__file__).parents[1] / "src" / "rota_sdk"
NOTICE = "# Generated from rota_sdk/_async: do not edit.\n"


def files() -> dict[Path, str]:
    """Every generated file with what it should contain."""
    descriptions = load()
    schemas = merged_schemas(descriptions)
    [version] = schemas["ApiVersion"]["enum"]
    written = {
        PACKAGE / "_generated" / "__init__.py": "",
        PACKAGE / "_generated" / "models.py": Writer(
            schemas, in_requests(descriptions, schemas), in_responses(descriptions, schemas)
        ).module(),
        PACKAGE / "_generated" / "operations.py": operations.module(
            merged_operations(descriptions), version
        ),
    }
    for source in sorted((PACKAGE / "_async").rglob("*.py")):
        copy = PACKAGE / "_sync" / source.relative_to(PACKAGE / "_async")
        text = source.read_text()
        written[copy] = NOTICE + synchronous(text) if text else ""
    return {path: formatted(text) if text else "" for path, text in written.items()}


def formatted(source: str) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    for command in (("check", "--select", "I", "--fix", "--quiet"), ("format", "--quiet")):
        done = subprocess.run(
            (ruff, *command, "--line-length", "100", "--stdin-filename", "src/rota_sdk/m.py", "-"),
            cwd=PACKAGE.parents[1],
            input=source,
            capture_output=True,
            text=True,
            check=True,
        )
        source = done.stdout
    return source


def main() -> int:
    expected = files()
    generated = {*(PACKAGE / "_sync").rglob("*.py"), *(PACKAGE / "_generated").rglob("*.py")}
    stale = [path for path, text in expected.items() if not _has(path, text)]
    stale += sorted(generated - set(expected))
    if "--check" not in sys.argv:
        for path in stale:
            if path in expected:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(expected[path])
            else:
                path.unlink()
        return 0
    for path in stale:
        print(f"{path} is not up to date. Run: make openapi", file=sys.stderr)
    return 1 if stale else 0


def _has(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text() == text


if __name__ == "__main__":
    raise SystemExit(main())
