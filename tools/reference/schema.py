"""Types and fields of the OpenAPI description, in words."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from tools.reference import markdown
from tools.reference.markdown import code

Schema = dict[str, Any]
PREFIX = "#/components/schemas/"
# Limits of this size are those of a type, not of the API.
_UNLIMITED = 2**31 - 1
_PLAIN = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "object": "object",
    "null": "null",
}


def name_of(schema: Schema) -> str | None:
    reference = schema.get("$ref")
    return reference.removeprefix(PREFIX) if reference else None


def named(part: Any) -> Iterator[str]:
    """The names of all schemas that a part of the description uses."""
    if isinstance(part, dict):
        if str(part.get("$ref", "")).startswith(PREFIX):
            yield part["$ref"].removeprefix(PREFIX)
        for value in part.values():
            yield from named(value)
    elif isinstance(part, list):
        for value in part:
            yield from named(value)


def kind(schema: Schema, link: Callable[[str], str]) -> str:
    """The type of a value, with a link for each schema that has a name."""
    if name := name_of(schema):
        return link(name)
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " or ".join(kind(part, link) for part in schema[union])
    if "const" in schema:
        return code(json.dumps(schema["const"]))
    if "enum" in schema:
        return " or ".join(code(json.dumps(value)) for value in schema["enum"])
    names = schema.get("type", "any value")
    listed = names if isinstance(names, list) else [names]
    return " or ".join(_plain(name, schema, link) for name in listed)


def _plain(name: str, schema: Schema, link: Callable[[str], str]) -> str:
    if name == "array":
        return f"list of {kind(schema.get('items', {}), link)}"
    if name == "string" and schema.get("format") == "date-time":
        return "time"
    if name == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object with values of {kind(schema['additionalProperties'], link)}"
    return _PLAIN.get(name, name)


def meaning(schema: Schema) -> str:
    parts = [markdown.prose(schema.get("description", ""))]
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None and high < _UNLIMITED and str(high) not in parts[0]:
        parts.append(f"From {low:,} to {high:,}.")
    if "default" in schema:
        parts.append(f"Default: {code(json.dumps(schema['default'], ensure_ascii=False))}.")
    return " ".join(part for part in parts if part)


def fields(schema: Schema, link: Callable[[str], str]) -> Iterator[tuple[str, str, str]]:
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        shown = code(name) + (" (required)" if name in required else "")
        yield shown, kind(field, link), meaning(field)
