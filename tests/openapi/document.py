"""Reading an OpenAPI description in tests."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import jsonschema_rs

from rota.app import create_app
from rota.platform.settings import Settings

FOLDER = Path(__file__).parents[2] / "openapi"
VariantName = Literal["a", "b"]
VARIANTS: tuple[VariantName, ...] = ("a", "b")
JSON = "application/json"

Json = dict[str, Any]


@cache
def describe(variant: VariantName) -> Json:
    return create_app(Settings(variant=variant)).openapi()


def operations(description: Json) -> Iterator[tuple[str, str, Json]]:
    for path, item in description["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


def resolved(description: Json, part: Json) -> Json:
    """The component that a part refers to, or the part itself."""
    if "$ref" not in part:
        return part
    _, _, kind, name = part["$ref"].split("/")
    found: Json = description["components"][kind][name]
    return found


def shapes(description: Json, operation: Json) -> Iterator[tuple[str, Json]]:
    """Each JSON body of an operation by a name: its schema and its examples."""
    if body := operation.get("requestBody"):
        yield "request", _shape(description, body["content"][JSON])
    for status, found in operation["responses"].items():
        if content := resolved(description, found).get("content", {}).get(JSON):
            yield status, _shape(description, content)


def _shape(description: Json, content: Json) -> Json:
    examples = [
        resolved(description, example)["value"] for example in content.get("examples", {}).values()
    ]
    if "example" in content:
        examples.append(content["example"])
    return {"schema": content["schema"], "examples": examples}


def subschemas(schema: Json, name: str) -> Iterator[tuple[str, Json]]:
    """The schema and every schema inside of it, by where it is."""
    yield name, schema
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from subschemas(schema[word], f"{name}.{word}")
    for index, choice in enumerate([*schema.get("anyOf", ()), *schema.get("allOf", ())]):
        yield from subschemas(choice, f"{name}.{index}")
    for field, inner in schema.get("properties", {}).items():
        yield from subschemas(inner, f"{name}.{field}")


def errors(description: Json, schema: Json, value: Any) -> list[str]:
    whole = {"components": description["components"], **schema}
    validator = jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
    return [error.message for error in validator.iter_errors(value)]
