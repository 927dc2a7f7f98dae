"""Schemas of tool servers that take long to check."""

from collections.abc import Callable
from typing import Any

# A schema for each number, and arguments that take long to check.
HostileSchema = tuple[Callable[[int], dict[str, Any]], dict[str, Any]]


def _references(number: int) -> dict[str, Any]:
    """Two definitions that refer to each other, and a chain that doubles at each of 60 steps."""
    steps = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(60)}
    loop = {"x": {"$ref": "#/$defs/y"}, "y": {"$ref": "#/$defs/x"}}
    return {"$ref": "#/$defs/a0", "$defs": {**steps, "a60": {"$ref": "#/$defs/x"}, **loop}}


def _nested(number: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "maxLength": number}
    for _ in range(15):
        schema = {"anyOf": [{"items": schema}, {"type": "null"}]}
    return {"properties": {"deep": schema}}


def _lists(depth: int) -> Any:
    return [_lists(depth - 1)] if depth else "x" * 100


SCHEMAS: dict[str, HostileSchema] = {
    "exponential regex": (
        lambda n: {
            "patternProperties": {f"^(a+)+{n}$": {}},
            "unevaluatedProperties": False,
        },
        {"a" * 30 + "!": 1},
    ),
    "3,000 uniqueItems": (
        lambda n: {
            "properties": {"list": {"minItems": n, "allOf": [{"uniqueItems": True}] * 2_800}}
        },
        {"list": [{"n": n} for n in range(1_000)]},
    ),
    "slow regex compilation": (
        lambda n: {
            "patternProperties": {"(?i)" + "[\x80-\uffff]" * 380 + str(n): {}},
            "unevaluatedProperties": False,
        },
        {"a": 1},
    ),
    "endless repeat": (
        lambda n: {
            "patternProperties": {f"{n}a{{99999999999999999999}}": {}},
            "unevaluatedProperties": False,
        },
        {"a": 1},
    ),
    "$ref loops": (_references, {"a": 1}),
    "deep nesting": (_nested, {"deep": _lists(50)}),
    "huge enum": (
        lambda n: {"properties": {"list": {"items": {"enum": [[n, i] for i in range(5_000)]}}}},
        {"list": [[-1, n] for n in range(2_000)]},
    ),
}
