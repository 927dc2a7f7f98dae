"""What all models have in common."""

from typing import Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema


def _wire_name(name: str) -> str:
    return to_camel(name.removesuffix("_"))


class Model(BaseModel):
    """A part of a response. Fields of a newer service are kept as extra attributes."""

    model_config = ConfigDict(
        alias_generator=_wire_name,
        validate_by_name=True,
        validate_by_alias=True,
        extra="allow",
        # Most programs use few of the models, so each is built when it is used first.
        defer_build=True,
        protected_namespaces=(),
        # Bodies and responses have secrets: keys, tokens, headers of tool servers.
        hide_input_in_errors=True,
    )


class Body(Model):
    """A part of a request. An unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


class OpenEnum:
    """Accepts values of a newer service that this version of the SDK does not know."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.str_schema()
