"""An untrusted schema can validate arguments and do nothing else."""

import time
from typing import Any

import pytest

from rota.platform.schema import problems


def test_each_problem_is_reported_with_its_path() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["m"]}
    assert problems(schema, {"n": 1, "m": 2}) == []
    assert sorted(problems(schema, {"n": "x"})) == [
        "'m' is a required property",
        "n: 'x' is not of type 'integer'",
    ]
    assert len(problems({"items": {"type": "null"}}, [1] * 100)) == 20


def _doubling(depth: int) -> dict[str, Any]:
    steps: dict[str, Any] = {
        f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(depth)
    }
    return {"$ref": "#/$defs/a0", "$defs": steps | {f"a{depth}": {}}}


@pytest.mark.timed
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"$ref": "http://127.0.0.1:9/schema"}, {}),
        ({"$ref": "file:///etc/passwd"}, {}),
        ({"$ref": "#/nowhere"}, {}),
        ({"$ref": "#"}, {}),
        ({"$dynamicRef": "#x", "$dynamicAnchor": "x"}, {}),
        (_doubling(60), {}),
        ({"type": 5}, {}),
        ({"properties": "none"}, {}),
    ],
)
def test_an_unusable_schema_is_reported_as_the_problem(schema: Any, value: Any) -> None:
    started = time.monotonic()
    [problem] = problems(schema, value)
    assert "schema cannot be used" in problem
    assert time.monotonic() - started < 10


@pytest.mark.timed
def test_patterns_are_not_executed() -> None:
    started = time.monotonic()
    schema = {
        "properties": {"a": {"pattern": "^(a+)+$"}},
        "patternProperties": {"^(b+)+$": {"type": "null"}},
        "additionalProperties": False,
    }
    assert problems(schema, {"a": "a" * 60 + "!", "b" * 60 + "!": 1}) == []
    assert time.monotonic() - started < 1


def test_uniqueness_is_not_checked_in_long_lists() -> None:
    schema = {"uniqueItems": True}
    assert problems(schema, [1, 1])
    assert problems(schema, [{"n": n} for n in range(1_001)] * 2) == []
