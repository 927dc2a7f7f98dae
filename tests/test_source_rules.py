"""Rules for the source that no linter has."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
WRITTEN = (
    "src/rota/**/*.py",
    "sdks/python/**/*.py",
    "tests/**/*.py",
    "tools/**/*.py",
    "dashboard/src/**/*.ts*",
    "catalog/**/*.md",
)
GENERATED = {"_generated", "generated", "node_modules"}
MOST_LINES = 400


def files(*patterns: str) -> Iterator[Path]:
    for pattern in patterns:
        for path in ROOT.glob(pattern):
            if not GENERATED & set(path.parts):
                yield path


def test_files_have_at_most_400_lines() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in files(*WRITTEN)}
    assert len(lengths) > 500
    assert {path: length for path, length in lengths.items() if length > MOST_LINES} == {}


def test_no_call_unpacks_what_is_written_in_it() -> None:
    found = [
        f"{path}:{call.lineno}"
        for path in files("src/rota/**/*.py", "tests/**/*.py", "tools/**/*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call)
        for argument in call.args
        if isinstance(argument, ast.Starred)
        and isinstance(argument.value, ast.Tuple | ast.GeneratorExp)
    ]
    assert found == []
