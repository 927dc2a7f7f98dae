"""What every answer of the service must look like."""

import re
from typing import Any

import httpx

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
API_VERSION = "2026-11-01"


def assert_headers(answer: httpx.Response) -> None:
    for name in ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"):
        assert answer.headers[name].isdecimal(), (name, answer.headers)
    limit = answer.headers["RateLimit-Limit"]
    assert f"{limit};w=60" in answer.headers["RateLimit-Policy"].split(", ")
    assert int(answer.headers["RateLimit-Remaining"]) <= int(limit)
    assert int(answer.headers["RateLimit-Reset"]) <= 60
    assert re.fullmatch(r"[A-Za-z0-9._:-]{1,128}", answer.headers["X-Request-Id"])
    assert answer.headers["Api-Version"] == API_VERSION
    assert ("Retry-After" in answer.headers) == (answer.status_code == 429)


def assert_error(
    answer: httpx.Response, status: int, code: str, path: str | None = None
) -> dict[str, Any]:
    """The envelope to the letter; gives what is inside."""
    assert answer.status_code == status, (answer.status_code, answer.text)
    assert answer.headers["Content-Type"] == "application/json"
    assert_headers(answer)
    body = answer.json()
    assert body.keys() == {"error"}
    error: dict[str, Any] = body["error"]
    assert error.keys() - {"details"} == {"message", "code", "timestamp", "path"}
    assert error["code"] == code
    assert error["message"]
    assert MOMENT.fullmatch(error["timestamp"])
    if path is not None:
        assert error["path"] == path
    return error


def assert_invalid(answer: httpx.Response, *fields: str) -> dict[str, Any]:
    """A validation failure, with details that name just these fields."""
    error = assert_error(answer, 400, "VALIDATION_ERROR")
    assert all(item.keys() == {"field", "message"} for item in error["details"])
    assert all(item["message"] for item in error["details"])
    assert [item["field"] for item in error["details"]] == list(fields)
    return error
