"""Secrets in responses to requests that can be repeated: they are never stored."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, get_args

import pytest
from fastapi.routing import APIRoute
from pydantic import BaseModel
from typing_extensions import TypeAliasType

from rota.app import create_app
from rota.platform.http.schemas import STORED, ShownOnce, Wire, doc
from rota.platform.settings import Settings
from tests.openapi.document import VARIANTS, VariantName, describe, operations

SECRET = re.compile(r"secret|token|password|credential|(key|url|link)$")
# Texts with such a name that are not secret, or that a repeated request needs.
NOT_SECRET = {
    *("checkout_url", "server.url", "webhook.url"),
    *("review.items.server_url", "review.history.items.server_url"),
}
[_, MARK] = get_args(ShownOnce)


def parts_of(annotation: Any) -> Iterator[Any]:
    """A type and those that it consists of: the items of a list, or what an alias stands for."""
    yield annotation
    is_alias = isinstance(annotation, TypeAliasType)
    for part in (annotation.__value__,) if is_alias else get_args(annotation):
        yield from parts_of(part)


def models_of(annotation: Any) -> Iterator[type[BaseModel]]:
    for part in parts_of(annotation):
        if isinstance(part, type) and issubclass(part, BaseModel):
            yield part


def unmarked(model: type[BaseModel], place: str = "") -> Iterator[str]:
    """The texts that could be secrets by their name, and would be stored."""
    for name, field in model.model_fields.items():
        parts = [*parts_of(field.annotation), *field.metadata]
        if str in parts and SECRET.search(name) and MARK not in parts:
            yield f"{place}{name}"
        for inner in models_of(field.annotation):
            yield from unmarked(inner, f"{place}{name}.")


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_secret_in_a_response_that_is_stored_is_marked(variant: VariantName) -> None:
    repeatable = {
        operation["operationId"]
        for _, _, operation in operations(describe(variant))
        if {"$ref": "#/components/parameters/IdempotencyKey"} in operation.get("parameters", ())
    }
    assert len(repeatable) > 15
    responses: dict[str, Any] = {
        route.name: route.response_model
        for route in create_app(Settings(variant=variant)).routes
        if isinstance(route, APIRoute) and route.name in repeatable
    }
    assert responses.keys() == repeatable
    found = {
        place
        for response in responses.values()
        for model in models_of(response)
        for place in unmarked(model)
    }
    assert found - NOT_SECRET == set()


class Inner(Wire):
    token: ShownOnce


class Outer(Wire):
    parts: list[Inner]
    either: Inner | None


def test_a_secret_is_not_stored_wherever_it_is_in_the_response() -> None:
    inner = Inner(token="t")
    response = Outer(parts=[inner], either=inner)
    assert "t" in response.model_dump_json(context=None)
    stored = response.model_dump(mode="json", context=STORED)
    assert stored == {"parts": [{"token": None}], "either": {"token": None}}


def test_what_looks_like_a_secret_is_found_in_every_part_of_a_response() -> None:
    class Plain(Wire):
        access_token: str
        tokens: int

    named = TypeAliasType("named", Annotated[str, doc("A name.")])
    plain = TypeAliasType("plain", Annotated[Plain, doc("A part.")])

    class Nested(Wire):
        secret: ShownOnce
        link: named
        items: list[Plain] | None
        part: plain | None

    assert list(unmarked(Nested)) == ["link", "items.access_token", "part.access_token"]
