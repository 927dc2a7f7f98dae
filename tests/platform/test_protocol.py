"""Malformed HTTP gets a JSON error or a closed connection, and the process survives."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest

from rota.platform.http.server import MAX_HEAD_BYTES
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
    response = await exchange(probed, GET.removesuffix(b"Host: x\r\n"), *pieces)
    assert response is None or 400 <= response.status < 500
    assert (await probed.http.get("/health/live")).status_code == 200


async def test_headers_above_the_limit_are_refused(probed: Service) -> None:
    line = b"X: " + b"y" * 1_000 + b"\r\n"
    response = await exchange(probed, GET, *[line] * (MAX_HEAD_BYTES // 1_000 + 2))
    assert response is not None
    assert response.status == 431
    assert response.body["error"]["path"] == "/api/auth/config"


async def test_headers_below_the_limit_pass(probed: Service) -> None:
    line = b"X: " + b"y" * 1_000 + b"\r\n"
    response = await exchange(probed, GET, *[line] * (MAX_HEAD_BYTES // 1_100), b"\r\n")
    assert response is not None
    assert response.status == 200


async def test_a_large_body_does_not_count_as_headers(probed: Service) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", probed.settings.port)
    body = b'{"subject": "a", "x": "' + b"y" * 200_000 + b'"}'
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
