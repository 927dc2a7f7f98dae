"""The Host header: a service on a loopback address refuses the names of other machines."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from rota.dev.stack import Stack
from rota.platform.http.origins import OwnOrigin
from tests.service import Service


@pytest.fixture(scope="module")
async def local(stack: Stack) -> AsyncIterator[Service]:
    """As `rota dev` runs it, behind a tunnel."""
    async with Service.start(
        stack,
        variant="a",
        name="hosts",
        env="development",
        public_url="https://tunnel.example",
        cors_origins=("https://app.example",),
    ) as started:
        yield started


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "[::1]", "LOCALHOST:8080", "127.0.0.1:5173", "[::1]:80"),
        *("tunnel.example", "Tunnel.Example"),
    ],
)
async def test_a_name_of_this_machine_is_accepted(local: Service, host: str) -> None:
    response = await local.http.get("/api/auth/config", headers={"Host": host})
    assert response.status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example"),
        *("tunnel.example.evil.example", "127.0.0.1:80@evil.example", "127.1", "0.0.0.0", ""),
        *("127.0.0.1:", "localhost:123456", "::1"),
    ],
)
async def test_another_name_is_refused(local: Service, host: str) -> None:
    person = await local.sign_in()
    for path in ("/api/me", "/health/live", "/openapi.json", "/metrics", "/nothing"):
        response = await local.http.get(path, headers={"Host": host} | person.auth)
        assert response.status_code == 421, path
        error = response.json()["error"]
        assert error["code"] == "MISDIRECTED_REQUEST"
        assert (error["path"], "ROTA_PUBLIC_URL" in error["message"]) == (path, True)
        assert response.headers["RateLimit-Limit"]
        assert response.headers["X-Request-Id"]


async def test_a_refused_request_changes_nothing(local: Service) -> None:
    person = await local.sign_in()
    response = await person.post("/api/tasks", {"name": "x"}, headers={"Host": "evil.example"})
    assert response.status_code == 421
    assert (await person.get("/api/tasks")).json()["total"] == 0


@pytest.mark.parametrize("changes", [{"env": "production", "metrics_port": 1}, {"host": "0.0.0.0"}])
async def test_elsewhere_every_name_is_accepted(stack: Stack, changes: dict[str, Any]) -> None:
    """In production a proxy decides, and it may send any name."""
    settings: dict[str, Any] = {"env": "development"} | changes
    async with Service.start(stack, variant="a", name="any_host", **settings) as service:
        headers = {"Host": "rota.internal"}
        assert (await service.http.get("/api/auth/config", headers=headers)).status_code == 200


@pytest.mark.parametrize(
    ("public_url", "production", "host", "origin"),
    [
        ("http://127.0.0.1:8080", False, "127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080", False, "LocalHost:5173", "http://localhost:5173"),
        ("http://127.0.0.1:8080", False, "evil.example", "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080", True, "localhost:5173", "http://127.0.0.1:8080"),
        ("https://rota.example/", False, "localhost:5173", "https://rota.example"),
        ("https://Rota.example:443/x", True, "", "https://rota.example"),
        ("http://rota.example:80", True, "", "http://rota.example"),
        ("https://rota.example:8443", True, "", "https://rota.example:8443"),
    ],
)
def test_the_own_origin(public_url: str, production: bool, host: str, origin: str) -> None:
    own = OwnOrigin(public_url, production=production)
    assert own.of({b"host": host.encode()}) == origin
