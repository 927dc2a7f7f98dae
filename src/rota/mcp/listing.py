"""Reads the tool definitions that a server sends, within limits."""

from collections.abc import Iterable
from typing import Any

import mcp_types as types
import orjson

from rota.mcp.errors import InvalidResponse

MAX_TOOLS = 500
MAX_PAGES = 50
MAX_NAME_CHARACTERS = 128
MAX_DEFINITION_BYTES = 64 * 1024
MAX_LISTING_BYTES = 2 * 1024 * 1024


def definitions(tools: Iterable[types.Tool]) -> dict[str, bytes]:
    """The definitions as JSON, by tool name, in the server's order."""
    found: dict[str, bytes] = {}
    size = 0
    for tool in tools:
        try:
            definition = _definition(tool)
        except (TypeError, ValueError, RecursionError):
            raise InvalidResponse("A tool definition cannot be stored as JSON.") from None
        size += len(definition)
        if len(definition) > MAX_DEFINITION_BYTES:
            raise InvalidResponse(f"A tool definition is larger than {MAX_DEFINITION_BYTES} bytes.")
        if size > MAX_LISTING_BYTES:
            raise InvalidResponse(
                f"The tool definitions are larger than {MAX_LISTING_BYTES} bytes in total."
            )
        if b"\\u0000" in definition:
            raise InvalidResponse("A tool definition contains a NUL character.")
        if not 1 <= len(tool.name) <= MAX_NAME_CHARACTERS or not tool.name.isprintable():
            raise InvalidResponse(
                f"A tool name is not valid. It must have 1 to {MAX_NAME_CHARACTERS} "
                "printable characters."
            )
        if tool.name in found:
            raise InvalidResponse(f"Two tools have the name {tool.name!r}.")
        found[tool.name] = definition
        if len(found) > MAX_TOOLS:
            raise InvalidResponse(f"The server has more than {MAX_TOOLS} tools.")
    return found


def _definition(tool: types.Tool) -> bytes:
    def plain(value: Any) -> Any:
        return value.model_dump(mode="json", by_alias=True, exclude_none=True) if value else None

    return orjson.dumps(
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.input_schema,
            "outputSchema": tool.output_schema,
            "annotations": plain(tool.annotations),
        }
    )
