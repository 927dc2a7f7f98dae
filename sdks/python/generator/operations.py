"""Writes the table of operations: the method, the path and the response of each."""

from generator.descriptions import Json, name_of

JSON = "application/json"

HEADER = '''"""The operations of the API. Generated from openapi/: do not edit."""

from rota_sdk import models
from rota_sdk._model import Model
from rota_sdk._operation import Operation

API_VERSION = "{version}"

'''


def module(operations: dict[str, tuple[str, str, Json]], version: str) -> str:
    parts = [HEADER.format(version=version)]
    for name, (method, path, operation) in operations.items():
        response = response_of(name, operation)
        keyed = any(part["name"] == "Idempotency-Key" for part in operation["parameters"])
        parts.append(f"{name} = Operation({method!r}, {path!r}, {response}, is_keyed={keyed})\n")
    return "".join(parts)


def response_of(name: str, operation: Json) -> str:
    """The model of the response; of the resource, if there can be a quote instead."""
    responses = operation["responses"]
    found = responses.get("201") or responses["200"]
    if JSON not in found["content"]:
        return "models.Event" if "text/event-stream" in found["content"] else "Model"
    schema = found["content"][JSON]["schema"]
    if "$ref" in schema:
        return "models." + name_of(schema["$ref"])
    # One of several responses: a model by hand has the fields of all of them.
    return "models." + "".join(word.capitalize() for word in name.split("_")) + "Response"
