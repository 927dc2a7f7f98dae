"""What the endpoints refuse before an operation begins, and how they say so."""

import json
from typing import Any

import pytest

from tests.a2a.client import SENT, rest, rpc
from tests.assertions import assert_error
from tests.programs import ALLOWED
from tests.service import Service


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"message": {}},
        {"message": {**SENT["message"], "parts": []}},
        {"message": {**SENT["message"], "messageId": ""}},
        {"message": {**SENT["message"], "parts": [{"text": "x" * 50_001}]}},
        {"message": {**SENT["message"], "contextId": "x" * 256}},
        {"message": SENT["message"], "configuration": {"historyLength": -1}},
        {"message": "x"},
    ],
)
async def test_incomplete_messages_are_refused(
    endpoints: Service, secret: str, sent: dict[str, Any]
) -> None:
    assert (await rpc(endpoints, secret, "SendMessage", sent)).json()["error"]["code"] == -32602
    assert (await rest(endpoints, secret, "/message:send", sent)).status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"",
        b'{"jsonrpc":"2.0","id":1,"method":"ListTasks","method":"GetTask"}',
        b'{"message":{"messageId":"\\ud800"}}',
        b'{"message":{"messageId":"a\\u0000"}}',
        b"[" * 100 + b"]" * 100,
    ],
)
async def test_bodies_that_are_not_json_are_refused(
    endpoints: Service, secret: str, body: bytes
) -> None:
    headers = {
        "Authorization": f"Bearer {secret}",
        "Content-Type": "application/a2a+json",
        "A2A-Version": "1.0",
    }
    answer = await endpoints.http.post("/a2a", content=body, headers=headers)
    assert answer.json()["error"]["code"] == -32700
    answer = await endpoints.http.post("/a2a/message:send", content=body, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["status"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "path",
    [
        "/%00/tasks",
        "/%00/.well-known/agent-card.json",
        "/%00/extendedAgentCard",
        "/tasks?contextId=a%00",
    ],
)
async def test_a_url_with_what_no_database_stores_is_refused(
    endpoints: Service, secret: str, path: str
) -> None:
    assert_error(await rest(endpoints, secret, path), 400, "VALIDATION_ERROR")


async def test_another_version_of_the_protocol_is_refused(endpoints: Service, secret: str) -> None:
    for version in ("", "0.3", "2.0"):
        headers = {"A2A-Version": version}
        error = (await rpc(endpoints, secret, headers=headers)).json()["error"]
        assert error["code"] == -32009
        assert (await rest(endpoints, secret, headers=headers)).status_code == 400
    answer = await rest(endpoints, secret, "/tasks?A2A-Version=1.0", headers={"A2A-Version": ""})
    assert answer.status_code == 200


async def test_the_endpoints_refuse_what_is_not_the_protocol(
    endpoints: Service, secret: str
) -> None:
    headers = {"Authorization": f"Bearer {secret}", "A2A-Version": "1.0"}
    plain = {**headers, "Content-Type": "text/plain"}
    for path in ("/a2a", "/a2a/message:send"):
        answer = await endpoints.http.post(path, content=b"{}", headers=plain)
        assert answer.status_code == 415
        [info] = answer.json()["error"].get("data") or answer.json()["error"]["details"]
        assert info["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"
        assert info["metadata"]["code"] == "UNSUPPORTED_MEDIA_TYPE"
        assert_error(await endpoints.http.get(path, headers=headers), 405, "METHOD_NOT_ALLOWED")
    for origin, status in (
        (endpoints.settings.public_url, 200),
        (ALLOWED, 200),
        ("https://evil.example", 403),
        ("null", 403),
    ):
        assert (await rpc(endpoints, secret, headers={"Origin": origin})).status_code == status
        assert (await rest(endpoints, secret, headers={"Origin": origin})).status_code == status
    slash = await endpoints.http.post("/a2a/", content=b"{}", headers=plain)
    assert slash.status_code == 415
    error = (await rpc(endpoints, secret, "tasks/get")).json()["error"]
    assert error["code"] == -32601


@pytest.mark.parametrize("version", ["", "0.3"])
async def test_a_request_of_another_version_learns_which_header_to_send(
    endpoints: Service, secret: str, version: str
) -> None:
    headers = {"A2A-Version": version, "X-Request-Id": "req-18"}
    # A client of version 0.3 also calls methods by other names.
    answers = [
        (await rpc(endpoints, secret, "message/send", headers=headers)).json()["error"],
        (await rest(endpoints, secret, headers=headers)).json()["error"],
    ]
    for error in answers:
        assert "Send the header A2A-Version: 1.0." in error["message"]
        [info] = error.get("data") or error["details"]
        assert info["reason"] == "VERSION_NOT_SUPPORTED"
        assert info["metadata"]["requestId"] == "req-18"


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        ([], -32600, "must be one JSON object"),
        (None, -32600, "must be one JSON object"),
        ({"id": 7, "method": "ListTasks"}, -32600, '"jsonrpc": "2.0"'),
        ({"jsonrpc": "2.0", "id": 7}, -32600, "has no method"),
        ({"jsonrpc": "2.0", "id": 7, "method": "tasks/get"}, -32601, "are SendMessage, "),
        ({"jsonrpc": "2.0", "id": 7, "method": "GetTask", "params": []}, -32602, "params: must"),
    ],
)
async def test_what_is_not_a_call_is_refused_in_plain_words(
    endpoints: Service, secret: str, call: Any, code: int, words: str
) -> None:
    headers = {
        "Authorization": f"Bearer {secret}",
        "Content-Type": "application/json",
        "A2A-Version": "1.0",
    }
    body = json.dumps(call)
    answer = (await endpoints.http.post("/a2a", content=body, headers=headers)).json()
    assert (answer["error"]["code"], answer["id"]) == (code, 7 if call else None)
    assert words in answer["error"]["message"]
    assert "requestId" in answer["error"]["data"][0]["metadata"]


async def test_a_body_that_is_not_an_object_is_refused(endpoints: Service, secret: str) -> None:
    headers = {"Authorization": f"Bearer {secret}", "A2A-Version": "1.0"}
    for body in (b"[]", b"null", b"1"):
        sent = {**headers, "Content-Type": "application/json"}
        answer = await endpoints.http.post("/a2a/message:send", content=body, headers=sent)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"].startswith("The request body must be one JSON")


async def test_missing_fields_are_named_as_the_client_writes_them(
    endpoints: Service, secret: str
) -> None:
    # Roles had other names in version 0.3.
    sent = {"message": {"role": "user", "parts": [{"text": "Hello"}]}}
    before = await _calls(endpoints)
    answers = [
        (await rpc(endpoints, secret, "SendMessage", sent)).json()["error"],
        (await rest(endpoints, secret, "/message:send", sent)).json()["error"],
    ]
    for error in answers:
        assert error["message"] == (
            "The request is not valid. message.messageId: Field is required; "
            "message.role: must be ROLE_USER"
        )
        info = (error.get("data") or error["details"])[0]["metadata"]
        assert info["code"] == "VALIDATION_ERROR"
        assert "requestId" in info
    assert await _calls(endpoints) - before == 2


async def _calls(service: Service) -> float:
    """How many messages were refused because of what is in them."""
    name = 'rota_a2a_calls_total{operation="SendMessage",outcome="VALIDATION_ERROR"} '
    metrics = (await service.http.get("/metrics")).text
    return sum(float(line.removeprefix(name)) for line in metrics.splitlines() if name in line)
