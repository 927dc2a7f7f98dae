"""Answers that match a JSON Schema, for tasks with structured output."""

import math
from collections.abc import Mapping
from typing import Any

from rota.dev.demo.conversation import Facts

_MAX_DEPTH = 12
_FORMATS = {
    "date": "2026-01-31",
    "time": "09:00:00Z",
    "date-time": "2026-01-31T09:00:00Z",
    "email": "demo@example.test",
    "uri": "https://example.test/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def example(schema: Any, facts: Facts, name: str = "", depth: int = 0) -> Any:
    """A value that matches the usual kinds of schema, with the words of the task where it can."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return None
    for keyword in ("anyOf", "oneOf", "allOf"):
        if choices := schema.get(keyword):
            merged = {**schema, **choices[0]}
            del merged[keyword]
            return example(merged, facts, name, depth + 1)
    if "const" in schema:
        return schema["const"]
    if choices := schema.get("enum"):
        task = facts.task.lower()
        return next((each for each in choices if str(each).lower() in task), choices[0])
    if "default" in schema:
        return schema["default"]
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    if kind == "object" or (kind is None and "properties" in schema):
        inner = schema.get("properties") or {}
        wanted = [*inner, *(each for each in schema.get("required") or () if each not in inner)]
        return {key: example(inner.get(key, {}), facts, key, depth + 1) for key in wanted}
    if kind == "array":
        count = max(schema.get("minItems", 0), min(1, schema.get("maxItems", 1)))
        return [example(schema.get("items") or {}, facts, name, depth + 1) for _ in range(count)]
    if kind in ("integer", "number"):
        return _number(schema, facts, name, whole=kind == "integer")
    if kind == "boolean":
        return True
    return None if kind == "null" else _text(schema, facts, name)


def _number(schema: Mapping[str, Any], facts: Facts, name: str, *, whole: bool) -> Any:
    known = (v for v in facts.of_key(name) if isinstance(v, int | float) and v is not True)
    low, above = schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf)
    high, below = schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf)
    step = schema.get("multipleOf", 1)
    start = max(low, above)
    value = next(known, 0 if start == -math.inf else math.ceil(start / step) * step)
    value = min(value, high) if start == -math.inf else value
    if value <= above:
        value += step
    if value >= below:
        value = below - step
    return int(value) if whole else value


def _text(schema: Mapping[str, Any], facts: Facts, name: str) -> str:
    if pattern := schema.get("pattern"):
        return facts.matching(pattern) or ""
    if (form := schema.get("format")) in _FORMATS:
        return _FORMATS[form]
    known = next((v for v in facts.of_key(name) if isinstance(v, str) and v), None)
    text = known or facts.task.splitlines()[0].lstrip("# ").strip() or "A demonstration"
    text = text[: schema.get("maxLength", len(text))]
    return text.ljust(schema.get("minLength", 0), ".")
