"""The descriptions of both variants as one: an SDK serves both."""

import json
import re
from pathlib import Path
from typing import Any

Json = dict[str, Any]

ROOT = Path(__file__).parents[3]
FILES = ("variant-a.json", "variant-b.json")


def load() -> list[Json]:
    return [json.loads((ROOT / "openapi" / name).read_text()) for name in FILES]


def merged_schemas(descriptions: list[Json]) -> dict[str, Json]:
    """Every schema by its name. An enum has the values of both variants."""
    merged: dict[str, Json] = {}
    for description in descriptions:
        for name, schema in description["components"]["schemas"].items():
            known = merged.setdefault(name, schema)
            if "enum" in schema:
                values = dict.fromkeys([*known["enum"], *schema["enum"]])
                merged[name] = {**known, "enum": list(values)}
            elif set(known.get("properties", ())) != set(schema.get("properties", ())):
                raise ValueError(f"{name} has other fields in the other variant.")
    results = merged["CreateTasksResponse"]["properties"]["results"]
    merged["TaskResult"] = any_of(
        merged, results["items"]["anyOf"], "The outcome of one task of a batch."
    )
    results["items"] = {"$ref": "#/components/schemas/TaskResult"}
    [_, _, subscribe] = merged_operations(descriptions)["subscribe"]
    merged["SubscribeResponse"] = any_of(
        merged,
        subscribe["responses"]["200"]["content"]["application/json"]["schema"]["anyOf"],
        "A checkout to pay at, or the subscription if nothing is to be paid now.",
    )
    return dict(sorted(merged.items()))


def in_requests(descriptions: list[Json], schemas: dict[str, Json]) -> set[str]:
    """The schemas that a client sends."""
    return _reached((_parts(descriptions, "requestBody")), schemas)


def in_responses(descriptions: list[Json], schemas: dict[str, Json]) -> set[str]:
    """The schemas that a client receives."""
    return _reached((_parts(descriptions, "responses")), schemas)


def _parts(descriptions: list[Json], name: str) -> list[Any]:
    return [
        operation.get(name)
        for description in descriptions
        for item in description["paths"].values()
        for operation in item.values()
    ]


def _reached(part: Any, schemas: dict[str, Json]) -> set[str]:
    reached: set[str] = set()
    waiting = names_in(part)
    while waiting:
        name = waiting.pop()
        if name in schemas and name not in reached:
            reached.add(name)
            waiting |= names_in(schemas[name])
    return reached


def names_in(part: Any) -> set[str]:
    """The schemas that a part refers to."""
    found = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(part))
    return set(found)


def any_of(schemas: dict[str, Json], choices: list[Json], description: str) -> Json:
    """One schema for one of several: a field that not all of them have can be null."""
    found = [schemas[name_of(choice["$ref"])] for choice in choices]
    properties: Json = {}
    for schema in found:
        for name, field in schema["properties"].items():
            everywhere = all(name in each.get("required", ()) for each in found)
            if "type" in field and field["type"] == "null":
                continue
            properties[name] = field if everywhere else _nullable(field)
    required = [
        name for name in properties if all(name in each.get("required", ()) for each in found)
    ]
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": required,
    }


def _nullable(field: Json) -> Json:
    about = {"description": field["description"]} if "description" in field else {}
    return {**about, "anyOf": [field, {"type": "null"}]}


def merged_operations(descriptions: list[Json]) -> dict[str, tuple[str, str, Json]]:
    """Every operation by its ID: the method, the path and its description."""
    merged: dict[str, tuple[str, str, Json]] = {}
    for description in descriptions:
        for path, item in description["paths"].items():
            for method, operation in item.items():
                whole = {
                    **operation,
                    "parameters": [
                        _resolved(description, part) for part in operation.get("parameters", ())
                    ],
                }
                merged.setdefault(operation["operationId"], (method.upper(), path, whole))
    return dict(sorted(merged.items()))


def _resolved(description: Json, part: Json) -> Json:
    if "$ref" not in part:
        return part
    _, _, kind, name = part["$ref"].split("/")
    found: Json = description["components"][kind][name]
    return found


def name_of(ref: str) -> str:
    return ref.rpartition("/")[2]


def snake(name: str) -> str:
    """`createdAt` as `created_at`, and `from`, which is a word of Python, as `from_`."""
    found = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()
    return f"{found}_" if found in ("from", "in", "is") else found
