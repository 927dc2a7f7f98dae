"""The conditions of a rule on the arguments of a call.

Each argument that the rule names has one: `const`, `enum`, `min` and `max`, or `any`. A call with
an argument that the rule does not name is not covered.
"""

from collections.abc import Mapping
from typing import Any

from rota.platform.strict import unknown


def cover(conditions: Mapping[str, Mapping[str, Any]], arguments: Mapping[str, Any]) -> bool:
    """Whether a call with these arguments is covered."""
    if arguments.keys() - conditions.keys():
        return False
    return all(
        _holds(condition, arguments[name]) if name in arguments else "any" in condition
        for name, condition in conditions.items()
    )


def exactly(arguments: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Conditions that cover a call with exactly these arguments."""
    return {name: {"const": value} for name, value in arguments.items()}


def never_hold(
    conditions: Mapping[str, Mapping[str, Any]], schema: Mapping[str, Any]
) -> tuple[str, str] | None:
    """An argument, and why no call that matches the schema of its tool can be covered."""
    known = schema.get("properties")
    if isinstance(known, dict) and schema.get("additionalProperties") is False:
        others = [name for name in conditions if name not in known]
        if others and "patternProperties" not in schema:
            return others[0], unknown("argument", others[0], known)
    for name in schema.get("required") or ():
        if name not in conditions:
            return str(name), "is in every call of this tool. Add a condition for it."
    return None


def _holds(condition: Mapping[str, Any], value: Any) -> bool:
    if "any" in condition:
        return True
    if "const" in condition:
        return _same(condition["const"], value)
    if "enum" in condition:
        return any(_same(each, value) for each in condition["enum"])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    low, high = condition.get("min"), condition.get("max")
    return (low is None or value >= low) and (high is None or value <= high)


def _same(one: Any, other: Any) -> bool:
    """As JSON: 1 is neither true nor 1.0, and 0.0 is not -0.0.

    Rules can have many thousands of values, so they are not written as JSON to compare them. No
    recursion, because the arguments of a model can be nested deeply.
    """
    pairs = [(one, other)]
    while pairs:
        one, other = pairs.pop()
        kind = type(one)
        if kind is not type(other):
            return False
        if kind is dict:
            if one.keys() != other.keys():
                return False
            pairs += [(each, other[name]) for name, each in one.items()]
        elif kind is list:
            if len(one) != len(other):
                return False
            pairs += zip(one, other, strict=True)
        elif one != other or (one == 0 and str(one) != str(other)):
            return False
    return True
