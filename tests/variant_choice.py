"""Which variant a test runs on in CI, where most tests run on one and `make test` runs both.

The variants differ in data only: tiers with their limits, prices and allowances, who can use an
agent and see its model, how many tool servers an account has, the pass and its trial. A test that
is about one of these runs on both. So does a test of these folders, a test that names the variant
or one of the words below, itself or in what it uses of its file, and one marked `both_variants`.
Every other test runs on one variant, and a hash of its name decides which, so about half of each
file runs on each.

CI sets TEST_ONE_VARIANT=1. Without it, and with ROTA_TEST_FULL=1, all tests run on both. Its name
does not begin with ROTA_, because processes that tests start would report an unknown setting.
"""

import ast
import os
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.sizes import FULL

VARIANTS = ("a", "b")
FOLDERS = ("accounts", "companies", "credits", "limits", "mcp", "openapi", "payments", "plans")
WORDS = re.compile(
    r"variant|tier|plan(?!ation|e)|\bpass(es)?\b|_pass|trial|billing|checkout|subscri|seats?\b"
    r"|allowance|ceiling|price|credit|rate_?limit|X-RateLimit|premium|servers_allowed",
    re.IGNORECASE,
)
MARKER = "both_variants: CI also runs it on both variants"


def enabled() -> bool:
    return bool(os.environ.get("TEST_ONE_VARIANT")) and not FULL


def choose(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests of CI, and the ones that only `make test` runs."""
    pairs: dict[str, dict[str, pytest.Item]] = defaultdict(dict)
    for item in items:
        for name, variant in _parameters(item):
            pairs[f"{_function(item)}[{name}]{_others(item, name)}"][variant] = item
    left = set()
    for key, pair in pairs.items():
        if len(pair) == len(VARIANTS) and not any(map(_needs_both, pair.values())):
            chosen = VARIANTS[zlib.crc32(key.encode()) % 2]
            left |= {item for variant, item in pair.items() if variant != chosen}
    return [item for item in items if item not in left], [item for item in items if item in left]


def _parameters(item: pytest.Item) -> Iterator[tuple[str, str]]:
    """The fixture that has the variant, and the variant."""
    callspec = getattr(item, "callspec", None)
    if callspec is not None:
        found = [(name, value) for name, value in callspec.params.items() if value in VARIANTS]
        # A test of both variants at once has two, and is never left out.
        if len(found) == 1:
            yield found[0]


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _others(item: pytest.Item, variant: str) -> str:
    """The other parameters of the test, as pytest writes them."""
    callspec = item.callspec  # type: ignore[attr-defined]
    ids = item.nodeid.partition("[")[2].removesuffix("]").split("-")
    ids.remove(callspec.params[variant])
    return "-".join(ids)


def _needs_both(item: pytest.Item) -> bool:
    path = item.path
    if item.get_closest_marker("both_variants") or set(FOLDERS) & set(path.parts):
        return True
    fixtures = getattr(item, "fixturenames", [])
    return _names_a_difference(path, (_function(item).rpartition("::")[2], *fixtures))


def _names_a_difference(path: Path, names: tuple[str, ...]) -> bool:
    """Whether these functions of a file, or what they use of it, have one of the words."""
    parts, todo, seen = _parts(path), list(names), set(names)
    while todo:
        text, used = parts.get(todo.pop(), ("", frozenset()))
        if WORDS.search(text):
            return True
        todo += used - seen
        seen |= used
    return False


@cache
def _parts(path: Path) -> dict[str, tuple[str, frozenset[str]]]:
    """For each name that a file defines: its text, and the names that it uses."""
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for node in ast.parse(path.read_text()).body:
        text = ast.unparse(node)
        # The fixture that starts the service of each variant is no test of it.
        text = "" if isinstance(node, ast.AsyncFunctionDef) and "request.param" in text else text
        used = frozenset(
            part.id if isinstance(part, ast.Name) else part.arg
            for part in ast.walk(node)
            if isinstance(part, ast.Name | ast.arg)
        )
        found |= dict.fromkeys(_defined(node), (text, used))
    return found


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []
