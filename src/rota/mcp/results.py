"""Results of tools, as callers and models get them."""

from typing import Any

import mcp_types as types
import orjson

# What is kept of one result in a task's timeline; models read less.
MAX_KEPT_CHARACTERS = 256 * 1024


def shown(result: types.CallToolResult) -> list[dict[str, Any]]:
    """The content as the server sent it."""
    return [
        block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content
    ]


def kept(result: types.CallToolResult) -> Any:
    """A result as a run keeps it: plain text where that is all there is."""
    blocks = [_without_data(block) for block in shown(result)]
    if result.structured_content is not None:
        return _bounded({"structuredContent": result.structured_content, "content": blocks})
    if all(block.get("type") == "text" for block in blocks):
        return _bounded("\n".join(str(block.get("text", "")) for block in blocks))
    return _bounded({"content": blocks})


def _without_data(block: dict[str, Any]) -> dict[str, Any]:
    """Pictures and sounds are named, with their size; no model here reads them."""
    data = block.get("data")
    if block.get("type") in ("image", "audio") and isinstance(data, str):
        return {**{k: v for k, v in block.items() if k != "data"}, "dataCharacters": len(data)}
    return block


def _bounded(value: Any) -> Any:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    if len(text) > MAX_KEPT_CHARACTERS:
        return f"{text[:MAX_KEPT_CHARACTERS]}\n[cut: {len(text)} characters in all]"
    return value
