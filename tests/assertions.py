"""Assertions on the headers and error envelopes of responses."""

import re
from typing import Any

import httpx

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
API_VERSION = "2026-11-15"


def assert_headers(response: httpx.Response) -> None:
    for name in ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"):
        assert response.headers[name].isdecimal(), (name, response.headers)
    limit = response.headers["RateLimit-Limit"]
    assert f"{limit};w=60" in response.headers["RateLimit-Policy"].split(", ")
    assert int(response.headers["RateLimit-Remaining"]) <= int(limit)
    assert int(response.headers["RateLimit-Reset"]) <= 60
    assert re.fullmatch(r"[A-Za-z0-9._:-]{1,128}", response.headers["X-Request-Id"])
    assert response.headers["Api-Version"] == API_VERSION
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Cache-Control"]
    assert ("Retry-After" in response.headers) == (response.status_code == 429)


def assert_error(
    response: httpx.Response, status: int, code: str, path: str | None = None
) -> dict[str, Any]:
    """Checks the whole error envelope and returns the error."""
    assert response.status_code == status, (response.status_code, response.text)
    assert response.headers["Content-Type"] == "application/json"
    assert_headers(response)
    body = response.json()
    assert body.keys() == {"error"}
    error: dict[str, Any] = body["error"]
    assert error.keys() - {"details"} == {"message", "code", "timestamp", "path"}
    assert error["code"] == code
    assert error["message"]
    assert MOMENT.fullmatch(error["timestamp"])
    if path is not None:
        assert error["path"] == path
    return error


def assert_invalid(response: httpx.Response, *fields: str) -> dict[str, Any]:
    """Checks a validation error whose details name exactly these fields, in this order."""
    error = assert_error(response, 400, "VALIDATION_ERROR")
    assert all(item.keys() == {"field", "message"} for item in error["details"])
    assert all(item["message"] for item in error["details"])
    assert [item["field"] for item in error["details"]] == list(fields)
    return error
