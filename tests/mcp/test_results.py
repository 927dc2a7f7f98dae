"""Tool results in the timeline."""

import mcp_types as types

from rota.mcp.results import MAX_STORED_CHARACTERS, timeline_result


def text(value: str) -> types.TextContent:
    return types.TextContent(type="text", text=value)


def test_plain_text_is_stored_as_text() -> None:
    assert timeline_result(types.CallToolResult(content=[text("a"), text("b")])) == "a\nb"


def test_structured_content_is_stored_with_the_text() -> None:
    result = types.CallToolResult(content=[text("a")], structured_content={"n": [1, "x"]})
    assert timeline_result(result) == {
        "structuredContent": {"n": [1, "x"]},
        "content": [{"type": "text", "text": "a"}],
    }


def test_image_data_is_replaced_by_its_size() -> None:
    picture = types.ImageContent(type="image", data="AAAA", mime_type="image/png")
    assert timeline_result(types.CallToolResult(content=[picture])) == {
        "content": [{"type": "image", "mimeType": "image/png", "dataCharacters": 4}]
    }


def test_an_integer_above_64_bits_stays_an_integer() -> None:
    # A float would be rounded: it is equal to 2**70, but to no number beside it.
    result = types.CallToolResult(content=[], structured_content={"n": 2**70 + 1})
    assert timeline_result(result) == {"structuredContent": {"n": 2**70 + 1}, "content": []}


def test_long_results_are_cut() -> None:
    result = timeline_result(
        types.CallToolResult(content=[], structured_content={"a": "x" * MAX_STORED_CHARACTERS})
    )
    assert isinstance(result, str)
    assert "[truncated from" in result[-45:]
