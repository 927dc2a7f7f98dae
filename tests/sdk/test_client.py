"""What a client is made with: wrong options are refused at once, and connections have one owner."""

from typing import Any

import httpx
import pytest

from rota_sdk import AsyncRota, Rota, errors
from tests.sdk.any_client import AnyClient
from tests.sdk.test_retries import Stub, create, done, get


async def test_only_the_client_that_opened_the_connections_closes_them(kind: str) -> None:
    client = AnyClient.open(kind, "http://x", "rota_x")
    http = client.wrapped._transport.http
    await client.with_options(timeout=5).close()
    assert not http.is_closed
    await client.close()
    assert http.is_closed


async def test_an_http_client_of_the_caller_stays_open() -> None:
    async with httpx.AsyncClient() as own:
        async with AsyncRota(base_url="http://x", http_client=own):
            pass
        assert not own.is_closed
    with httpx.Client() as mine:
        with Rota(base_url="http://x", http_client=mine):
            pass
        assert not mine.is_closed


async def test_an_empty_key_is_not_replaced_by_that_of_the_environment(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_API_KEY", "rota_environment")
    for given, sent in ((None, "Bearer rota_environment"), ("", None), ("rota_x", "Bearer rota_x")):
        stub = Stub(done())
        await stub.client(kind, api_key=given)(get)
        assert stub.requests[0].headers.get("Authorization") == sent


async def test_the_url_and_the_account_of_the_environment_are_those_of_the_command_line(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_URL", "http://environment")
    monkeypatch.setenv("ROTA_ACCOUNT", "acct_environment")
    # The account of the environment belongs to the key of the environment.
    expected: list[tuple[dict[str, Any], str | None]] = [
        ({}, "acct_environment"),
        ({"account": "company"}, "company"),
        ({"api_key": "rota_x"}, None),
    ]
    for given, account in expected:
        stub = Stub(done())
        await stub.client(kind, base_url=None, **given)(get)
        [request] = stub.requests
        assert request.url.host == "environment"
        assert request.headers.get("X-Service-Account") == account
    monkeypatch.setenv("ROTA_BASE_URL", "http://own")
    stub = Stub(done())
    await stub.client(kind, base_url=None)(get)
    assert stub.requests[0].url.host == "own"


@pytest.mark.parametrize("key", ["", "a\nb", " a", "ä"])
async def test_an_idempotency_key_that_cannot_be_sent_is_refused(kind: str, key: str) -> None:
    with pytest.raises(ValueError, match="idempotency_key"):
        await Stub().client(kind)(lambda c: c.tasks.create(name="T", idempotency_key=key))


@pytest.mark.parametrize("task_id", [".", "..", "x" * 70_000])
async def test_an_id_that_changes_the_path_or_is_too_long_is_refused(
    kind: str, task_id: str
) -> None:
    with pytest.raises(ValueError, match=r"not valid|too long"):
        await Stub().client(kind)(lambda c: c.tasks.get(task_id))


async def test_a_response_that_cannot_be_decoded_is_a_connection_error(kind: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        # The content is decoded when the client reads it.
        return httpx.Response(
            200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"no gzip")
        )

    with pytest.raises(errors.APIConnectionError):
        await Stub().client(kind, answer=answer, max_retries=0)(create)


async def test_an_unreadable_response_does_not_show_the_token_of_an_invitation(kind: str) -> None:
    stub = Stub(httpx.Response(200, text="<html>"))
    with pytest.raises(errors.UnreadableResponseError) as caught:
        await stub.client(kind)(lambda c: c.companies.get_invitation("top-secret"))
    assert "top-secret" not in str(caught.value)
    assert "/invitations/{" in str(caught.value)
