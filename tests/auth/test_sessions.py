"""A user lists the own sessions and ends them."""

import re

import pytest

from rota.auth.devices import device_of
from rota.platform import ids
from tests.assertions import MOMENT, assert_error
from tests.auth.conftest import Realm
from tests.auth.forge import claims_of
from tests.service import Service

FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:143.0) Gecko/20100101 Firefox/143.0"


async def test_a_user_lists_and_ends_the_own_sessions(service: Service) -> None:
    laptop = await service.sign_in()
    phone = await service.sign_in(laptop.subject)
    stranger = await service.sign_in()
    page = (await laptop.get("/api/auth/sessions")).json()
    assert page["total"] == len(page["sessions"]) == 2
    current = [session for session in page["sessions"] if session["current"]]
    assert [s["id"] for s in current] == [claims_of(laptop.token)["sid"]]
    for session in page["sessions"]:
        assert list(session) == ["id", "device", "address", "createdAt", "lastSeenAt", "current"]
        assert re.fullmatch(r"sess_[0-9a-f]{32}", session["id"])
        assert session["device"].startswith("python-httpx/")
        assert session["address"] == "127.0.0.1"
        assert MOMENT.fullmatch(session["createdAt"])
        assert session["createdAt"] <= session["lastSeenAt"]
    [other] = [session["id"] for session in page["sessions"] if not session["current"]]
    for session_id in (other, "sess_" + "0" * 32, "nonsense"):
        refused = await stranger.delete(f"/api/auth/sessions/{session_id}")
        assert assert_error(refused, 404, "NOT_FOUND")["message"] == (
            "Session not found. GET /api/auth/sessions lists your sessions."
        )
    ended = await laptop.delete(f"/api/auth/sessions/{other}")
    assert (ended.status_code, ended.json()) == (200, {"deleted": True, "id": other})
    assert (await phone.get("/api/me")).status_code == 401
    assert (await phone.post("/api/auth/refresh")).status_code == 401
    assert (await laptop.delete(f"/api/auth/sessions/{other}")).status_code == 404
    assert (await laptop.get("/api/auth/sessions")).json()["total"] == 1
    async with service.owner() as connection:
        revoked = await connection.fetch(
            "SELECT data FROM events WHERE account_id = $1 AND type = 'session.revoked'",
            laptop.user_id,
        )
    assert len(revoked) == 1
    assert other in revoked[0]["data"]


async def test_the_device_and_the_trusted_address_are_shown(realm: Realm) -> None:
    id_token = await realm.service.id_token("traveller")
    headers = {"User-Agent": FIREFOX, "X-Forwarded-For": "203.0.113.9, 10.9.8.7"}
    started = await realm.service.http.post(
        "/api/auth/session", json={"idToken": id_token}, headers=headers
    )
    bearer = {"Authorization": f"Bearer {started.json()['token']}"}
    page = (await realm.service.http.get("/api/auth/sessions", headers=bearer)).json()
    [session] = page["sessions"]
    assert (session["device"], session["address"]) == ("Firefox on Windows", "10.9.8.7")


async def test_a_session_is_seen_at_most_once_a_minute_and_an_old_one_is_not_listed(
    service_a: Service,
) -> None:
    person = await service_a.sign_in()
    idle = await service_a.sign_in(person.subject)
    async with service_a.owner() as connection:
        await connection.execute(
            "UPDATE sessions SET refreshed_at = now() - interval '31 days', "
            "last_seen_at = now() - interval '31 days' WHERE user_id = $1 AND id = $2",
            person.user_id,
            ids.from_wire("sess", claims_of(idle.token)["sid"]),
        )

        async def last_seen() -> object:
            return await connection.fetchval(
                "SELECT last_seen_at FROM sessions WHERE user_id = $1 AND id = $2",
                person.user_id,
                ids.from_wire("sess", claims_of(person.token)["sid"]),
            )

        [session] = (await person.get("/api/auth/sessions")).json()["sessions"]
        assert session["current"] is True
        first = await last_seen()
        await person.get("/api/me")
        assert await last_seen() == first
        await connection.execute(
            "UPDATE sessions SET last_seen_at = now() - interval '61 s' WHERE user_id = $1",
            person.user_id,
        )
        moved = await last_seen()
    # Another process does not have the caller in its cache.
    async with service_a.process() as other:
        headers = {"Authorization": f"Bearer {person.token}"}
        assert (await other.http.get("/api/me", headers=headers)).status_code == 200
    async with service_a.owner() as connection:
        seen = await connection.fetchval(
            "SELECT last_seen_at FROM sessions WHERE user_id = $1 AND id = $2",
            person.user_id,
            ids.from_wire("sess", claims_of(person.token)["sid"]),
        )
    assert seen > moved


@pytest.mark.parametrize(
    ("user_agent", "device"),
    [
        (FIREFOX, "Firefox on Windows"),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like "
            "Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/141.0.0.0",
            "Edge on macOS",
        ),
        (
            "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) "
            "Chrome/141.0.0.0 Mobile Safari/537.36",
            "Chrome on Android",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, "
            "like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
            "Safari on iPhone",
        ),
        ("Firefox/143.0", "Firefox"),
        ("curl/8.5.0", "curl/8.5.0"),
        ("x" * 500, "x" * 100),
        ("bad\x01agent", None),
        ("   ", None),
        ("", None),
        (None, None),
    ],
)
def test_a_device_is_named_after_its_user_agent(user_agent: str | None, device: str | None) -> None:
    assert device_of(user_agent) == device


async def test_ids_of_sessions_have_their_own_prefix(service_a: Service) -> None:
    person = await service_a.sign_in()
    [session] = (await person.get("/api/auth/sessions")).json()["sessions"]
    uuid = session["id"].removeprefix("sess_")
    for prefix in ("key", "task", "user"):
        refused = await person.delete(f"/api/auth/sessions/{prefix}_{uuid}")
        assert refused.status_code == 404
    assert session["id"] != ids.to_wire("sess", person.user_id)
