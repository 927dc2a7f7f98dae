"""Errors: a class for each code, with everything that the response says."""

import asyncio
from typing import Any

import pytest

from rota_sdk import Rota, errors
from tests.sdk.any_client import AnyClient, url_of
from tests.service import Service


@pytest.mark.parametrize("code", errors.BY_CODE)
def test_each_code_has_its_class(code: str) -> None:
    kind = errors.BY_CODE[code]
    body = {"code": code, "message": "What to do.", "details": {"a": 1}}
    error = errors.api_error(body, status=kind.usual_status, request_id="r1")
    assert type(error) is kind
    assert (error.code, error.message, error.details) == (code, "What to do.", {"a": 1})
    assert str(error) == f"{kind.usual_status} {code}: What to do. (request r1)"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.ValidationError),
        (402, errors.PaymentRequiredError),
        (408, errors.RequestTimeoutError),
        (418, errors.APIError),
        (429, errors.RateLimitError),
        (599, errors.InternalServerError),
    ],
)
def test_an_unknown_code_has_the_class_of_its_status(
    status: int, kind: type[errors.APIError]
) -> None:
    error = errors.api_error({"code": "NEW", "message": "New."}, status=status)
    assert type(error) is kind
    assert error.code == "NEW"


async def test_a_field_that_is_not_valid_is_named(rota: AnyClient) -> None:
    with pytest.raises(errors.ValidationError) as caught:
        await rota(lambda c: c.tasks.create(name="T", priority=99))
    assert caught.value.status == 400
    assert [field.field for field in caught.value.fields] == ["priority"]
    assert caught.value.request_id


async def test_a_task_of_nobody_is_not_found(rota: AnyClient) -> None:
    with pytest.raises(errors.NotFoundError):
        await rota(lambda c: c.tasks.get("task_01a19b981dc0709986b0d5496f03675a"))
    # A part of a path in an ID stays in the ID.
    with pytest.raises(errors.NotFoundError):
        await rota(lambda c: c.tasks.get("../me"))


async def test_a_state_that_does_not_allow_the_request_is_a_conflict(rota: AnyClient) -> None:
    task = await rota(lambda c: c.tasks.create(name="T", status="COMPLETED"))
    with pytest.raises(errors.ConflictError) as caught:
        await rota(lambda c: c.tasks.retry(task))
    assert not isinstance(caught.value, errors.StaleReviewError)


async def test_a_wrong_key_is_refused(shop: Service, kind: str) -> None:
    client = AnyClient.open(kind, url_of(shop), "rota_wrong")
    with pytest.raises(errors.AuthenticationError):
        await client(lambda c: c.me())
    await client.close()


async def test_a_missing_key_says_how_to_give_one(
    shop: Service, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROTA_API_KEY", raising=False)
    client = AnyClient.open(kind, url_of(shop), "")
    with pytest.raises(errors.AuthenticationError, match="set ROTA_API_KEY"):
        await client(lambda c: c.me())
    await client.close()


async def test_another_account_is_refused(rota: AnyClient) -> None:
    other = rota.with_options(account="acct_01a19b981dc0709986b0d5496f03675a")
    with pytest.raises(errors.PermissionDeniedError):
        await other(lambda c: c.me())


async def test_a_body_that_is_too_large_is_refused(rota: AnyClient) -> None:
    with pytest.raises(errors.PayloadTooLargeError):
        await rota(lambda c: c.tasks.create(name="T", input="x" * 2_100_000))


async def test_a_service_that_does_not_answer_in_time(kind: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Until the client gives up.
        while await reader.read(4_096):
            pass
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        patient = AnyClient.open(kind, f"http://127.0.0.1:{port}", "rota_x", max_retries=0)
        with pytest.raises(errors.APITimeoutError):
            await patient.with_options(timeout=0.2)(lambda c: c.me())
        await patient.close()


async def test_a_server_that_is_not_rota_is_said_to_be_none(kind: str) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n"
    page = head + b"Connection: close\r\n\r\n<html>"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(page)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        client = AnyClient.open(kind, f"http://127.0.0.1:{port}", "rota_x", max_retries=0)
        with pytest.raises(errors.UnreadableResponseError):
            await client(lambda c: c.tasks.get("task_1"))
        await client.close()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"base_url": "localhost:8080"}, "must start with https://"),
        ({"base_url": "user:secret@x"}, "must start with https://"),
        ({"base_url": "https://user:secret@x"}, "a user or password"),
        ({"base_url": "https://x?token=secret"}, "a query or fragment"),
        ({"base_url": "https://x#secret"}, "a query or fragment"),
        ({"base_url": "https://"}, "no host"),
        ({"base_url": "https://x/secret\n"}, "not valid"),
        ({"account": "acct_1\nX-Secret: 1"}, "account contains"),
        ({"api_version": "2026\n"}, "api_version contains"),
        ({"api_key": "rota_secret\n"}, "a line break"),
        ({"api_key": "rota_sécret"}, "Copy it again"),
        ({"max_retries": -1}, "cannot be negative"),
    ],
)
def test_a_wrong_option_is_refused_at_once_and_a_key_is_never_shown(
    options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        Rota(**{"base_url": "http://x", **options})
    assert "cret" not in str(caught.value)


def test_a_body_that_is_not_valid_does_not_show_its_secrets() -> None:
    with Rota(base_url="http://x") as client, pytest.raises(ValueError, match="token") as caught:
        client.tool_servers.connect(name="s", url="http://y", auth={"token": ["top secret"]})
    assert "top secret" not in str(caught.value)


def test_a_missing_url_says_how_to_give_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROTA_BASE_URL", raising=False)
    with pytest.raises(errors.RotaError, match="ROTA_BASE_URL"):
        Rota(api_key="rota_x")
    monkeypatch.setenv("ROTA_BASE_URL", "http://rota.test/")
    with Rota(api_key="rota_secret") as client:
        assert repr(client) == "Rota(base_url='http://rota.test')"
        assert "rota_secret" not in repr(vars(client))
