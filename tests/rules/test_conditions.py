"""The conditions of a rule: which arguments they cover."""

from typing import Any

import pytest

from rota.rules import conditions


@pytest.mark.parametrize(
    ("condition", "covered", "others"),
    [
        ({"const": 1}, [1], [1.0, True, "1", None, 2]),
        ({"const": None}, [None], [0, "", False]),
        ({"const": {"a": [1, {"b": 2}]}}, [{"a": [1, {"b": 2}]}], [{"a": [1, {"b": 3}]}, {}]),
        ({"const": 0.0}, [0.0], [0, -0.0, False]),
        ({"const": [1, [2]]}, [[1, [2]]], [[1, [2.0]], [1], [1, [2], 3], {"0": 1}]),
        ({"enum": ["low", 2]}, ["low", 2], ["Low", "2", True, ["low"]]),
        ({"min": 1, "max": 5}, [1, 5, 2.5], [0, 5.001, 6, True, "3", None, [3], 10**400]),
        ({"min": 1}, [1, 10**30], [0.99, -1, False]),
        ({"max": 2**63}, [-(10**30), 2**63], [2**63 + 1]),
        ({"any": True}, [None, 1, "x", {}, []], []),
    ],
)
def test_an_argument_is_covered_by_its_condition(
    condition: dict[str, Any], covered: list[Any], others: list[Any]
) -> None:
    for value in covered:
        assert conditions.cover({"x": condition}, {"x": value}), value
    for value in others:
        assert not conditions.cover({"x": condition}, {"x": value}), value


def test_arguments_that_are_not_named_must_be_absent() -> None:
    assert conditions.cover({}, {})
    assert not conditions.cover({}, {"x": None})
    assert not conditions.cover({"x": {"any": True}}, {"x": 1, "y": 1})


def test_only_any_covers_an_argument_that_is_absent() -> None:
    assert conditions.cover({"x": {"any": True}}, {})
    for condition in ({"const": None}, {"enum": [None]}, {"min": 0}):
        assert not conditions.cover({"x": condition}, {})


def test_deeply_nested_arguments_are_compared() -> None:
    def nested(innermost: int) -> Any:
        value: Any = innermost
        for _ in range(5_000):
            value = [{"a": value}]
        return value

    made = conditions.exactly({"x": nested(1)})
    assert conditions.cover(made, {"x": nested(1)})
    assert not conditions.cover(made, {"x": nested(2)})


SCHEMA = {
    "properties": {"amount": {"type": "number"}, "to": {"type": "string"}},
    "required": ["to"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("named", "schema", "wrong"),
    [
        (["to", "amount"], SCHEMA, None),
        (["to"], SCHEMA, None),
        (["to", "amout"], SCHEMA, "amout"),
        (["amount"], SCHEMA, "to"),
        (["to", "more"], SCHEMA | {"additionalProperties": True}, None),
        (["to", "more"], SCHEMA | {"patternProperties": {"^m": {}}}, None),
        (["x"], {}, None),
    ],
)
def test_conditions_that_no_call_can_meet_are_found(
    named: list[str], schema: dict[str, Any], wrong: str | None
) -> None:
    found = conditions.never_hold({name: {"any": True} for name in named}, schema)
    assert (found and found[0]) == wrong
    if wrong == "amout":
        assert found == ("amout", "Unknown argument. Did you mean `amount`?")


def test_conditions_made_from_a_call_cover_exactly_this_call() -> None:
    arguments = {"text": "Hello", "times": 3}
    made = conditions.exactly(arguments)
    assert conditions.cover(made, arguments)
    assert not conditions.cover(made, arguments | {"times": 4})
    assert not conditions.cover(made, {"text": "Hello"})
