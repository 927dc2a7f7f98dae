"""Which session tokens can be refreshed: every row of the table in the documentation."""

import time

import pytest

from rota.auth.compact import BadToken
from rota.auth.tokens import KeyRing, SessionTokens
from rota.platform.crypto import Vault
from rota.platform.db import Database
from tests.auth.conftest import Realm
from tests.auth.forge import WITHOUT, Mint, by, claims_of
from tests.auth.waiting import seconds_until
from tests.service import Person

DAY_S = 86_400


@pytest.fixture
async def person(realm: Realm) -> Person:
    return await realm.service.sign_in()


@pytest.fixture
async def mint(realm: Realm, person: Person) -> Mint:
    return await realm.mint(person)


def expired(mint: Mint, days_ago: float = 1) -> str:
    issued = int(time.time() - (7 + days_ago) * DAY_S)
    return mint.token(claims={"iat": issued, "exp": issued + 7 * DAY_S})


async def age_session(realm: Realm, person: Person, days: float) -> None:
    async with realm.service.owner() as connection:
        await connection.execute(
            "UPDATE sessions SET refreshed_at = now() - make_interval(secs => $2)"
            " WHERE user_id = $1",
            person.user_id,
            days * DAY_S,
        )


async def test_a_valid_token_is_refreshed(realm: Realm, person: Person) -> None:
    response = await realm.refresh(person.token)
    assert response.status_code == 200
    assert response.json().keys() == {"token"}
    token = response.json()["token"]
    assert token != person.token
    claims, before = claims_of(token), claims_of(person.token)
    assert claims["exp"] - claims["iat"] == 604_800
    assert (claims["sub"], claims["sid"]) == (before["sub"], before["sid"])
    assert (await realm.me(token)).status_code == 200


async def test_the_old_token_stays_valid(realm: Realm, person: Person) -> None:
    new = (await realm.refresh(person.token)).json()["token"]
    assert (await realm.me(person.token)).status_code == 200
    again = await realm.refresh(person.token)
    assert again.status_code == 200
    assert len({person.token, new, again.json()["token"]}) == 3


@pytest.mark.parametrize("days_ago", [0.0001, 1, 22])
async def test_an_expired_token_of_an_active_session_is_refreshed(
    realm: Realm, mint: Mint, days_ago: float
) -> None:
    old = expired(mint, days_ago)
    assert (await realm.me(old)).status_code == 401
    response = await realm.refresh(old)
    assert response.status_code == 200, response.text
    assert (await realm.me(response.json()["token"])).status_code == 200
    assert (await realm.me(old)).status_code == 401


async def test_a_missing_token_is_refused(realm: Realm) -> None:
    response = await realm.refresh(None)
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"


async def test_a_token_with_a_bad_signature_is_refused(realm: Realm, mint: Mint) -> None:
    by_untrusted = by(mint.alg, mint.untrusted)
    assert (await realm.refresh(mint.token(sign=by_untrusted))).status_code == 401
    changed = mint.resigned(lambda s: s[:-1] + bytes([s[-1] ^ 1]))
    assert (await realm.refresh(changed)).status_code == 401
    assert (await realm.refresh(expired(mint)[:-2])).status_code == 401
    assert (await realm.refresh("nonsense")).status_code == 401


async def test_a_token_of_a_revoked_session_is_refused(
    realm: Realm, person: Person, mint: Mint
) -> None:
    newer = (await realm.refresh(person.token)).json()["token"]
    response = await person.post("/api/auth/logout")
    assert (response.status_code, response.json()) == (200, {"loggedOut": True})
    for token in (person.token, newer, expired(mint)):
        assert (await realm.refresh(token)).status_code == 401
        assert (await realm.me(token)).status_code == 401


@pytest.mark.parametrize(
    "changes", [{"sid": WITHOUT}, {"ver": WITHOUT}, {"ver": 0}], ids=["no sid", "no ver", "ver 0"]
)
async def test_a_retired_legacy_token_is_refused(
    realm: Realm, mint: Mint, changes: dict[str, object]
) -> None:
    assert (await realm.refresh(mint.token(claims=changes))).status_code == 401


async def test_a_token_of_a_retired_key_is_refused(realm: Realm, mint: Mint) -> None:
    retired = Mint(realm.retired.header, mint.claims, realm.retired.key, mint.untrusted)
    assert (await realm.refresh(retired.token())).status_code == 401
    assert (await realm.refresh(expired(retired))).status_code == 401
    assert (await realm.refresh(mint.token())).status_code == 200


@pytest.mark.timed
async def test_a_session_idle_for_too_long_counts_as_revoked(
    realm: Realm, person: Person, mint: Mint
) -> None:
    await age_session(realm, person, 29.9)
    assert (await realm.me(person.token)).status_code == 200
    await age_session(realm, person, 30.1)
    for token in (person.token, expired(mint)):
        assert (await realm.refresh(token)).status_code == 401

    async def refused() -> bool:
        return (await realm.me(person.token)).status_code == 401

    assert await seconds_until(refused) < 1


async def test_refreshing_keeps_a_session_alive(realm: Realm, person: Person, mint: Mint) -> None:
    await age_session(realm, person, 29.9)
    assert (await realm.refresh(expired(mint))).status_code == 200
    async with realm.service.owner() as connection:
        idle_s = await connection.fetchval(
            "SELECT extract(epoch FROM now() - refreshed_at)::float FROM sessions"
            " WHERE user_id = $1",
            person.user_id,
        )
    assert idle_s < 60


async def test_a_deleted_account_is_not_found(realm: Realm, person: Person, mint: Mint) -> None:
    async with realm.service.owner() as connection:
        await connection.execute("DELETE FROM accounts WHERE id = $1", person.user_id)
    for token in (person.token, expired(mint)):
        response = await realm.refresh(token)
        assert response.status_code == 404
        assert response.json()["error"]["code"] == "NOT_FOUND"


async def test_a_deleted_user_is_not_found(realm: Realm, person: Person) -> None:
    async with realm.service.owner() as connection:
        await connection.execute("DELETE FROM users WHERE id = $1", person.user_id)
    assert (await realm.refresh(person.token)).status_code == 404


async def test_an_api_key_cannot_be_refreshed(realm: Realm, person: Person) -> None:
    created = await person.post("/api/keys", {"name": "ci"})
    assert created.status_code == 201
    response = await realm.refresh(created.json()["secret"])
    assert response.status_code == 401


async def test_a_logout_ends_only_its_own_session(realm: Realm, person: Person) -> None:
    elsewhere = await realm.service.sign_in(person.subject)
    assert elsewhere.user_id == person.user_id
    assert (await person.post("/api/auth/logout")).status_code == 200
    assert (await person.post("/api/auth/logout")).status_code == 401
    assert (await elsewhere.get("/api/me")).status_code == 200


async def test_a_cached_token_expires_on_the_second(realm: Realm) -> None:
    now = time.time()
    db = Database(realm.service.database_url, pool_size=1)
    await db.open()
    try:
        ring = KeyRing(db, Vault(realm.service.settings.secret_key_bytes))
        issuer = realm.service.settings.public_url
        sessions = SessionTokens(ring, issuer, clock=lambda: now)
        token = realm.session.token()
        expires = claims_of(token)["exp"]
        now = expires - 1
        assert (await sessions.verify(token)).expires_at == expires
        now = expires
        with pytest.raises(BadToken, match="expired"):
            await sessions.verify(token)
        assert await sessions.verify(token, allow_expired=True)
    finally:
        await db.close()
