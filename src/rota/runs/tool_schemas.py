"""Keeps the schemas of tools as a provider wants them.

The library rewrites the schema of every tool for each model call, which takes 0.16 ms for a usual
one: with ten tools, a fifth of what a call costs a worker. The tools of an agent rarely change.
"""

from typing import Any

from pydantic_ai.profiles import JsonSchemaTransformer

from rota.platform import json
from rota.platform.cache import SizedCache

# Of the schemas that are kept, as JSON, and what each one has besides. Their objects need about ten
# times as much memory.
MAX_BYTES = 4 * 1024 * 1024
ENTRY_BYTES = 100

Key = tuple[bytes, bool | None]
# The rewritten schema, and whether a provider can enforce it.
Kept = tuple[dict[str, Any], bool]


def keeping(transformer: type[JsonSchemaTransformer]) -> type[JsonSchemaTransformer]:
    """A transformer with the same results, which must not be changed."""
    found: SizedCache[Key, Kept] = SizedCache(MAX_BYTES)

    class Keeping(transformer):  # type: ignore[misc,valid-type]
        def __init__(self, schema: dict[str, Any], *, strict: bool | None = None) -> None:
            self.schema = schema
            self.strict = strict
            self.is_strict_compatible = True

        def walk(self) -> dict[str, Any]:
            key = (json.dumps(self.schema), self.strict)
            kept = found.get(key)
            if kept is None:
                original = transformer(self.schema, strict=self.strict)
                kept = original.walk(), original.is_strict_compatible
                found.put(key, kept, len(key[0]) + ENTRY_BYTES)
            schema, self.is_strict_compatible = kept
            return schema

    return Keeping
