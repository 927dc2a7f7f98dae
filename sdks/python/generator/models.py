"""Writes the pydantic models of every schema."""

import textwrap
from graphlib import TopologicalSorter
from typing import Any

from generator.descriptions import Json, name_of, names_in, snake

HEADER = '''"""The models of the API. Generated from the descriptions in openapi/: do not edit."""

# ruff: noqa: E501
from datetime import date, datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AwareDatetime

from rota_sdk._model import Body, Model, OpenEnum
'''

# Errors are exceptions here, and some responses have one model together.
LEFT_OUT = {"Error", "RateLimited", "RateLimitedBody", "RateLimitCode", "ValidationError"}
LEFT_OUT |= {"ValidationErrorBody", "CheckoutResponse", "LowerPlanResponse", "ApiVersion"}


# Schemas that a client both sends and receives, by the name of what it receives. What is sent may
# have no unknown field. What is received may have some, if the service is newer than the SDK.
RECEIVED = {"TaskBody": "ScheduledTask"}


class Writer:
    def __init__(self, schemas: dict[str, Json], sent: set[str], received: set[str]) -> None:
        self.schemas = {name: each for name, each in schemas.items() if name not in LEFT_OUT}
        self.sent = sent
        both = {name for name in sent & received if "enum" not in schemas[name]}
        if both != set(RECEIVED):
            raise ValueError(f"RECEIVED must have a name for each of {sorted(both)}.")
        for name, alias in RECEIVED.items():
            self.schemas[alias] = schemas[name]

    def module(self) -> str:
        exported = "".join(f'    "{name}",\n' for name in sorted(self.schemas))
        parts = [HEADER, f"__all__ = [\n{exported}]"]
        enums = {name for name, schema in self.schemas.items() if "enum" in schema}
        parts += [self._enum(name, self.schemas[name]) for name in sorted(enums)]
        # A model comes after those that it refers to, so that no annotation has to be a text.
        needs = {
            name: sorted(names_in(schema) & set(self.schemas) - enums)
            for name, schema in self.schemas.items()
            if name not in enums
        }
        for name, alias in RECEIVED.items():
            for received in needs.values():
                received += [alias] if name in received else []
        order = TopologicalSorter(needs).static_order()
        parts += [self._model(name, self.schemas[name]) for name in order]
        return "\n\n".join(parts)

    def _enum(self, name: str, schema: Json) -> str:
        values = ", ".join(repr(value) for value in schema["enum"])
        doc = _doc(schema.get("description"), "")
        return f"{name}: TypeAlias = Annotated[Literal[{values}], OpenEnum()]\n{doc}"

    def _model(self, name: str, schema: Json) -> str:
        base, own = "Model", schema
        if "allOf" in schema:
            reference, own = schema["allOf"]
            base = name_of(reference["$ref"])
        is_body = name in self.sent
        if is_body:
            base = "Body"
        lines = [f"class {name}({base}):", _doc(schema.get("description"), "    ")]
        required = set(own.get("required", ()))
        properties: dict[str, Json] = own["properties"]
        # Fields that must be given come first, as in a signature.
        lines += [
            self._field(field, properties[field], field in required, is_body)
            for field in sorted(properties, key=lambda each: each not in required)
        ]
        return "\n".join(lines)

    def _field(self, field: str, schema: Json, required: bool, is_body: bool) -> str:
        annotation = self._type(schema, is_body)
        default = ""
        if not required:
            value = schema.get("default")
            if value is None and not annotation.endswith("| None") and annotation != "Any":
                annotation += " | None"
            default = f" = {value!r}"
        lines = [f"    {snake(field)}: {annotation}{default}"]
        if "description" in schema:
            lines.append(_doc(schema["description"], "    "))
        return "\n".join(lines)

    def _type(self, schema: Json, is_body: bool) -> str:
        if "$ref" in schema:
            name = name_of(schema["$ref"])
            return name if is_body else RECEIVED.get(name, name)
        if "const" in schema:
            return f"Literal[{schema['const']!r}]"
        if "enum" in schema:
            return "Literal[" + ", ".join(repr(value) for value in schema["enum"]) + "]"
        if "anyOf" in schema:
            return self._union([self._type(choice, is_body) for choice in schema["anyOf"]])
        kinds = schema.get("type", "any")
        if isinstance(kinds, list):
            return self._union([self._type({**schema, "type": kind}, is_body) for kind in kinds])
        return self._plain(kinds, schema, is_body)

    def _plain(self, kind: str, schema: Json, is_body: bool) -> str:
        match kind, schema.get("format"):
            case "string", "date-time":
                return "AwareDatetime" if is_body else "datetime"
            case "string", "date":
                return "date"
            case "array", _:
                return f"list[{self._type(schema.get('items', {}), is_body)}]"
            case "object", _:
                values: Any = schema.get("additionalProperties")
                inner = self._type(values, is_body) if isinstance(values, dict) else "Any"
                return f"dict[str, {inner}]"
        # An integer stays one: the service sends 5 and not 5.0.
        names = {"string": "str", "integer": "int", "number": "int | float", "boolean": "bool"}
        return {**names, "null": "None", "any": "Any"}[kind]

    def _union(self, choices: list[str]) -> str:
        parts = [part for choice in choices for part in choice.split(" | ")]
        rest = [part for part in parts if part != "None"]
        return " | ".join(dict.fromkeys([*rest, *(["None"] if "None" in parts else [])]))


def _doc(text: str | None, indent: str) -> str:
    if not text:
        return ""
    wrapped = textwrap.wrap(text.replace("\\", "\\\\"), 100 - len(indent) - 3)
    lines = f"\n{indent}".join(wrapped)
    closing = f'\n{indent}"""' if len(wrapped) > 1 else '"""'
    return f'{indent}"""{lines}{closing}'
