"""Converts tool results to their form in responses and in the timeline."""

from typing import Any

import mcp_types as types

from rota.platform import json

# The maximum length of one result in a task's timeline. Models read less.
MAX_STORED_CHARACTERS = 256 * 1024


def content_blocks(result: types.CallToolResult) -> list[dict[str, Any]]:
    """The content blocks as the server sent them."""
    return [
        block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content
    ]


def timeline_result(result: types.CallToolResult) -> Any:
    """A result as the timeline stores it: plain text if it contains only text."""
    blocks = [_without_data(block) for block in content_blocks(result)]
    if result.structured_content is not None:
        return _storable({"structuredContent": result.structured_content, "content": blocks})
    if all(block.get("type") == "text" for block in blocks):
        return _storable("\n".join(str(block.get("text", "")) for block in blocks))
    return _storable({"content": blocks})


def _without_data(block: dict[str, Any]) -> dict[str, Any]:
    """Replaces the data of an image or audio block with its size. Models do not read it."""
    data = block.get("data")
    if block.get("type") in ("image", "audio") and isinstance(data, str):
        return {**{k: v for k, v in block.items() if k != "data"}, "dataCharacters": len(data)}
    return block


def _storable(value: Any) -> Any:
    """The value, or the beginning of its JSON text if it is too long."""
    text = value if isinstance(value, str) else json.dumps(value).decode()
    if len(text) > MAX_STORED_CHARACTERS:
        return f"{text[:MAX_STORED_CHARACTERS]}\n[truncated from {len(text)} characters]"
    return value
