"""What the endpoints refuse before an operation begins, and how they say so."""

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
    doors: Service, secret: str, sent: dict[str, Any]
) -> None:
    assert (await rpc(doors, secret, "SendMessage", sent)).json()["error"]["code"] == -32602
    assert (await rest(doors, secret, "/message:send", sent)).status_code == 400


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
    doors: Service, secret: str, body: bytes
) -> None:
    headers = {
        "Authorization": f"Bearer {secret}",
        "Content-Type": "application/a2a+json",
        "A2A-Version": "1.0",
    }
    answer = await doors.http.post("/a2a", content=body, headers=headers)
    assert answer.json()["error"]["code"] == -32700
    answer = await doors.http.post("/a2a/message:send", content=body, headers=headers)
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
    doors: Service, secret: str, path: str
) -> None:
    assert_error(await rest(doors, secret, path), 400, "VALIDATION_ERROR")


async def test_another_version_of_the_protocol_is_refused(doors: Service, secret: str) -> None:
    for version in ("", "0.3", "2.0"):
        headers = {"A2A-Version": version}
        error = (await rpc(doors, secret, headers=headers)).json()["error"]
        assert error["code"] == -32009
        assert (await rest(doors, secret, headers=headers)).status_code == 400
    answer = await rest(doors, secret, "/tasks?A2A-Version=1.0", headers={"A2A-Version": ""})
    assert answer.status_code == 200


async def test_the_endpoints_refuse_what_is_not_the_protocol(doors: Service, secret: str) -> None:
    headers = {"Authorization": f"Bearer {secret}", "A2A-Version": "1.0"}
    plain = {**headers, "Content-Type": "text/plain"}
    for path in ("/a2a", "/a2a/message:send"):
        answer = await doors.http.post(path, content=b"{}", headers=plain)
        assert answer.status_code == 415
        [info] = answer.json()["error"].get("data") or answer.json()["error"]["details"]
        assert info["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"
        assert info["metadata"]["code"] == "UNSUPPORTED_MEDIA_TYPE"
        assert_error(await doors.http.get(path, headers=headers), 405, "METHOD_NOT_ALLOWED")
    for origin, status in (
        (doors.settings.public_url, 200),
        (ALLOWED, 200),
        ("https://evil.example", 403),
        ("null", 403),
    ):
        assert (await rpc(doors, secret, headers={"Origin": origin})).status_code == status
        assert (await rest(doors, secret, headers={"Origin": origin})).status_code == status
    slash = await doors.http.post("/a2a/", content=b"{}", headers=plain)
    assert slash.status_code == 415
    error = (await rpc(doors, secret, "tasks/get")).json()["error"]
    assert error["code"] == -32601
