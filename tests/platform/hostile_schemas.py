"""Schemas that are wrong, or that take a simple validator minutes."""

from typing import Any


def doubling(depth: int) -> dict[str, Any]:
    steps: dict[str, Any] = {
        f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(depth)
    }
    return {"$ref": "#/$defs/a0", "$defs": steps | {f"a{depth}": {}}}


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object"}
    for _ in range(depth):
        found = {"properties": {"a": found}}
    return found


LIST = [{"n": n} for n in range(1_000)]

# Schemas that no engine can use: they are wrong, or need more than a process has.
UNUSABLE: dict[str, tuple[Any, Any]] = {
    "remote reference": ({"$ref": "http://127.0.0.1:9/schema"}, {}),
    "file": ({"$ref": "file:///etc/passwd"}, {}),
    "missing reference": ({"$ref": "#/nowhere"}, {}),
    "doubling": (doubling(60), {}),
    "wrong type": ({"type": 5}, {}),
    "wrong properties": ({"properties": "none"}, {}),
    "wrong pattern": ({"pattern": "["}, "a"),
    "unbounded repeat": ({"pattern": "a{99999999999999999999}"}, "a"),
    "pattern without end": ({"pattern": "((a{1000}){1000}){1000}"}, "a"),
    "many large patterns": (
        {"allOf": [{"pattern": f"(\\w{{200}}){{{n % 7 + 3}}}{n}"} for n in range(1_500)]},
        "a",
    ),
    "deep schema": (nested(900), {}),
    "backtracking": ({"pattern": "^(?:(a+)|b\\1)+c\\1$"}, "a" * 3_000),
}
# Schemas that used to take minutes, and do not anymore.
FAST: dict[str, tuple[Any, Any]] = {
    "patterns of properties": (
        {"patternProperties": {"^(a+)+$": {"type": "null"}}, "unevaluatedProperties": False},
        {"a" * 40 + "!": 1},
    ),
    "nested repeats": ({"not": {"pattern": "^(a+)+$"}}, "a" * 60),
    "long pattern": ({"pattern": "|".join(["(a{1,50}b{1,50}c)"] * 190)}, "a" * 100),
    "reference to itself": ({"$ref": "#", "type": "string"}, {}),
    "circle of references": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {},
    ),
    "dynamic reference": ({"$dynamicRef": "#x", "$dynamicAnchor": "x"}, {}),
    "recursive dynamic reference": (
        {
            "$dynamicAnchor": "node",
            "properties": {"next": {"$dynamicRef": "#node"}},
            "unevaluatedProperties": {"$dynamicRef": "#node"},
        },
        {"next": {"next": {"other": {}}}},
    ),
    "unique items": ({"allOf": [{"uniqueItems": True}] * 3_000}, LIST),
    "huge enumeration": ({"enum": list(range(15_000))}, "x"),
    "nested schema": (nested(60), {}),
}
