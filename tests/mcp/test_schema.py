"""A stranger's schema checks arguments, and can do nothing else."""

import time
from typing import Any

import pytest

from rota.platform.schema import problems


def test_what_does_not_fit_is_said_with_its_place() -> None:
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
def test_a_schema_that_cannot_be_used_is_a_problem_of_its_own(schema: Any, value: Any) -> None:
    began = time.monotonic()
    [problem] = problems(schema, value)
    assert "schema cannot be used" in problem
    assert time.monotonic() - began < 10


def test_patterns_are_left_to_the_server() -> None:
    began = time.monotonic()
    schema = {
        "properties": {"a": {"pattern": "^(a+)+$"}},
        "patternProperties": {"^(b+)+$": {"type": "null"}},
        "additionalProperties": False,
    }
    assert problems(schema, {"a": "a" * 60 + "!", "b" * 60 + "!": 1}) == []
    assert time.monotonic() - began < 1


def test_many_items_are_not_compared_with_each_other() -> None:
    schema = {"uniqueItems": True}
    assert problems(schema, [1, 1])
    assert problems(schema, [{"n": n} for n in range(1_001)] * 2) == []
