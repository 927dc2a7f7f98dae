"""What wire shapes are made of: camelCase outside, snake_case inside, strict types."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from rota.platform import clock

_DIGITS = re.compile(r"-?[0-9]{1,10}")


class Body(BaseModel):
    """A request body. Unknown fields are ignored and can never set anything."""

    model_config = ConfigDict(
        alias_generator=to_camel, strict=True, extra="ignore", frozen=True, allow_inf_nan=False
    )


class Wire(BaseModel):
    """A response body."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


Timestamp = Annotated[
    datetime,
    PlainSerializer(clock.to_wire, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise PydanticCustomError("text", "must not contain a NUL character")
    return text


# Text from a path or a query; in bodies the JSON reader has looked already.
Text = Annotated[str, AfterValidator(_no_nul)]


def _whole_number(value: Any) -> Any:
    if isinstance(value, str):
        if not _DIGITS.fullmatch(value):
            raise PydanticCustomError("whole_number", "must be a whole number")
        return int(value)
    return value


# A query's whole number: digits only, where Pydantic alone would also take "5.0" and " 5 ".
QueryInt = Annotated[int, BeforeValidator(_whole_number)]


def _moment(value: Any) -> Any:
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is not None:
                # Here, because the first and the last day there is have no UTC in some offsets.
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
