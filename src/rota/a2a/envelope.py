"""What a request needs before an operation begins: the version of the protocol, a JSON object as
its body and, over JSON-RPC, a method that exists.

The SDK checks most of this too, but its errors are those of its parsers.
"""

import re
from typing import Any

from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.utils.constants import PROTOCOL_VERSION_1_0, VERSION_HEADER
from a2a.utils.errors import InvalidParamsError
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.message import Message
from starlette.requests import Request

from rota.platform import json
from rota.platform.errors import (
    ApiError,
    FieldError,
    NotFound,
    UnsupportedMediaType,
    ValidationFailed,
)

MEDIA_TYPES = ("application/json", "application/a2a+json")
METHODS = tuple(JsonRpcDispatcher.METHOD_TO_MODEL)
_MAJOR = PROTOCOL_VERSION_1_0.partition(".")[0]


class VersionRefused(ApiError):
    status = 400
    code = "VALIDATION_ERROR"

    def __init__(self, version: str) -> None:
        sent = f"This agent does not support version {version[:20]!r} of A2A."
        if not version:
            sent = "A request without a version has version 0.3, which this agent does not support."
        super().__init__(f"{sent} Send the header {VERSION_HEADER}: {PROTOCOL_VERSION_1_0}.")


class NotJson(ValidationFailed):
    def __init__(self, reason: json.InvalidJson) -> None:
        super().__init__(f"The request body is not valid JSON: {reason}.")


class NotACall(ValidationFailed):
    """The body is JSON, but not a request."""


class UnknownMethod(NotFound):
    def __init__(self, method: str) -> None:
        super().__init__(
            f"The method {method[:100]!r} does not exist. The methods of A2A "
            f"{PROTOCOL_VERSION_1_0} are {', '.join(METHODS)}."
        )


def version_of(request: Request) -> str:
    return request.headers.get(VERSION_HEADER) or request.query_params.get(VERSION_HEADER) or ""


def check_version(request: Request) -> None:
    version = version_of(request)
    if version.partition(".")[0] != _MAJOR:
        raise VersionRefused(version)


def read_object(request: Request, body: bytes) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in MEDIA_TYPES:
        raise UnsupportedMediaType(
            "The request body must be JSON. Send the header Content-Type: application/json or "
            "application/a2a+json."
        )
    try:
        # The SDK accepts more, such as texts that no database can store.
        sent = json.loads(body)
    except json.InvalidJson as error:
        raise NotJson(error) from None
    if not isinstance(sent, dict):
        raise NotACall("The request body must be one JSON object. Send one request at a time.")
    return sent


def params_of(call: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a JSON-RPC request."""
    if call.get("jsonrpc") != "2.0":
        raise NotACall('The request has no "jsonrpc": "2.0". Send a JSON-RPC 2.0 request.')
    method, params = call.get("method"), call.get("params", {})
    if not isinstance(method, str):
        raise NotACall("The request has no method. Send its name as `method`.")
    if method not in METHODS:
        raise UnknownMethod(method)
    if not isinstance(params, dict):
        raise ValidationFailed.of(FieldError("params", "must be an object"))
    return params


def check_required(params: Message) -> None:
    """Refuses parameters that lack what the protocol requires."""
    try:
        validate_proto_required_fields(params)
    except InvalidParamsError as error:
        found: Any = error.data
        raise ValidationFailed.of(
            *[_missing(each["field"], each["message"]) for each in found["errors"]]
        ) from None


def _missing(field: str, message: str) -> FieldError:
    # The SDK writes the names as they are in its own code.
    name = re.sub("_([a-z])", lambda match: match[1].upper(), field)
    # It also takes a role that it does not know for none.
    wanted = "must be ROLE_USER" if name == "message.role" else message.rstrip(".")
    return FieldError(name, wanted)
