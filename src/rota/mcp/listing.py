"""Reads what a server says of its tools, within bounds."""

from collections.abc import Iterable
from typing import Any

import mcp_types as types
import orjson

from rota.mcp.errors import BadServer
from rota.mcp.model import Definition

MAX_TOOLS = 500
MAX_PAGES = 50
MAX_NAME_CHARACTERS = 128
MAX_DEFINITION_BYTES = 64 * 1024
MAX_LISTING_BYTES = 2 * 1024 * 1024


def definitions(tools: Iterable[types.Tool]) -> dict[str, Definition]:
    """The tools by name, in the server's order."""
    found: dict[str, Definition] = {}
    size = 0
    for tool in tools:
        definition = _definition(tool)
        try:
            raw = orjson.dumps(definition)
        except (TypeError, ValueError, RecursionError):
            raise BadServer("A tool's definition is no JSON that can be kept.") from None
        size += len(raw)
        if len(raw) > MAX_DEFINITION_BYTES or size > MAX_LISTING_BYTES:
            raise BadServer("The definitions of its tools are too large.")
        if b"\\u0000" in raw:
            raise BadServer("A tool's definition contains a NUL character.")
        if not 1 <= len(tool.name) <= MAX_NAME_CHARACTERS or not tool.name.isprintable():
            raise BadServer("A tool has no proper name.")
        if tool.name in found:
            raise BadServer(f"Two of its tools are called {tool.name!r}.")
        found[tool.name] = definition
        if len(found) > MAX_TOOLS:
            raise BadServer(f"It has more than {MAX_TOOLS} tools.")
    return found


def _definition(tool: types.Tool) -> Definition:
    def plain(value: Any) -> Any:
        return value.model_dump(mode="json", by_alias=True, exclude_none=True) if value else None

    definition = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": plain(tool.annotations),
    }
    # As it will be read back, so that comparing is comparing.
    return orjson.loads(orjson.dumps(definition))  # type: ignore[no-any-return]
