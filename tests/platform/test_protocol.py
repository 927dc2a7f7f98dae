"""Malformed HTTP gets a JSON error or a closed connection, and the process survives."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from rota.platform.http.server import MAX_HEAD_BYTES
from tests.assertions import API_VERSION
from tests.service import Service


@dataclass
class Raw:
    status: int
    headers: dict[bytes, bytes]
    body: Any


async def read_response(reader: asyncio.StreamReader) -> Raw | None:
    """The next response on the connection, or None if it was closed without one."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        headers = dict(line.lower().split(b": ", 1) for line in lines if line)
        body = await reader.readexactly(int(headers[b"content-length"]))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return Raw(int(first.split()[1]), headers, json.loads(body))


async def all_responses(reader: asyncio.StreamReader) -> AsyncIterator[Raw]:
    """Every response until the connection closes."""
    while (response := await read_response(reader)) is not None:
        yield response


async def exchange(service: Service, *parts: bytes) -> Raw | None:
    reader, writer = await asyncio.open_connection("127.0.0.1", service.settings.port)
    async with asyncio.timeout(10):
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
        except ConnectionError:
            pass
        response = await read_response(reader)
    writer.close()
    return response


def assert_common_headers(response: Raw) -> None:
    for name in (b"limit", b"remaining", b"reset", b"policy"):
        assert response.headers[b"ratelimit-" + name]
    assert response.headers[b"x-request-id"]
    assert response.headers[b"api-version"] == API_VERSION.encode()


GET = b"GET /api/auth/config HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /api/probe/letters HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "request_bytes",
    [
        POST + b"Content-Length: abc\r\n\r\n",
        POST + b"Content-Length: -1\r\n\r\n",
        POST + b"Content-Length: +5\r\n\r\n12345",
        POST + b"Content-Length: 0x10\r\n\r\n",
        POST + b"Content-Length: 1_0\r\n\r\n",
        POST + b"Content-Length: 99999999999999999999999\r\n\r\n",
        POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        POST + b"Transfer-Encoding: gzip, identity\r\n\r\n",
        b"GET /api/auth/config HTTP/9.9\r\nHost: x\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET api/auth/config HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
        b"BREW /coffee HTTP/1.1\r\nHost: x\r\n\r\n",
        GET + b"bad header\r\n\r\n",
        GET + b"bad\x00: x\r\n\r\n",
        GET + b"X: a\x00b\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00" * 1000,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
async def test_a_malformed_request_is_refused_in_json(
    probed: Service, request_bytes: bytes
) -> None:
    response = await exchange(probed, request_bytes)
    assert response is not None
    assert 400 <= response.status < 500
    assert response.headers[b"content-type"] == b"application/json"
    assert response.body["error"].keys() == {"message", "code", "timestamp", "path"}
    assert_common_headers(response)
    assert (await probed.http.get("/health/live")).status_code == 200


@pytest.mark.parametrize(
    "flood",
    [
        b"".join(b"X-%d: y\r\n" % i for i in range(20_000)),
        b"X: " + b"y" * 1_000_000,
        b"y" * 1_000_000,
        b"\r\n" * 500_000,
    ],
)
async def test_endless_headers_are_cut_off(probed: Service, flood: bytes) -> None:
    pieces = [flood[start : start + 8_192] for start in range(0, len(flood), 8_192)]
    reader, writer = await asyncio.open_connection("127.0.0.1", probed.settings.port)
    async with asyncio.timeout(10):
        with suppress(ConnectionError):
            for part in (GET.removesuffix(b"Host: x\r\n"), *pieces):
                writer.write(part)
                await writer.drain()
        responses = [response async for response in all_responses(reader)]
    # Empty lines complete the first request, so they are cut off after its response.
    complete = [200] if flood.startswith(b"\r\n") else []
    assert [response.status for response in responses] == [*complete, 431]
    writer.close()
    assert (await probed.http.get("/health/live")).status_code == 200


async def test_headers_above_the_limit_are_refused(probed: Service) -> None:
    line = b"X: " + b"y" * 1_000 + b"\r\n"
    response = await exchange(probed, GET, *[line] * (MAX_HEAD_BYTES // 1_000 + 2))
    assert response is not None
    assert response.status == 431
    assert response.body["error"]["code"] == "HEADERS_TOO_LARGE"
    assert response.body["error"]["path"] == "/api/auth/config"
    assert response.headers[b"connection"] == b"close"
    assert_common_headers(response)


async def test_headers_above_the_limit_that_arrive_at_once_are_refused(probed: Service) -> None:
    flood = b"X-Request-Id: flood\r\n" + b"X: " + b"y" * 140_000 + b"\r\n\r\n"
    response = await exchange(probed, GET + flood)
    assert response is not None
    assert response.status == 431
    assert_common_headers(response)


async def test_a_method_that_no_route_has_is_refused_like_any_other(probed: Service) -> None:
    ada = await probed.sign_in()
    for method in ("FOO", "get", "PROPFIND", "M-SEARCH", "X" * 32):
        head = f"{method} /api/keys HTTP/1.1\r\nHost: x\r\nX-Request-Id: {method}\r\n"
        head += f"Authorization: Bearer {ada.token}\r\nContent-Length: 4\r\n\r\nbody"
        reader, writer = await asyncio.open_connection("127.0.0.1", probed.settings.port)
        # The connection can be used again, and the body is not read as a request.
        for _ in range(2):
            writer.write(head.encode())
            response = await read_response(reader)
            assert response is not None
            assert response.status == 405, method
            assert response.body["error"]["code"] == "METHOD_NOT_ALLOWED"
            assert response.headers[b"allow"] == b"get, head, post"
            assert response.headers[b"x-request-id"] == method.lower().encode()
            assert_common_headers(response)
        writer.close()
    missing = await exchange(probed, b"FOO /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
    assert missing is not None
    assert missing.status == 404
    metrics = (await probed.http.get("/metrics")).text
    assert 'method="other"' in metrics
    assert 'method="FOO"' not in metrics


async def test_a_request_that_cannot_be_read_counts_toward_the_limit(probed: Service) -> None:
    remaining = []
    for _ in range(2):
        response = await exchange(probed, GET + b"bad header\r\n\r\n")
        assert response is not None
        remaining.append(int(response.headers[b"ratelimit-remaining"]))
    assert remaining[1] < remaining[0]


async def test_a_refusal_waits_for_the_responses_before_it(probed: Service) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", probed.settings.port)
    writer.write(GET + b"\r\n" + GET + b"bad header\r\n\r\n")
    responses = [await read_response(reader) for _ in range(2)]
    assert [response.status for response in responses if response] == [200, 400]
    assert await reader.read() == b""
    writer.close()


async def test_what_follows_a_refused_request_is_not_collected(probed: Service) -> None:
    """While the response before it goes on."""
    ada = await probed.sign_in()
    reader, writer = await asyncio.open_connection("127.0.0.1", probed.settings.port)
    stream = f"GET /api/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ada.token}\r\n\r\n"
    writer.write(stream.encode())
    await reader.readuntil(b"\r\n\r\n")
    writer.write(GET + b"bad header\r\n\r\n")

    async def send_on() -> None:
        while True:
            writer.write(b"x" * 1024 * 1024)
            async with asyncio.timeout(2):
                await writer.drain()
            sent.append(1)

    sent: list[int] = []
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(20):
            await send_on()
    # What the buffers of the sockets hold.
    assert len(sent) < 64
    writer.transport.abort()
    assert (await probed.http.get("/health/live")).status_code == 200


async def test_headers_below_the_limit_pass(probed: Service) -> None:
    line = b"X: " + b"y" * 1_000 + b"\r\n"
    response = await exchange(probed, GET, *[line] * (MAX_HEAD_BYTES // 1_100), b"\r\n")
    assert response is not None
    assert response.status == 200


async def test_a_large_body_does_not_count_as_headers(probed: Service) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", probed.settings.port)
    body = b'{"subject": "a"' + b" " * 200_000 + b"}"
    for _ in range(3):
        writer.write(POST + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        response = await read_response(reader)
        assert response is not None
        assert response.status == 201
    writer.close()


async def test_pipelined_requests_are_answered_in_order(probed: Service) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", probed.settings.port)
    body = b'{"subject": "a"}'
    writer.write(
        GET
        + b"X-Request-Id: one\r\n\r\n"
        + POST
        + b"X-Request-Id: two\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        + b"GET /nothing HTTP/1.1\r\nHost: x\r\nX-Request-Id: three\r\n\r\n"
        + GET
        + b"X-Request-Id: four\r\nConnection: close\r\n\r\n"
    )
    responses = [await read_response(reader) for _ in range(4)]
    assert [(a.status, a.headers[b"x-request-id"]) for a in responses if a] == [
        (200, b"one"),
        (201, b"two"),
        (404, b"three"),
        (200, b"four"),
    ]
    assert await reader.read() == b""
    writer.close()


async def test_a_request_cannot_be_smuggled_behind_another(probed: Service) -> None:
    """The bytes after a refused body are never read as the next request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", probed.settings.port)
    smuggled = b"GET /api/auth/config HTTP/1.1\r\nHost: x\r\nX-Request-Id: smuggled\r\n\r\n"
    writer.write(
        POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled
    )
    first = await read_response(reader)
    assert first is not None
    assert first.status == 400
    assert await read_response(reader) is None
    writer.close()


async def test_a_content_length_above_the_limit_is_refused_before_the_body_is_sent(
    probed: Service,
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", probed.settings.port)
    writer.write(POST + b"Content-Length: 3000000\r\nExpect: 100-continue\r\n\r\n")
    line = await reader.readline()
    assert line == b"HTTP/1.1 413 Request Entity Too Large\r\n"
    writer.close()


async def test_a_websocket_upgrade_gets_a_normal_response(probed: Service) -> None:
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    key = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    response = await exchange(probed, GET + upgrade + key)
    assert response is not None
    assert response.status == 200


async def test_only_the_path_of_an_absolute_request_line_is_used(probed: Service) -> None:
    response = await exchange(probed, b"GET http://evil.test/nothing HTTP/1.1\r\nHost: x\r\n\r\n")
    assert response is not None
    assert response.status == 404
    assert response.body["error"]["path"] == "/nothing"


async def test_an_http_1_0_request_gets_a_response_and_the_connection_closes(
    probed: Service,
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", probed.settings.port)
    writer.write(b"GET /api/auth/config HTTP/1.0\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
    writer.close()
