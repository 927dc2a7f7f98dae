"""Base classes and field types of public schemas: camelCase on the wire, strict types."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from fastapi import Path, Query
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    SerializationInfo,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from rota.platform import clock
from rota.platform.http import examples
from rota.platform.strict import StrictModel

W = TypeVar("W", bound="Wire")

# The name of the component that a parameter becomes in the OpenAPI description.
COMPONENT = "x-component"
# How the example of a body differs from the examples of its fields: other values, and which fields
# it shows.
CHANGES = "x-example-changes"
FIELDS = "x-example-fields"
# The name of the schema that this one adds fields to.
EXTENDS = "x-extends"

# Up to 2**53, the largest number that is exact in JSON everywhere.
_DIGITS = re.compile(r"-?[0-9]{1,16}")


class Body(StrictModel):
    """A request body. Unknown fields are refused."""

    model_config = ConfigDict(alias_generator=to_camel, strict=True, allow_inf_nan=False)


class Wire(BaseModel):
    """A response body."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


def resource_of(*bodies: type[Body]) -> Callable[[type[W]], type[W]]:
    """Marks the resource that these bodies create or change.

    The bodies ignore the fields of the resource that they cannot set, so a client can read an
    object, change it and send it back.
    """

    def mark(resource: type[W]) -> type[W]:
        shown = {field.alias or name for name, field in resource.model_fields.items()}
        for body in bodies:
            body.ignored = body.ignored | (shown - body.names)
        return resource

    return mark


Timestamp = Annotated[
    datetime,
    PlainSerializer(clock.to_wire, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": [examples.CREATED]}),
]


# The context of a response that is serialized to be stored.
STORED = "stored"


def _unless_stored(value: str | None, info: SerializationInfo) -> str | None:
    return None if info.context == STORED else value


# A secret in a response. It is never stored, so a repeated request gets null.
ShownOnce = Annotated[str | None, PlainSerializer(_unless_stored, return_type=str | None)]


def doc(description: str, *examples: Any, **constraints: Any) -> Any:
    """A field with its description and examples, for `Annotated`."""
    if examples:
        constraints["examples"] = list(examples)
    return Field(description=description, **constraints)


def shared(name: str) -> dict[str, Any]:
    """For `json_schema_extra`: the description lists the parameter once, under this name."""
    return {COMPONENT: name}


def example_with(**changes: Any) -> dict[str, Any]:
    """For `json_schema_extra`: the example of the referenced schema, with these changes."""
    # As pairs: FastAPI drops nulls from objects.
    return {CHANGES: [[name, value] for name, value in changes.items()]}


def example_of(*fields: str) -> ConfigDict:
    """For `model_config` of a body with optional fields: those that its example shows."""
    return ConfigDict(json_schema_extra={FIELDS: list(fields)})


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise PydanticCustomError("text", "must not contain a NUL character")
    return text


# Text from a path or a query. In bodies, the JSON reader has checked it.
Text = Annotated[str, AfterValidator(_no_nul)]

# Letters and symbols that nevertheless show nothing: Hangul fillers and the empty Braille pattern.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800")


def _shows(character: str) -> bool:
    """Whether a character is visible on its own: a letter, number, punctuation mark or symbol."""
    category = unicodedata.category(character)
    return (category[0] in "LNPS" or category == "Co") and character not in _BLANK


def _visible(text: str) -> str:
    if text and not any(map(_shows, text)):
        raise PydanticCustomError("visible", "must contain a visible character")
    return text


# For names. A name of only white space or invisible characters cannot be seen in a list.
Visible = AfterValidator(_visible)


def _whole_number(value: Any) -> Any:
    if isinstance(value, str):
        if not _DIGITS.fullmatch(value):
            raise PydanticCustomError("whole_number", "must be a whole number")
        return int(value)
    return value


# A whole number in a query: digits only. Pydantic alone also accepts "5.0" and " 5 ".
QueryInt = Annotated[int, BeforeValidator(_whole_number)]

Limit = Annotated[
    QueryInt,
    Query(
        ge=1,
        le=100,
        description="The maximum number of items to return, from 1 to 100.",
        examples=[20],
        json_schema_extra=shared("Limit"),
    ),
]
Offset = Annotated[
    QueryInt,
    Query(
        ge=0,
        le=2**31 - 1,
        description="The number of items to skip. For the second page of 20 items, send 20.",
        examples=[0],
        json_schema_extra=shared("Offset"),
    ),
]


class Several:
    """Values of a query parameter that are separated by commas, for `Annotated[list[str], …]`.

    `item` is the schema of one value. `read` returns the values to use, or None if one is wrong.
    """

    def __init__(
        self,
        item: dict[str, Any],
        read: Callable[[list[str]], Sequence[str] | None],
        message: str,
        most: int | None = None,
    ) -> None:
        self._item = item
        self._read = read
        self._message = message
        self._most = most

    @classmethod
    def of(cls, names: Sequence[str], component: str) -> "Several":
        """Some of these names, which are the values of this component. The order does not matter,
        so the names are read in theirs."""

        def read(sent: list[str]) -> Sequence[str] | None:
            return (
                tuple(name for name in names if name in sent) if set(sent) <= set(names) else None
            )

        known = f"{', '.join(names[:-1])} or {names[-1]}"
        item = {"$ref": f"#/components/schemas/{component}"}
        return cls(item, read, f"must be {known}; separate several with commas")

    @classmethod
    def like(cls, pattern: str, message: str, most: int) -> "Several":
        """Names that match this pattern."""
        compiled = re.compile(pattern)

        def read(sent: list[str]) -> Sequence[str] | None:
            return sent if all(map(compiled.fullmatch, sent)) else None

        return cls({"type": "string", "pattern": f"^{pattern}$"}, read, message, most)

    def _values(self, given: list[str]) -> Sequence[str]:
        found = self._read(",".join(given).split(","))
        if found is None:
            raise PydanticCustomError("several", "{message}", {"message": self._message})
        return found

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        given = core_schema.list_schema(core_schema.str_schema(), max_length=self._most)
        return core_schema.no_info_after_validator_function(self._values, given)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        most = {} if self._most is None else {"maxItems": self._most}
        return {"type": "array", "items": self._item, "minItems": 1, **most}


def path_id(noun: str, example: str) -> Any:
    """The parameter `{id}` of a path. IDs are opaque: an unknown one returns 404, never 400."""
    component = "".join(word.capitalize() for word in noun.split()) + "Id"
    return Path(
        description=f"The ID of the {noun}.",
        examples=[example],
        json_schema_extra=shared(component),
    )


Total = Annotated[
    int,
    Field(ge=0, description="The number of items on all pages, not only this one.", examples=[1]),
]
Count = Annotated[int, Field(ge=0, examples=[1])]


def _moment(value: Any) -> Any:
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is not None:
                # Converted here: the first and last representable days overflow in some offsets.
                return moment.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
        raise PydanticCustomError(
            "moment", "must be an ISO 8601 time with its offset, such as 2027-01-31T12:00:00Z"
        )
    return value


BodyTimestamp = Annotated[
    datetime,
    BeforeValidator(_moment),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2099-01-31T12:00:00Z"]}),
]
