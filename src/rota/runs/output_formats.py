"""How a request asks for output that matches a schema, where the provider enforces it."""

from dataclasses import replace
from typing import Any

import structlog
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from rota.platform import json
from rota.platform.canonical import canonical_json, digest
from rota.runs.model_errors import ModelRefusedRequest, classify_error
from rota.runs.models import PricedModel

log = structlog.get_logger()

# Schemas that providers have refused. They are few, and a forgotten one is refused again.
MAX_REFUSED = 1_000


class SchemaRefused(Exception):
    """The provider may have refused the schema of the output. The next request is without it."""


class OutputFormats:
    """Requests with the schema of the output, for providers that enforce it."""

    def __init__(self) -> None:
        self._refused: set[tuple[str, str | None, str, str]] = set()

    def parameters(
        self, chosen: PricedModel, tools: list[ToolDefinition], schema: dict[str, Any] | None
    ) -> ModelRequestParameters:
        if schema is None or not self._is_native(chosen, schema):
            return ModelRequestParameters(function_tools=tools)
        return replace(_with_schema(schema), function_tools=tools)

    def _is_native(self, chosen: PricedModel, schema: dict[str, Any]) -> bool:
        if not _enforces_schemas(chosen.model) or _key(chosen, schema) in self._refused:
            return False
        # Resolving references can multiply a schema. The check afterwards needs no copy.
        text = json.dumps(schema)
        if b'"$ref"' in text or b'"$dynamicRef"' in text:
            return False
        try:
            chosen.model.prepare_request(chosen.settings, _with_schema(schema))
        except Exception as error:
            # The client library cannot translate every schema for its provider.
            log.info("output_schema_not_sent", model=chosen.name, error=type(error).__name__)
            return False
        return True

    def is_refused(
        self,
        chosen: PricedModel,
        parameters: ModelRequestParameters,
        schema: dict[str, Any] | None,
        error: Exception,
    ) -> bool:
        """Whether a provider may have refused the schema. The next request is without it.

        Providers accept only parts of JSON Schema, and each a different one.
        """
        if schema is None or parameters.output_mode != "native":
            return False
        if not isinstance(classify_error(error), ModelRefusedRequest):
            return False
        if len(self._refused) >= MAX_REFUSED:
            self._refused.clear()
        self._refused.add(_key(chosen, schema))
        return True


def _with_schema(schema: dict[str, Any]) -> ModelRequestParameters:
    return ModelRequestParameters(
        output_mode="native",
        output_object=OutputObjectDefinition(json_schema=schema, name="output"),
    )


def _key(chosen: PricedModel, schema: dict[str, Any]) -> tuple[str, str | None, str, str]:
    """Two providers can have a model of the same name."""
    model = chosen.model
    return model.system, model.base_url, chosen.name, digest(canonical_json(schema))


def _enforces_schemas(model: Model) -> bool:
    """Whether the provider enforces a schema even in a request with tools, as all of ours are."""
    profile = model.profile
    if not profile.get("supports_json_schema_output", False):
        return False
    return "google" not in model.system or bool(
        profile.get("google_supports_tool_combination", False)
    )
