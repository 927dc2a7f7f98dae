"""The components of the OpenAPI description that many operations share.

Errors, headers and header parameters are the same everywhere, because the outermost layer of the
service adds them to every request. Operations refer to them by name.
"""

from typing import Any

from rota.platform.errors import CODES
from rota.platform.http import examples
from rota.platform.http.edge import API_VERSION
from rota.platform.http.schemas import COMPONENT

Json = dict[str, Any]

# Every operation can return these: an unknown Api-Version, an internal error, a shutdown.
ANYWHERE = (400, 500, 503)
JSON = "application/json"

# Tags in the order in which the description lists them.
TAGS = {
    "Tasks": "Give work to an agent, follow it, and approve what it does. A task whose agent is "
    "in the catalog runs here. Any other task is a record that your client updates.",
    "Schedules": "Create tasks at the times of a cron expression.",
    "Webhooks": "Send the events of an account to your endpoints.",
    "Agents": "The catalog of agents: what each one does and which tier it needs. These "
    "operations also count toward the lower rate limit for AI endpoints.",
    "Tool servers": "Connect Model Context Protocol (MCP) servers, whose tools agents can call.",
    "Events": "What happens in the account, as server-sent events.",
    "Credits": "The balance, top-ups, every movement of money, and usage.",
    "Subscriptions": "The tier of the account and the plan that pays for it.",
    "Connect pass": "A paid add-on for personal accounts. It allows more than one tool server.",
    "Companies": "Accounts that several users share, with roles. They need a session token.",
    "Audit": "Who did what: a chain of entries that can be verified.",
    "Policies": "Who can decide in the account, and what waits for a decision. They need a session "
    "token.",
    "Data": "Everything that the account owns: its export and its erasure. They need the session "
    "token of an owner.",
    "Rules": "Standing rules: calls of a tool that need no review. They need a session token.",
    "Notifications": "What a user is notified about, by email and in a chat. They need a "
    "session token.",
    "Account": "The user and the accounts behind a credential.",
    "API keys": "Credentials for programs. Only a session token can manage them.",
    "Auth": "Sign in with an ID token, renew the session, and sign out.",
    "Health": "For load balancers and monitoring. No authentication, no rate limit.",
}

SECURITY: Json = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "Send `Authorization: Bearer <credential>`. The credential is an API key "
        "(`rota_…`, from `POST /api/keys`) or a session token (a JWT, from "
        "`POST /api/auth/session`). A session token has every scope. An API key has the scopes "
        "that it was created with; each operation names the scope it requires.",
    },
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "__Host-rota",
        "description": "A session token, for pages of this service, in place of `bearer`. "
        "`POST /api/auth/session` and `POST /api/auth/code` set it. The request must have "
        "`Sec-Fetch-Site: same-origin`, or this service's own origin in `Origin`. An Authorization "
        "header takes precedence. On http and a loopback address, the name is `rota`.",
    },
}


def ref(kind: str, name: str) -> Json:
    return {"$ref": f"#/components/{kind}/{name}"}


def _text(description: str, example: str, **more: Any) -> Json:
    return {"type": "string", "description": description, "examples": [example], **more}


def _object(description: str, properties: Json, required: tuple[str, ...]) -> Json:
    return {
        "type": "object",
        "description": description,
        "required": list(required),
        "additionalProperties": False,
        "properties": properties,
    }


def _error_body(description: str, details: Json) -> Json:
    return _object(
        description,
        {
            "message": _text(
                "What happened and what to do next, as readable text. The wording can change.",
                "Task not found.",
            ),
            "code": _text(
                "A code for programs to check. Check the HTTP status first; "
                "some errors have no code.",
                "NOT_FOUND",
            ),
            "details": details,
            "timestamp": _text(
                "When the error happened, in UTC.", examples.CREATED, format="date-time"
            ),
            "path": _text("The path of the request.", f"/api/tasks/{examples.TASK_ID}"),
        },
        ("message", "timestamp", "path"),
    )


def _envelope(description: str, body: str) -> Json:
    error = ref("schemas", body) | {"description": "What went wrong."}
    return _object(description, {"error": error}, ("error",))


SCHEMAS: Json = {
    "ApiVersion": {
        "type": "string",
        "enum": [API_VERSION],
        "description": "The date of the API contract. A breaking change gets a new date.",
        "examples": [API_VERSION],
    },
    "Error": _envelope("The body of a failed request.", "ErrorBody"),
    "ErrorBody": _error_body(
        "Describes an error.",
        {
            "description": "More about the error. The fields depend on `code`; most errors have "
            "no details.",
            "examples": [{"difference": []}],
        },
    ),
    "ValidationError": _envelope("The body of a request that is not valid.", "ValidationErrorBody"),
    "ValidationErrorBody": _error_body(
        "Describes why a request is not valid.",
        {
            "type": "array",
            "description": "The problems and where they are, at most 20.",
            "items": ref("schemas", "FieldError"),
        },
    ),
    "FieldError": _object(
        "One problem with a request.",
        {
            "field": _text(
                "The field, parameter or header. Nested fields are separated by dots, such as "
                "`decisions.0.id`. Empty if the problem is the whole body.",
                "name",
            ),
            "message": _text("What is wrong with it.", "Field required"),
        },
        ("field", "message"),
    ),
    "RateLimited": _envelope("The body of a request over the rate limit.", "RateLimitedBody"),
    "RateLimitCode": {
        "type": "string",
        "enum": ["RATE_LIMIT_EXCEEDED", "RATE_LIMITED"],
        "description": "`RATE_LIMIT_EXCEEDED`: too many requests in 60 seconds. "
        "`RATE_LIMITED`: the account has too much in progress at once.",
        "examples": ["RATE_LIMIT_EXCEEDED"],
    },
    "RateLimitedBody": _object(
        "Describes a limit. The Retry-After header says how long to wait.",
        {
            "message": _text(
                "What happened and how long to wait, as readable text.",
                "Too many requests. Wait 12 s before the next one.",
            ),
            "code": ref("schemas", "RateLimitCode") | {"description": "Which limit was met."},
            "timestamp": _text(
                "When the error happened, in UTC. Only with `RATE_LIMITED`.",
                examples.CREATED,
                format="date-time",
            ),
            "path": _text("The path of the request. Only with `RATE_LIMITED`.", "/api/tasks"),
        },
        ("message", "code"),
    ),
}


def _header(description: str, schema: Json, *, required: bool = True) -> Json:
    return {"description": description, "required": required, "schema": schema}


def _whole(example: int) -> Json:
    return {"type": "integer", "minimum": 0, "examples": [example]}


HEADERS: Json = {
    "RateLimit-Limit": _header(
        "The number of requests that the account can send in 60 seconds.", _whole(600)
    ),
    "RateLimit-Remaining": _header(
        "The number of requests that are left in the current window.", _whole(599)
    ),
    "RateLimit-Reset": _header("Seconds until another request is available.", _whole(60)),
    "RateLimit-Policy": _header(
        "Each limit that applies, with its window in seconds. AI endpoints have two.",
        {"type": "string", "examples": ["600;w=60"]},
    ),
    "X-Request-Id": _header(
        "The ID of this request: the one you sent in X-Request-Id, or a new one. "
        "Quote it when you report a problem.",
        {"type": "string", "examples": ["b2f0c1d54c0e4f0f9f6f0c3f0d1f7a55"]},
    ),
    "Api-Version": _header("The date of the API contract in use.", ref("schemas", "ApiVersion")),
    "Retry-After": _header("Seconds to wait before the next request.", _whole(12)),
    "WWW-Authenticate": _header(
        "How to authenticate.", {"const": "Bearer", "examples": ["Bearer"]}
    ),
    "Idempotent-Replayed": _header(
        "Present when this is the stored response of an earlier request with the same "
        "Idempotency-Key.",
        {"const": "true", "examples": ["true"]},
        required=False,
    ),
    "Set-Cookie": _header(
        "The session cookie, if the request asks for one or has one.",
        {"type": "string", "examples": ["__Host-rota=eyJ…; Path=/; Secure; HttpOnly"]},
        required=False,
    ),
}
ON_EVERY_RESPONSE = tuple(HEADERS)[:6]

PARAMETERS: Json = {
    "ApiVersion": {
        "name": "Api-Version",
        "in": "header",
        "required": False,
        "description": "Pins the date of the API contract. An unknown date returns 400. "
        "Without it, the service uses its newest contract.",
        "schema": ref("schemas", "ApiVersion"),
    },
    "ServiceAccount": {
        "name": "X-Service-Account",
        "in": "header",
        "required": False,
        "description": "The account to act for: `personal`, `company` (if you belong to exactly "
        "one company) or an account ID. Default: the personal account; for an API key, the "
        "account of the key. An account that you do not belong to returns 403.",
        "schema": {"type": "string", "examples": ["personal"]},
    },
}

# Status: component name, meaning, and an example message.
_ERRORS = {
    400: (
        "BadRequest",
        "The request is not valid. `details` names each field and problem.",
        "The request is not valid. name: Field required",
    ),
    401: (
        "Unauthorized",
        "The credential is missing, expired or not valid.",
        "Authentication required. Send the header Authorization: Bearer <API key or token>.",
    ),
    402: (
        "PaymentRequired",
        "The payment processor refused, or the balance does not cover the hold "
        "(`INSUFFICIENT_CREDITS`).",
        "The run's budget of $0.50 must be available before it starts. Top up with POST "
        "/api/credits/topup, or wait until other tasks end and release their holds. GET "
        "/api/credits/balance shows what is available.",
    ),
    403: (
        "Forbidden",
        "The caller's tier, role or scopes do not allow this.",
        "This API key lacks the scope tasks:write. Create a key that has it.",
    ),
    404: (
        "NotFound",
        "The resource does not exist in the selected account.",
        "Task not found.",
    ),
    408: (
        "RequestTimeout",
        "The request body arrived too slowly. The connection closes.",
        "The request body did not arrive completely in time. Send the request again.",
    ),
    409: (
        "Conflict",
        "The request conflicts with the current state, or the Idempotency-Key was used for "
        "another request.",
        "A task that is COMPLETED cannot become RUNNING. COMPLETED is final.",
    ),
    413: (
        "PayloadTooLarge",
        "The request body is larger than 2 MiB.",
        "The request body is larger than 2097152 bytes. Send the data in smaller requests.",
    ),
    415: (
        "UnsupportedMediaType",
        "The request body is not JSON.",
        "The request body must be JSON. Send the header Content-Type: application/json.",
    ),
    429: (
        "RateLimited",
        "Too many requests, or too much in progress at once (`RATE_LIMITED`). Wait as long as "
        "Retry-After says.",
        "Too many requests. Wait 12 s before the next one.",
    ),
    500: (
        "ServerError",
        "An unexpected error. Try again, and wait longer each time.",
        "An internal error occurred. Try again. If it happens again, report the X-Request-Id.",
    ),
    502: (
        "BadGateway",
        "The tool server failed or refused the call.",
        "The tool server failed. The server responded with 500.",
    ),
    503: (
        "Unavailable",
        "A service that this operation needs is down, or this process is full or shutting down. "
        "Try again.",
        "The service is shutting down. Try again.",
    ),
    504: (
        "GatewayTimeout",
        "The tool server did not respond in time. The message says whether the call may have taken "
        "effect.",
        "The tool server did not respond in time. The response took longer than 60 s.",
    ),
}
_CODES = {402: "INSUFFICIENT_CREDITS", 502: "TOOL_SERVER_ERROR", 504: "TOOL_SERVER_TIMEOUT"}
_SCHEMA_OF = {400: "ValidationError", 429: "RateLimited"}
_HEADER_OF = {401: "WWW-Authenticate", 429: "Retry-After"}


def documented(*statuses: int) -> dict[int | str, Json]:
    """The error responses of a route, for its `responses`."""
    return {status: {"description": _ERRORS[status][1]} for status in statuses}


def headers(*more: str) -> Json:
    return {name: ref("headers", name) for name in (*ON_EVERY_RESPONSE, *more)}


def error_ref(status: int) -> Json:
    return ref("responses", _ERRORS[status][0])


def error_responses(used: set[str]) -> Json:
    """The shared error responses that are used."""
    return {
        name: _error_response(status, description, message)
        for status, (name, description, message) in _ERRORS.items()
        if name in used
    }


def _error_response(status: int, description: str, message: str) -> Json:
    error: Json = {"message": message, "code": _CODES.get(status) or CODES.get(status)}
    if status == 429:
        error["code"] = "RATE_LIMIT_EXCEEDED"
    else:
        if status == 400:
            error["details"] = [{"field": "name", "message": "Field required"}]
        error |= {"timestamp": examples.CREATED, "path": "/api/tasks"}
    more = (_HEADER_OF[status],) if status in _HEADER_OF else ()
    schema = ref("schemas", _SCHEMA_OF.get(status, "Error"))
    return {
        "description": description,
        "headers": headers(*more),
        "content": {JSON: {"schema": schema, "example": {"error": error}}},
    }


def share_parameter(parameter: Json, components: Json) -> Json:
    """Moves a shared parameter to the components, and returns the reference to it."""
    name = parameter["schema"].pop(COMPONENT, None)
    if name is None:
        return parameter
    known = components.setdefault(name, parameter)
    if known != parameter:
        raise ValueError(f"two parameters are called {name}: {known} and {parameter}")
    return ref("parameters", name)
