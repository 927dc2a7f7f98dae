"""The OpenAPI description: what FastAPI derives, plus what the edge does to every route.

Every status that a route can answer is listed. Routes name their own special
ones with `documented`; those that follow from taking a body or from being rate
limited are added here, once, for all. Examples are put together from those that
the fields of a shape give.
"""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from rota.platform.errors import CODES
from rota.platform.http.edge import API_VERSION

_MEANINGS = {
    400: "The request is not valid; `details` says where.",
    401: "Authentication is missing or not valid.",
    402: "The payment processor refused, or there is no money for this.",
    403: "The caller's tier, role or scope does not permit this.",
    404: "There is no such thing in the selected account.",
    409: "Conflict with the current state.",
    413: "The body is larger than 2 MiB.",
    415: "The body is not JSON.",
    429: "Too many requests; wait as long as Retry-After says.",
    500: "Unexpected; try again, waiting longer each time.",
    502: "The tool server failed.",
    503: "A part that this needs does not answer, or the service is being stopped.",
    504: "The tool server did not answer in time.",
}
_MOMENT = "2026-11-01T12:00:00.000Z"
_ANYWHERE = {400, 500, 503}


def _error_schema(details: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["error"],
        "additionalProperties": False,
        "properties": {
            "error": {
                "type": "object",
                "required": ["message", "timestamp", "path"],
                "additionalProperties": False,
                "properties": {
                    "message": {"type": "string", "description": "For people; says what to do."},
                    "code": {"type": "string", "description": "A hint; the status decides."},
                    "details": details,
                    "timestamp": {"type": "string", "format": "date-time"},
                    "path": {"type": "string", "description": "The path of the request."},
                },
            }
        },
    }


_SCHEMAS: dict[str, Any] = {
    "Error": _error_schema({"description": "More about it; its shape depends on the code."}),
    "ValidationError": _error_schema(
        {
            "type": "array",
            "description": "Each thing that is wrong, and where.",
            "items": {
                "type": "object",
                "required": ["field", "message"],
                "additionalProperties": False,
                "properties": {
                    "field": {"type": "string", "description": "Empty for the body as a whole."},
                    "message": {"type": "string"},
                },
            },
        }
    ),
    "RateLimited": {
        "type": "object",
        "required": ["error"],
        "additionalProperties": False,
        "properties": {
            "error": {
                "type": "object",
                "required": ["message", "code"],
                "additionalProperties": False,
                "properties": {
                    "message": {"type": "string"},
                    "code": {"const": "RATE_LIMIT_EXCEEDED"},
                },
            }
        },
    },
}
_SCHEMA_OF = {400: "ValidationError", 429: "RateLimited"}


def _header(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "required": True, "schema": schema}


_WHOLE = {"type": "integer", "minimum": 0}
_HEADERS: dict[str, Any] = {
    "RateLimit-Limit": _header("The ceiling of the 60 s window.", _WHOLE),
    "RateLimit-Remaining": _header("Requests left in it.", _WHOLE),
    "RateLimit-Reset": _header("Seconds until a request is given back.", _WHOLE),
    "RateLimit-Policy": _header(
        "The ceilings that count.", {"type": "string", "examples": ["600;w=60, 300;w=60"]}
    ),
    "X-Request-Id": _header(
        "The caller's own, or a new one. Quote it to support.", {"type": "string"}
    ),
    "Api-Version": _header("The contract's date.", {"const": API_VERSION}),
}
_RETRY_AFTER = _header("Seconds to wait.", _WHOLE)
_AUTHENTICATE = _header("How to authenticate.", {"const": "Bearer"})
# Beside those that are on every response.
_HEADERS_OF = {"401": ("WWW-Authenticate",), "429": ("Retry-After",)}

_PARAMETERS: dict[str, Any] = {
    "ApiVersion": {
        "name": "Api-Version",
        "in": "header",
        "required": False,
        "description": "Pins the contract's date; an unknown one is refused.",
        "schema": {"type": "string", "enum": [API_VERSION]},
    },
    "ServiceAccount": {
        "name": "X-Service-Account",
        "in": "header",
        "required": False,
        "description": "The selected account: `personal`, `company`, or an account id.",
        "schema": {"type": "string", "examples": ["personal"]},
    },
}
_SECURITY: dict[str, Any] = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key (`rota_…`) or a session token.",
    }
}


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Statuses of a route's own, for its `responses`."""
    return {status: {"description": _MEANINGS[status]} for status in statuses}


def describe(app: FastAPI, *, unlimited: tuple[str, ...]) -> dict[str, Any]:
    """The whole description; paths that begin with one of `unlimited` have no rate limit."""
    if app.openapi_schema is None:
        app.openapi_schema = _describe(app, unlimited)
    return app.openapi_schema


def _describe(app: FastAPI, unlimited: tuple[str, ...]) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=API_VERSION,
        description=app.description,
        routes=app.routes,
        separate_input_output_schemas=app.separate_input_output_schemas,
    )
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    # FastAPI's own, for the 422 that is never sent.
    schemas.pop("HTTPValidationError", None)
    schemas |= _SCHEMAS
    components["headers"] = {
        **_HEADERS,
        "Retry-After": _RETRY_AFTER,
        "WWW-Authenticate": _AUTHENTICATE,
    }
    components["parameters"] = _PARAMETERS
    _translate_bounds(document)
    components["securitySchemes"] = _SECURITY
    for path, item in document["paths"].items():
        for operation in item.values():
            _complete(operation, path, schemas, limited=not path.startswith(unlimited))
    return document


def _translate_bounds(part: Any) -> None:
    """Pydantic leaves bounds in its own words where a type has a reader of its own."""
    if isinstance(part, list):
        for item in part:
            _translate_bounds(item)
    elif isinstance(part, dict):
        for word, right in (("ge", "minimum"), ("le", "maximum")):
            if isinstance(part.get(word), int):
                part[right] = part.pop(word)
        for item in part.values():
            _translate_bounds(item)


def _complete(
    operation: dict[str, Any], path: str, schemas: dict[str, Any], *, limited: bool
) -> None:
    responses = operation["responses"]
    if {"401", "403"} <= responses.keys():
        operation["security"] = [{"bearer": []}]
    responses.pop("422", None)
    statuses = {int(status) for status in responses} | _ANYWHERE
    if limited:
        statuses.add(429)
    if "requestBody" in operation:
        statuses |= {413, 415}
        _add_examples(operation["requestBody"], schemas)
    for status in sorted(statuses):
        response = responses.setdefault(str(status), {})
        # A route that answers a failure with a shape of its own has said so already.
        if status >= 400 and "content" not in response:
            response |= _error(status, path)
        else:
            _add_examples(response, schemas)
        if response["description"] == "Successful Response":
            response["description"] = operation["summary"]
        names = (*_HEADERS, *_HEADERS_OF.get(str(status), ()))
        response["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
    operation["responses"] = dict(sorted(responses.items()))
    parameters = operation.setdefault("parameters", [])
    parameters.append({"$ref": "#/components/parameters/ApiVersion"})
    if "security" in operation:
        parameters.append({"$ref": "#/components/parameters/ServiceAccount"})


def _error(status: int, path: str) -> dict[str, Any]:
    error: dict[str, Any] = {"message": _MEANINGS[status]}
    if status == 429:
        error["code"] = "RATE_LIMIT_EXCEEDED"
    else:
        if code := CODES.get(status):
            error["code"] = code
        if status == 400:
            error["details"] = [{"field": "name", "message": "Field required"}]
        error |= {"timestamp": _MOMENT, "path": path}
    schema = {"$ref": f"#/components/schemas/{_SCHEMA_OF.get(status, 'Error')}"}
    return {
        "description": _MEANINGS[status],
        "content": {"application/json": {"schema": schema, "example": {"error": error}}},
    }


def _add_examples(part: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Gives a request or a response an example, unless its route has."""
    for kind, content in part.get("content", {}).items():
        if kind == "application/json" and not {"example", "examples"} & content.keys():
            content["example"] = _example(content["schema"], schemas)


def _example(schema: dict[str, Any], schemas: dict[str, Any]) -> Any:
    if "$ref" in schema:
        return _example(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    for word in ("examples", "enum"):
        if word in schema:
            return schema[word][0]
    for word in ("const", "default"):
        if schema.get(word) is not None:
            return schema[word]
    if "anyOf" in schema:
        return _example(schema["anyOf"][0], schemas)
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {})
            return {name: _example(field, schemas) for name, field in fields.items()}
        case "array":
            return [_example(schema["items"], schemas)]
        case "boolean":
            return True
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "string":
            return _MOMENT if schema.get("format") == "date-time" else "text"
    return None
