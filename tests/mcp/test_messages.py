"""Messages of tool servers are read as the MCP SDK reads them, only faster."""

import json
from typing import Any

import mcp_types as types
import pytest
from mcp_types import methods
from pydantic import ValidationError

from rota.mcp import messages

OURS: Any = types.jsonrpc_message_adapter
SDK: Any = messages._messages._adapter

MESSAGES = {
    "response": {"jsonrpc": "2.0", "id": 1, "result": {"tools": [], "n": 2**70, "x": 1.5}},
    "error": {"jsonrpc": "2.0", "id": "a", "error": {"code": -32600, "message": "No", "data": [1]}},
    "error without an ID": {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": ""}},
    "request": {"jsonrpc": "2.0", "id": 0, "method": "ping", "params": {"_meta": {"a": None}}},
    "notification": {"jsonrpc": "2.0", "method": "notifications/progress"},
    "result and error": {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}},
    "another version": {"jsonrpc": "1.0", "id": 1, "result": {}},
    "no ID": {"jsonrpc": "2.0", "result": {}},
    "ID with a fraction": {"jsonrpc": "2.0", "id": 1.5, "result": {}},
    "ID as text": {"jsonrpc": "2.0", "id": "1", "result": {}},
    "ID is true": {"jsonrpc": "2.0", "id": True, "result": {}},
    "result is a list": {"jsonrpc": "2.0", "id": 1, "result": []},
    "a batch": [{"jsonrpc": "2.0", "id": 1, "result": {}}],
    "a number": 7,
}
TEXTS = {
    **{name: json.dumps(message) for name, message in MESSAGES.items()},
    "not JSON": "{",
    "NaN": '{"jsonrpc": "2.0", "id": 1, "result": {"x": NaN}}',
    "a key twice": '{"jsonrpc": "2.0", "id": 1, "id": 2, "result": {}}',
    "a lone surrogate": r'{"jsonrpc": "2.0", "id": 1, "result": {"x": "\ud800"}}',
    "deeply nested": '{"jsonrpc": "2.0", "id": 1, "result": {"x": ' + "[" * 300 + "]" * 300 + "}}",
}


INVALID = {
    *("another version", "no ID", "ID with a fraction", "ID is true", "result is a list"),
    *("a batch", "a number", "not JSON", "a lone surrogate", "deeply nested"),
}


def outcome(adapter: Any, text: str | bytes) -> str:
    """The message, or that the SDK would get its own error."""
    try:
        return repr(adapter.validate_json(text, by_name=False))
    except ValidationError:
        return "invalid"


@pytest.mark.parametrize("name", TEXTS)
def test_a_message_is_read_as_the_sdk_reads_it(name: str) -> None:
    text = TEXTS[name]
    expected = outcome(SDK, text)
    assert outcome(OURS, text) == outcome(OURS, text.encode()) == expected
    assert (expected == "invalid") == (name in INVALID)


def test_a_result_is_validated_against_the_version_of_the_session() -> None:
    version = "2025-11-25"
    tool = {"name": "t", "inputSchema": {"type": "object"}}
    methods.validate_server_result("tools/list", version, {"tools": [tool]})
    with pytest.raises(ValidationError):
        methods.validate_server_result("tools/list", version, {"tools": [{"name": "t"}]})
    # The SDK takes this for a method that it does not know.
    with pytest.raises(KeyError):
        methods.validate_server_result("tools/other", version, {})
    with pytest.raises(ValueError, match="version"):
        methods.validate_server_result("tools/list", "2020-01-01", {"tools": [tool]})


def test_what_the_sdk_has_renamed_is_not_replaced_silently() -> None:
    with pytest.raises(ImportError, match=r"no mcp_types\.methods\.validate_result\."):
        messages._replace(methods, "validate_result", None)
    assert not hasattr(methods, "validate_result")
