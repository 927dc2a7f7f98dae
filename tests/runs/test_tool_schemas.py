"""The schemas of tools are rewritten for a provider once."""

from typing import Any

import pytest
from pydantic_ai.profiles import JsonSchemaTransformer
from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer

from rota.runs import model_clients
from rota.runs.model_clients import keeping


def schema(description: str = "How many.") -> dict[str, Any]:
    count = {"type": "integer", "minimum": 0, "description": description}
    return {"type": "object", "properties": {"count": count}, "required": ["count"]}


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The schemas that the library has rewritten."""
    found: list[Any] = []
    walk = OpenAIJsonSchemaTransformer.walk

    def watched(self: OpenAIJsonSchemaTransformer) -> dict[str, Any]:
        found.append(self.schema)
        return walk(self)

    monkeypatch.setattr(OpenAIJsonSchemaTransformer, "walk", watched)
    return found


def rewritten(
    transformer: type[JsonSchemaTransformer], given: dict[str, Any], strict: bool | None = None
) -> tuple[dict[str, Any], bool]:
    made = transformer(given, strict=strict)
    return made.walk(), made.is_strict_compatible


def test_the_result_is_that_of_the_library_and_is_made_once(walked: list[Any]) -> None:
    kept = keeping(OpenAIJsonSchemaTransformer)
    given = (schema(), schema("Other."), {"type": "object", "additionalProperties": True})
    for strict in (None, True, False):
        for each in given:
            plain = rewritten(OpenAIJsonSchemaTransformer, each, strict)
            walked.clear()
            # Equal, but not the same object.
            assert rewritten(kept, {**each}, strict) == plain
            assert len(walked) == 1
            assert rewritten(kept, {**each}, strict) == plain
            assert len(walked) == 1


def test_what_was_not_used_for_longest_is_forgotten(
    walked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_clients, "MAX_SCHEMA_BYTES", 700)
    kept = keeping(OpenAIJsonSchemaTransformer)
    for description in ("a", "b", "a", "c", "d" * 10, "a"):
        rewritten(kept, schema(description))
    assert [each["properties"]["count"]["description"] for each in walked] == [
        "a",
        "b",
        "c",
        "d" * 10,
    ]
    rewritten(kept, schema("b"))
    assert len(walked) == 5
    # Larger than all that may be kept: used, and forgotten.
    for _ in range(2):
        rewritten(kept, schema("x" * 500))
    assert len(walked) == 7
