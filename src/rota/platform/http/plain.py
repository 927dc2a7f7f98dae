"""Calls the endpoints of plain routes.

Of all that FastAPI can do for an endpoint, nearly every route here uses the same: a JSON body, a
few parameters, dependencies on the request, and a model as the response. For such a route, this
does the same in less than half the time. It validates and serializes with FastAPI's own fields, and
a route that uses anything else keeps FastAPI's handler.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any

from fastapi._compat import ModelField, Undefined, field_annotation_is_sequence
from fastapi._compat.v2 import get_missing_field_error
from fastapi.datastructures import DefaultPlaceholder
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import _get_param_model
from fastapi.exceptions import EndpointContext, RequestValidationError, ResponseValidationError
from fastapi.params import Body, Form, Param
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class _NotPlain(Exception):
    pass


def plain_handler(route: APIRoute) -> Handler | None:
    """None if the route needs FastAPI's handler."""
    try:
        return _Plain(route)
    except _NotPlain:
        return None


class _Plain:
    def __init__(self, route: APIRoute) -> None:
        needs = route.dependant
        _only_plain(needs)
        _require(iscoroutinefunction(route.endpoint))
        self._endpoint: Callable[..., Coroutine[Any, Any, Any]] = route.endpoint
        self._request_name = needs.request_param_name
        self._dependencies = [_Dependency.of(each) for each in needs.dependencies]
        # FastAPI would call one that several parameters use only once.
        _require(len({each.call for each in self._dependencies}) == len(self._dependencies))
        self._path = [_Value.of(each) for each in needs.path_params]
        self._query = [_Value.of(each) for each in needs.query_params]
        self._headers = [_Value.of(each) for each in needs.header_params]
        _require(not route._embed_body_fields and len(needs.body_params) <= 1)
        self._body = _Value.of_body(needs.body_params[0]) if needs.body_params else None
        _require(route.response_field is not None and _has_plain_response(route))
        self._response_field = route.response_field
        self._status = route.status_code or 200
        # For the log, if a response is wrong.
        self._where = f"{', '.join(sorted(route.methods or ()))} {route.path_format}"

    async def __call__(self, request: Request) -> Response:
        values: dict[str, Any] = {}
        errors: list[Any] = []
        body = await _json_of(request) if self._body is not None else Undefined
        for dependency in self._dependencies:
            values[dependency.name] = await dependency.call(**{dependency.request: request})
        _read(self._path, request.path_params, values, errors)
        if self._query:
            _read(self._query, request.query_params, values, errors)
        if self._headers:
            _read(self._headers, request.headers, values, errors)
        if self._body is not None:
            self._body.read(body, values, errors)
        if errors:
            raise RequestValidationError(errors, body=None if body is Undefined else body)
        if self._request_name is not None:
            values[self._request_name] = request
        result = await self._endpoint(**values)
        return result if isinstance(result, Response) else self._response(result)

    def _response(self, result: Any) -> Response:
        assert self._response_field is not None
        checked, errors = self._response_field.validate(result, loc=("response",))
        if errors:
            where = EndpointContext(path=self._where)
            raise ResponseValidationError(errors, body=result, endpoint_ctx=where)
        content = self._response_field.serialize_json(checked)
        return Response(content, self._status, media_type="application/json")


@dataclass(frozen=True, slots=True)
class _Value:
    """A parameter or the body."""

    name: str
    # What a request calls it.
    alias: str
    # Where it is, for errors.
    location: tuple[str, ...]
    field: ModelField

    @classmethod
    def of(cls, field: ModelField) -> "_Value":
        info = field.field_info
        _require(_get_param_model(field) is None)
        _require(not field_annotation_is_sequence(info.annotation))
        _require(isinstance(info.validation_alias, str | None) and field.config is None)
        _require(not info.validate_default)
        assert isinstance(info, Param)
        alias = field.validation_alias or field.alias
        return cls(field.name, alias, (info.in_.value, alias), field)

    @classmethod
    def of_body(cls, field: ModelField) -> "_Value":
        info = field.field_info
        _require(isinstance(info, Body) and not isinstance(info, Form))
        _require(not info.validate_default)
        return cls(field.name, "", ("body",), field)

    def read(self, sent: Any, values: dict[str, Any], errors: list[Any]) -> None:
        if sent is not Undefined:
            value, found = self.field.validate(sent, loc=self.location)
            if found:
                errors += found
            else:
                values[self.name] = value
        elif self.field.field_info.is_required():
            errors.append(get_missing_field_error(self.location))
        else:
            values[self.name] = deepcopy(self.field.default)


@dataclass(frozen=True, slots=True)
class _Dependency:
    """A function of the request."""

    name: str
    call: Callable[..., Coroutine[Any, Any, Any]]
    # What it calls the request.
    request: str

    @classmethod
    def of(cls, needs: Dependant) -> "_Dependency":
        call, name, request = needs.call, needs.name, needs.request_param_name
        _only_plain(needs)
        _require(not needs.dependencies and not needs.body_params and not needs.header_params)
        _require(not needs.path_params and not needs.query_params)
        if call is None or name is None or request is None:
            raise _NotPlain
        _require(iscoroutinefunction(call) or iscoroutinefunction(type(call).__call__))
        return cls(name, call, request)


def _require(condition: bool) -> None:
    if not condition:
        raise _NotPlain


def _only_plain(needs: Dependant) -> None:
    _require(
        not needs.cookie_params
        and needs.response_param_name is None
        and needs.background_tasks_param_name is None
        and needs.http_connection_param_name is None
        and needs.websocket_param_name is None
        and needs.security_scopes_param_name is None
    )


def _has_plain_response(route: APIRoute) -> bool:
    return (
        isinstance(route.response_class, DefaultPlaceholder)
        and route.response_model_by_alias
        and not route.response_model_include
        and not route.response_model_exclude
        and not route.response_model_exclude_unset
        and not route.response_model_exclude_defaults
        and not route.response_model_exclude_none
    )


def _read(
    parameters: Sequence[_Value],
    sent: Mapping[str, str],
    values: dict[str, Any],
    errors: list[Any],
) -> None:
    for each in parameters:
        value = sent.get(each.alias)
        each.read(Undefined if value is None else value, values, errors)


async def _json_of(request: Request) -> Any:
    """The body. `Undefined` if the request has none."""
    try:
        return await request.json() if await request.body() else Undefined
    except HTTPException:
        raise
    except Exception as error:
        # For example, the client has disconnected.
        raise HTTPException(400, "The request body could not be read.") from error
