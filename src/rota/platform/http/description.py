"""The OpenAPI description: FastAPI's own, completed and made smaller.

This adds every status that a route can return, its headers, and an example for every body, built
from the examples of its fields. What operations share becomes a component, and generated titles
are removed.
"""

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from rota.platform.http import components as shared
from rota.platform.http.components import Json, documented, ref
from rota.platform.http.schemas import CHANGES, EXTENDS, FIELDS

__all__ = ["describe", "documented"]

_LICENSE = {"name": "Apache 2.0", "identifier": "Apache-2.0"}
_SERVERS = [{"url": "/", "description": "The service that serves this description."}]
# FastAPI derives the names of headers from Python names, all in lower case.
_HEADER_NAMES = {
    "idempotency-key": "Idempotency-Key",
    "if-none-match": "If-None-Match",
    "last-event-id": "Last-Event-ID",
}
# The order of keywords in a schema: first what it is, then what it contains.
_FIRST = ("$ref", "type", "description")
_LAST = ("default", "examples")
# Pydantic uses its own keywords for bounds if a type has a BeforeValidator.
_BOUNDS = {"ge": "minimum", "le": "maximum"}


def describe(
    app: FastAPI, *, unlimited: tuple[str, ...], enums: dict[str, list[str]]
) -> dict[str, Any]:
    """The whole description.

    Paths that begin with one of `unlimited` have no rate limit. `enums` gives the values of
    schemas that depend on the deployment.
    """
    if app.openapi_schema is None:
        app.openapi_schema = _Description(app, unlimited, enums).build()
    return app.openapi_schema


class _Description:
    def __init__(
        self, app: FastAPI, unlimited: tuple[str, ...], enums: dict[str, list[str]]
    ) -> None:
        self._unlimited = unlimited
        self._document = get_openapi(
            title=app.title,
            version=version("rota"),
            description=_unwrapped(app.description),
            routes=app.routes,
            license_info=_LICENSE,
            servers=_SERVERS,
            separate_input_output_schemas=app.separate_input_output_schemas,
        )
        self._scopes = {
            route.unique_id: scopes
            for route in app.routes
            if isinstance(route, APIRoute) and (scopes := _scopes(route))
        }
        # Who can use a route, beside scopes.
        self._rules = {
            route.unique_id: rule
            for route in app.routes
            if isinstance(route, APIRoute) and (rule := _rule(route))
        }
        # FastAPI's own schemas, for the 422 that is never sent.
        found = self._document["components"]["schemas"]
        self._schemas: Json = {
            name: _tidy(schema)
            for name, schema in found.items()
            if name not in ("HTTPValidationError", "ValidationError")
        } | shared.SCHEMAS
        for name, values in enums.items():
            self._schemas[name] |= {"enum": values, "examples": values[:1]}
            for schema in self._schemas.values():
                _keep_examples(schema, ref("schemas", name)["$ref"], values)
        for schema in self._schemas.values():
            if EXTENDS in schema:
                _extend(schema, self._schemas)
        self._parameters: Json = {}
        self._examples: Json = {}
        self._errors: set[str] = set()

    def build(self) -> dict[str, Any]:
        paths = self._document["paths"]
        used: set[str] = set()
        for path, item in paths.items():
            for operation in item.values():
                self._complete(operation, limited=not path.startswith(self._unlimited))
                used |= set(operation.get("tags", ()))
        for schema in self._schemas.values():
            _drop_markers(schema)
        return {
            "openapi": self._document["openapi"],
            "x-generated": "make openapi",
            "info": self._document["info"],
            "servers": self._document["servers"],
            "tags": [
                {"name": name, "description": text}
                for name, text in shared.TAGS.items()
                if name in used
            ],
            "paths": paths,
            "components": {
                "securitySchemes": shared.SECURITY,
                "parameters": _sorted(self._parameters | shared.PARAMETERS),
                "headers": shared.HEADERS,
                "responses": shared.error_responses(self._errors),
                "schemas": _sorted(self._schemas),
                "examples": _sorted(self._examples),
            },
        }

    def _complete(self, operation: Json, *, limited: bool) -> None:
        self._complete_security(operation)
        if body := operation.get("requestBody"):
            self._complete_content(body)
        operation["responses"] = self._responses(operation, limited)
        operation["parameters"] = self._parameters_of(operation)

    def _complete_security(self, operation: Json) -> None:
        operation["description"] = _unwrapped(operation.get("description") or operation["summary"])
        scopes = self._scopes.get(operation["operationId"], ())
        if {"401", "403"} <= operation["responses"].keys():
            operation["security"] = [{"bearer": [*scopes]}]
        if scopes:
            noun, names = "scope" if len(scopes) == 1 else "scopes", "` and `".join(scopes)
            operation["description"] += f"\n\nAn API key needs the {noun} `{names}`."
        if rule := self._rules.get(operation["operationId"]):
            operation["description"] += f" {rule}" if scopes else f"\n\n{rule}"

    def _responses(self, operation: Json, limited: bool) -> Json:
        responses = operation["responses"]
        responses.pop("422", None)
        statuses = {int(status) for status in responses} | {*shared.ANYWHERE}
        if limited:
            statuses.add(429)
        if "requestBody" in operation:
            statuses |= {408, 413, 415}
        return {
            str(status): self._response(operation, status, responses.get(str(status), {}))
            for status in sorted(statuses)
        }

    def _response(self, operation: Json, status: int, response: Json) -> Json:
        # A route that describes the body of an error does not use the shared one.
        if status >= 400 and "content" not in response:
            found = shared.error_ref(status)
            self._errors.add(found["$ref"].rpartition("/")[2])
            return found
        self._complete_content(response)
        if response["description"] == "Successful Response":
            response["description"] = self._meaning(response)
        names = {parameter["name"] for parameter in operation.get("parameters", ())}
        more = ("Idempotent-Replayed",) if status < 300 and "idempotency-key" in names else ()
        response["headers"] = response.get("headers", {}) | shared.headers(*more)
        return response

    def _meaning(self, response: Json) -> str:
        names = [n for each in response.get("content", {}).values() for n in _names(each["schema"])]
        texts = [self._schemas[name].get("description", name) for name in names]
        return " Or: ".join(texts) or "Success."

    def _complete_content(self, body: Json) -> None:
        for kind, content in body.get("content", {}).items():
            content["schema"] = _tidy(content["schema"])
            if {"example", "examples"} & content.keys() or kind == "text/plain":
                continue
            content["examples"] = {name: self._share(name) for name in _names(content["schema"])}

    def _share(self, name: str) -> Json:
        self._examples[name] = {"value": self._example(self._schemas[name])}
        return ref("examples", name)

    def _parameters_of(self, operation: Json) -> list[Json]:
        found = []
        for parameter in operation.get("parameters", ()):
            parameter["schema"] = _without_null(_tidy(parameter["schema"]))
            # The parameter itself also has the description.
            parameter["schema"].pop("description", None)
            if parameter["schema"].get("type") == "array":
                # Several values are separated by commas.
                parameter |= {"style": "form", "explode": False}
            if parameter["in"] == "header":
                parameter["name"] = _HEADER_NAMES.get(parameter["name"], parameter["name"])
            found.append(shared.share_parameter(parameter, self._parameters))
        if "security" in operation:
            found.append(ref("parameters", "ServiceAccount"))
        return [*found, ref("parameters", "ApiVersion")]

    def _example(self, schema: Json) -> Any:
        """An example of a schema, built from the examples of its fields."""
        if CHANGES in schema:
            rest = {word: value for word, value in schema.items() if word != CHANGES}
            return self._example(rest) | dict(schema[CHANGES])
        for word in ("examples", "enum"):
            if word in schema:
                return schema[word][0]
        if "$ref" in schema:
            return self._example(self._schemas[schema["$ref"].rpartition("/")[2]])
        if "const" in schema:
            return schema["const"]
        if "anyOf" in schema:
            return self._example(schema["anyOf"][0])
        if "allOf" in schema:
            return {k: v for part in schema["allOf"] for k, v in self._example(part).items()}
        if schema.get("type") == "array":
            return [self._example(schema["items"])]
        fields = schema.get("properties", {})
        names: list[str] = schema.get(FIELDS, list(fields))
        return {name: self._example(fields[name]) for name in names}


def _scopes(route: APIRoute) -> tuple[str, ...]:
    """The scopes that a route requires through one of its dependencies."""
    found = [getattr(each.call, "scopes", ()) for each in route.dependant.dependencies]
    return next(filter(None, found), ())


def _rule(route: APIRoute) -> str:
    """Who can use a route, as one of its dependencies says it."""
    return " ".join(getattr(each.call, "rule", "") for each in route.dependant.dependencies)


def _unwrapped(text: str) -> str:
    """The text with one line per paragraph. Code blocks do not change."""
    paragraphs = text.strip().split("\n\n")
    return "\n\n".join(
        each if each.startswith("```") else each.replace("\n", " ") for each in paragraphs
    )


def _sorted(component: Json) -> Json:
    return dict(sorted(component.items()))


def _names(schema: Json) -> list[str]:
    """The schemas that a body can have."""
    found = [schema.get("$ref", ""), *(each.get("$ref", "") for each in schema.get("anyOf", ()))]
    return [name.rpartition("/")[2] for name in found if name]


def _subschemas(schema: Json) -> Iterator[tuple[Any, Any, Json]]:
    """Each schema directly inside this one, with its container and its key in it."""
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield schema, word, schema[word]
    properties = schema.get("properties", {})
    for name, each in properties.items():
        yield properties, name, each
    for index, each in enumerate(schema.get("anyOf", ())):
        yield schema["anyOf"], index, each


def _tidy(schema: Json) -> Json:
    """The schema with JSON Schema keywords only, without generated titles, as short as possible."""
    schema = {_BOUNDS.get(word, word): value for word, value in schema.items()}
    # FastAPI and Pydantic generate titles from names, which add nothing.
    schema.pop("title", None)
    for bound in ("minimum", "maximum"):
        if isinstance(schema.get(bound), float) and schema[bound].is_integer():
            schema[bound] = int(schema[bound])
    if "description" in schema:
        schema["description"] = _unwrapped(schema["description"])
    for holder, key, each in _subschemas(schema):
        holder[key] = _tidy(each)
    choices = schema.get("anyOf", ())
    if len(choices) == 2 and choices[1] == {"type": "null"} and _is_plain(choices[0]):
        # `type: [string, "null"]` instead of two alternatives.
        del schema["anyOf"]
        schema = {**choices[0], "type": [choices[0]["type"], "null"], **schema}
    return _ordered(schema)


def _ordered(schema: Json) -> Json:
    middle = [word for word in schema if word not in (*_FIRST, *_LAST)]
    return {word: schema[word] for word in (*_FIRST, *middle, *_LAST) if word in schema}


def _is_plain(schema: Json) -> bool:
    return isinstance(schema.get("type"), str) and not {"enum", "const"} & schema.keys()


def _without_null(schema: Json) -> Json:
    """A parameter is absent or has a value. A URL or a header cannot contain null."""
    if isinstance(schema.get("type"), list):
        schema["type"] = schema["type"][0]
    if "anyOf" in schema:
        (choice, _) = schema.pop("anyOf")
        schema = {**choice, **schema}
    return schema


def _keep_examples(schema: Json, reference: str, values: list[str]) -> None:
    """Removes examples that this deployment does not have."""
    for _, _, each in _subschemas(schema):
        if any(choice.get("$ref") == reference for choice in (each, *each.get("anyOf", ()))):
            found = [value for value in each.pop("examples", ()) if value in (None, *values)]
            each |= {"examples": found} if found else {}
        _keep_examples(each, reference, values)


def _extend(schema: Json, schemas: Json) -> None:
    """Describes only what a schema adds to the one that it extends."""
    parent = schema.pop(EXTENDS)
    own = {word: schema.pop(word) for word in ("properties", "required")}
    inherited = schemas[parent]["properties"]
    schema.pop("type")
    schema["allOf"] = [
        ref("schemas", parent),
        {
            "type": "object",
            "properties": {k: v for k, v in own["properties"].items() if k not in inherited},
            "required": [name for name in own["required"] if name not in inherited],
        },
    ]


def _drop_markers(schema: Json) -> None:
    for marker in (CHANGES, FIELDS):
        schema.pop(marker, None)
    for _, _, each in _subschemas(schema):
        _drop_markers(each)
