"""Every response has the common headers, and every error has the same envelope."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest

from rota.dev.stack import Stack
from tests.assertions import API_VERSION, assert_error, assert_headers, assert_invalid
from tests.service import Person, Service

JSON = {"Content-Type": "application/json"}
LIMIT = 2 * 1024 * 1024


@pytest.fixture(scope="module")
async def ada(probed: Service) -> Person:
    return await probed.sign_in()


@pytest.fixture(scope="module")
async def key(ada: Person) -> str:
    response = await ada.post("/api/keys", {"name": "probe"})
    return str(response.json()["secret"])


def letter(**changes: object) -> dict[str, object]:
    return {"subject": "Hello", **changes}


async def test_an_unknown_path_is_not_found(probed: Service) -> None:
    response = await probed.http.get("/api/nothing/here?a=b")
    assert_error(response, 404, "NOT_FOUND", "/api/nothing/here")


async def test_a_path_has_one_spelling(probed: Service, ada: Person) -> None:
    for path in ("/api/me/", "//api/me", "/API/me", "/api/me%2F", "/api/./me/.."):
        response = await probed.http.get(httpx.URL(probed.http.base_url, raw_path=path.encode()))
        assert_error(response, 404, "NOT_FOUND")
    encoded = httpx.URL(probed.http.base_url, raw_path=b"/api/%6De")
    assert (await ada.service.http.get(encoded, headers=ada.auth)).status_code == 200


async def test_a_wrong_method_gets_a_list_of_the_allowed_ones(probed: Service) -> None:
    response = await probed.http.put("/api/keys")
    assert_error(response, 405, "METHOD_NOT_ALLOWED", "/api/keys")
    assert response.headers["Allow"] == "GET, HEAD, POST"
    response = await probed.http.post("/api/me")
    assert_error(response, 405, "METHOD_NOT_ALLOWED", "/api/me")
    assert response.headers["Allow"] == "GET, HEAD"


async def test_a_head_request_has_the_headers_and_no_body(probed: Service) -> None:
    response = await probed.http.head("/api/me")
    assert response.status_code == 401
    assert response.content == b""
    assert_headers(response)


@pytest.mark.parametrize("host", [b"[", b"evil.test/path?", b"a b", b"http://x", "😀".encode()])
async def test_the_host_header_does_not_change_the_path(probed: Service, host: bytes) -> None:
    response = await probed.http.get("/api/nothing", headers={b"Host": host})
    assert_error(response, 404, "NOT_FOUND", "/api/nothing")
    response = await probed.http.post("/api/probe/letters", json={}, headers={b"Host": host})
    assert_invalid(response, "subject")


async def test_a_body_at_the_limit_passes_and_one_byte_more_is_refused(probed: Service) -> None:
    async def send(size: int) -> httpx.Response:
        body = b'{"subject":"Hello"}'.ljust(size)
        return await probed.http.post("/api/probe/letters", content=body, headers=JSON)

    assert (await send(LIMIT)).status_code == 201
    response = await send(LIMIT + 1)
    assert_error(response, 413, "PAYLOAD_TOO_LARGE", "/api/probe/letters")
    assert response.headers["Connection"] == "close"


async def test_a_chunked_body_is_cut_off_at_the_limit(probed: Service) -> None:
    async def send(size: int) -> httpx.Response:
        async def chunks() -> AsyncIterator[bytes]:
            left = size
            yield b'{"subject":"Hello"}'
            left -= 19
            while left > 0:
                yield b" " * min(left, 50_000)
                left -= 50_000

        return await probed.http.post("/api/probe/letters", content=chunks(), headers=JSON)

    assert (await send(LIMIT)).status_code == 201
    response = await send(LIMIT + 1)
    assert_error(response, 413, "PAYLOAD_TOO_LARGE", "/api/probe/letters")


async def test_an_endless_body_gets_a_response_and_the_connection_closes(probed: Service) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", probed.settings.port)
    writer.write(
        b"POST /api/probe/letters HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    response = asyncio.create_task(reader.readuntil(b"\r\n"))
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    sent = 0
    async with asyncio.timeout(20):
        try:
            while sent < 50_000_000:
                writer.write(chunk)
                await writer.drain()
                sent += len(chunk)
        except ConnectionError:
            pass
    # Some of it is still in the socket's buffers.
    assert sent < 25_000_000
    assert await response == b"HTTP/1.1 413 Request Entity Too Large\r\n"
    writer.close()


async def test_the_service_survives_a_client_that_stops_in_the_middle(probed: Service) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", probed.settings.port)
    writer.write(
        b"POST /api/probe/letters HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b'Content-Length: 100\r\n\r\n{"subj'
    )
    await writer.drain()
    writer.close()
    assert (await probed.http.get("/health/live")).status_code == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/xml", "application/x-www-form-urlencoded", "", "json", "/"]
)
async def test_a_body_that_is_not_json_is_refused(probed: Service, kind: str) -> None:
    response = await probed.http.post(
        "/api/probe/letters", content=b'{"subject":"Hello"}', headers={"Content-Type": kind}
    )
    assert_error(response, 415, "UNSUPPORTED_MEDIA_TYPE", "/api/probe/letters")


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=utf-8", "application/json;x=\xff"]
)
async def test_the_content_type_can_have_any_case_and_parameters(
    probed: Service, kind: str
) -> None:
    response = await probed.http.post(
        "/api/probe/letters",
        content=b'{"subject":"Hello"}',
        headers={b"Content-Type": kind.encode("latin-1")},
    )
    assert response.status_code == 201, response.text


async def test_an_exception_shows_no_internals_and_the_process_survives(probed: Service) -> None:
    response = await probed.http.get("/api/probe/crash", headers={"Authorization": "Bearer abc"})
    error = assert_error(response, 500, "INTERNAL_SERVER_ERROR", "/api/probe/crash")
    assert "details" not in error
    assert not any(
        word in response.text for word in ("internal details", "RuntimeError", "abc", "Traceback")
    )
    assert (await probed.http.get("/health/live")).status_code == 200


async def test_an_exception_after_the_response_started_closes_the_connection(
    probed: Service,
) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        await probed.http.get("/api/probe/crash-late")
    assert (await probed.http.get("/health/live")).status_code == 200


async def test_a_database_error_shows_no_internals(probed: Service) -> None:
    response = await probed.http.get("/api/probe/database")
    assert_error(response, 500, "DATABASE_ERROR", "/api/probe/database")
    assert "secret" not in response.text


async def test_lost_database_connections_are_replaced(probed: Service, ada: Person) -> None:
    assert (await ada.get("/api/keys")).status_code == 200
    async with probed.owner() as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    async with asyncio.timeout(10):
        while (response := await ada.get("/api/keys")).status_code != 200:
            assert_error(response, 500, "DATABASE_ERROR", "/api/keys")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "must be an object"),
        (letter(subject="x" * 21), "must have at most 20 characters"),
        (letter(subject=1), "must be a string"),
        (letter(copies=0), "must be at least 1"),
        (letter(copies="many"), "must be a whole number"),
        (letter(copies=1.5), "must be a whole number"),
        # Beside a field that does not exist, too.
        (letter(copies=0, unknown=1), "must be at least 1"),
    ],
)
async def test_what_is_wrong_is_said_in_words_of_the_api(
    probed: Service, body: object, message: str
) -> None:
    response = await probed.http.post("/api/probe/letters", json=body)
    details = response.json()["error"]["details"]
    assert message in [each["message"] for each in details], details


async def test_validation_names_each_field_that_is_wrong(probed: Service) -> None:
    async def errors(body: object) -> httpx.Response:
        return await probed.http.post("/api/probe/letters", json=body)

    error = assert_invalid(await errors({}), "subject")
    assert error["details"][0]["message"] == "Field required"
    assert "subject" in error["message"]
    assert_invalid(await errors(letter(subject="x" * 21)), "subject")
    assert_invalid(await errors(letter(copies=0, kind="odd")), "kind", "copies")
    assert_invalid(await errors(letter(tags=["a", "c"])), "tags.1")
    assert_invalid(await errors(letter(notes={"n": "1"})), "notes.n")
    assert_invalid(await errors([]), "")
    assert_invalid(await errors(None), "")


async def test_a_body_with_a_thousand_errors_gets_a_short_response(probed: Service) -> None:
    many = await probed.http.post("/api/probe/letters", json=letter(tags=["?"] * 1000))
    assert_invalid(many, *[f"tags.{i}" for i in range(20)])
    long = await probed.http.post("/api/probe/letters", json=letter(notes={"k" * 1_000_000: "?"}))
    assert_invalid(long, "notes." + "k" * 194)


async def test_types_are_strict(probed: Service) -> None:
    for copies in ("5", True, 5.0, 5.5, None, [5]):
        response = await probed.http.post("/api/probe/letters", json=letter(copies=copies))
        assert_invalid(response, "copies")
    for weight in ("5", True, None):
        response = await probed.http.post("/api/probe/letters", json=letter(weight=weight))
        assert_invalid(response, "weight")
    for good in (letter(copies=5), letter(weight=5), letter(weight=5.5)):
        response = await probed.http.post("/api/probe/letters", json=good)
        assert response.status_code == 201, response.text


async def test_lengths_count_code_points(probed: Service) -> None:
    response = await probed.http.post("/api/probe/letters", json=letter(subject="😀" * 20))
    assert response.json()["subject"] == "😀" * 20
    response = await probed.http.post("/api/probe/letters", json=letter(subject="😀" * 21))
    assert_invalid(response, "subject")


async def test_unknown_fields_are_refused(probed: Service) -> None:
    response = await probed.http.post("/api/probe/letters", json=letter(admin=True, sendAT="x"))
    [admin, send_at] = assert_invalid(response, "admin", "sendAT")["details"]
    assert admin["message"] == "Unknown field."
    assert send_at["message"] == "Unknown field. Did you mean `sendAt`?"
    long = await probed.http.post("/api/probe/letters", json=letter(**{"k" * 1_000_000: 1}))
    assert len(long.content) < 1_000
    response = await probed.http.get("/api/probe/page?Limit=5&limit=5&x=1")
    [limit, other] = assert_invalid(response, "Limit", "x")["details"]
    assert limit["message"] == "Unknown parameter. Did you mean `limit`?"
    assert other["message"] == "Unknown parameter."


async def test_times_need_an_offset_and_are_returned_in_utc(probed: Service) -> None:
    async def send(moment: object) -> httpx.Response:
        return await probed.http.post("/api/probe/letters", json=letter(sendAt=moment))

    response = await send("2027-01-31T12:00:00.5+02:00")
    assert response.json()["sendAt"] == "2027-01-31T10:00:00.500Z"
    for bad in (
        *("2027-01-31T12:00:00", "2027-01-31", "soon", "", "2027-13-01T00:00:00Z", 1_800_000_000),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
    ):
        assert_invalid(await send(bad), "sendAt")


async def test_whole_numbers_in_a_query_are_digits_only(probed: Service) -> None:
    assert (await probed.http.get("/api/probe/page?limit=5")).json() == {"limit": 5}
    for bad in ("5.0", "%205", "５", "1e1", "", "x", "9" * 17, "+5", "5_0"):
        assert_invalid(await probed.http.get(f"/api/probe/page?limit={bad}"), "limit")


async def test_text_in_a_query_has_no_nul(probed: Service) -> None:
    assert_invalid(await probed.http.get("/api/probe/page?search=a%00b"), "search")
    assert (await probed.http.get("/api/probe/page?search=%FF%FE")).status_code == 200


async def test_only_the_known_api_version_is_accepted(
    probed: Service,
) -> None:
    for version in ("2020-01-01", "", "latest", API_VERSION + " x"):
        response = await probed.http.get("/api/auth/config", headers={"Api-Version": version})
        assert_invalid(response, "Api-Version")
        assert API_VERSION in response.json()["error"]["message"]
    response = await probed.http.get("/api/auth/config", headers={"Api-Version": API_VERSION})
    assert response.status_code == 200


@pytest.mark.parametrize("sent", ["a", "req-1.2:3_4", "A" * 128, "0" * 32])
async def test_a_valid_request_id_is_returned(probed: Service, sent: str) -> None:
    response = await probed.http.get("/api/auth/config", headers={"X-Request-Id": sent})
    assert response.headers["X-Request-Id"] == sent


@pytest.mark.parametrize(
    "sent", [b"", b"a b", b"A" * 129, b"\xff", b"<script>", b"a\tb", "😀".encode(), b"a,b"]
)
async def test_an_invalid_request_id_is_replaced(probed: Service, sent: bytes) -> None:
    response = await probed.http.get("/api/auth/config", headers={b"X-Request-Id": sent})
    assert_headers(response)
    assert response.headers["X-Request-Id"].encode() != sent


Send = Callable[[Service, Person, str], Awaitable[httpx.Response]]


def _send(method: str, path: str, **options: object) -> Send:
    async def send(service: Service, person: Person, key: str) -> httpx.Response:
        return await service.http.request(method, path, **options)  # type: ignore[arg-type]

    return send


def _send_as_person(method: str, path: str, **options: object) -> Send:
    async def send(service: Service, person: Person, key: str) -> httpx.Response:
        return await person.request(method, path, **options)

    return send


async def _send_as_key(service: Service, person: Person, key: str) -> httpx.Response:
    return await service.http.get("/api/keys", headers={"Authorization": f"Bearer {key}"})


@pytest.mark.parametrize(
    ("status", "send"),
    [
        (200, _send_as_person("GET", "/api/me")),
        (200, _send("GET", "/api/auth/config")),
        (200, _send("GET", "/health/live")),
        (200, _send("GET", "/health/ready")),
        (200, _send("GET", "/metrics")),
        (200, _send("GET", "/openapi.json")),
        (200, _send("GET", "/docs")),
        (200, _send("GET", "/.well-known/jwks.json")),
        (201, _send_as_person("POST", "/api/keys", json={"name": "one"})),
        (400, _send_as_person("POST", "/api/keys", json={})),
        (400, _send_as_person("GET", "/api/me", headers={"Api-Version": "2020-01-01"})),
        (401, _send("GET", "/api/me")),
        (401, _send("GET", "/api/me", headers={"Authorization": "Bearer rota_x"})),
        (401, _send("GET", "/api/me", headers={"Authorization": b"Bearer \xff"})),
        (403, _send_as_key),
        (404, _send("GET", "/nothing")),
        (405, _send("DELETE", "/api/me")),
        (413, _send_as_person("POST", "/api/keys", content=b" " * (LIMIT + 1), headers=JSON)),
        (415, _send_as_person("POST", "/api/keys", content=b"x")),
        (500, _send("GET", "/api/probe/crash")),
        (500, _send("GET", "/api/probe/database")),
    ],
)
async def test_every_status_has_all_headers(
    probed: Service, ada: Person, key: str, status: int, send: Send
) -> None:
    response = await send(probed, ada, key)
    assert response.status_code == status, response.text
    assert_headers(response)


async def test_responses_are_not_stored_unless_the_route_says_otherwise(
    probed: Service, ada: Person
) -> None:
    for path in ("/api/me", "/api/nothing", "/health/live"):
        response = await ada.get(path)
        assert response.headers.get_list("Cache-Control") == ["no-store"], path
    response = await ada.get("/openapi.json")
    assert response.headers.get_list("Cache-Control") == ["no-cache"]
    response = await ada.get("/api/agents/catalog")
    assert response.headers.get_list("Cache-Control") == ["private, no-cache"]
    response = await probed.http.get("/docs/swagger-ui.css")
    assert response.headers.get_list("Cache-Control") == ["public, max-age=86400"]
    page = await probed.http.get("/")
    assert page.headers.get_list("X-Content-Type-Options") == ["nosniff"]


async def test_browsers_keep_to_https_if_the_public_url_does(probed: Service, stack: Stack) -> None:
    assert "Strict-Transport-Security" not in (await probed.http.get("/api/me")).headers
    async with Service.start(
        stack, variant="a", name="https", public_url="https://rota.example"
    ) as service:
        for path in ("/", "/api/me", "/docs", "/api/nothing"):
            response = await service.http.get(path)
            assert response.headers["Strict-Transport-Security"] == "max-age=31536000", path


async def test_a_request_without_authentication_gets_a_challenge(probed: Service) -> None:
    response = await probed.http.get("/api/me")
    assert_error(response, 401, "AUTHENTICATION_ERROR", "/api/me")
    assert response.headers["WWW-Authenticate"] == "Bearer"
