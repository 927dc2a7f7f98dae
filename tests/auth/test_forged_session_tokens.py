"""Only session tokens of this service are accepted."""

import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from tests.auth.conftest import Realm
from tests.auth.forge import WITHOUT, Mint, by, claims_of, header_of, untrusted_key
from tests.auth.forgeries import FORGERIES, VALID, Forgery

DAY_S = 86_400
LIFETIME_S = 7 * DAY_S


def _claim(name: str, value: object) -> Forgery:
    return lambda mint: mint.token(claims={name: value})


def _typ(value: object) -> Forgery:
    return lambda mint: mint.token(header={"typ": value})


def _times(issued: Callable[[float], float], lifetime_s: float = LIFETIME_S) -> Forgery:
    def forge(mint: Mint) -> str:
        iat = int(issued(time.time()))
        return mint.token(claims={"iat": iat, "exp": iat + lifetime_s})

    return forge


OF_SESSIONS: dict[str, Forgery] = {
    "typ missing": _typ(WITHOUT),
    "typ JWT": _typ("JWT"),
    "typ at+jwt": _typ("at+jwt"),
    "typ in capitals": _typ("SESSION+JWT"),
    "typ with its media type": _typ("application/session+jwt"),
    "typ a list": _typ(["session+jwt"]),
    "aud a list": lambda mint: mint.token(claims={"aud": [mint.claims["aud"]]}),
    "alg with its old name": lambda mint: mint.token(
        header={"alg": "EdDSA"}, sign=by("EdDSA", mint.key)
    ),
    "kid unknown, signed with an untrusted key": lambda mint: mint.token(
        header={"kid": "ffffffffffff"}, sign=by("Ed25519", untrusted_key(mint.key))
    ),
    "sub without its prefix": lambda m: m.token(claims={"sub": m.claims["sub"][5:]}),
    "sub an account's id": lambda m: m.token(
        claims={"sub": m.claims["sub"].replace("user_", "acct_")}
    ),
    "sub in capitals": lambda m: m.token(claims={"sub": "user_" + m.claims["sub"][5:].upper()}),
    "sub with dashes": lambda m: m.token(claims={"sub": "user_" + str(uuid4())}),
    "sub unknown": _claim("sub", "user_" + uuid4().hex),
    "sid missing, as in legacy tokens": _claim("sid", WITHOUT),
    "sid null": _claim("sid", None),
    "sid empty": _claim("sid", ""),
    "sid a number": _claim("sid", 1),
    "sid a list": lambda mint: mint.token(claims={"sid": [mint.claims["sid"]]}),
    "sid unknown": _claim("sid", "sess_" + uuid4().hex),
    "sid without its prefix": lambda m: m.token(claims={"sid": m.claims["sid"][5:]}),
    "sid with SQL": _claim("sid", "sess_' OR '1'='1"),
    "ver missing": _claim("ver", WITHOUT),
    "ver of older tokens": _claim("ver", 0),
    "ver of the future": _claim("ver", 2),
    "ver a string": _claim("ver", "1"),
    "ver a fraction": _claim("ver", 1.0),
    "ver true": _claim("ver", True),
    "ver null": _claim("ver", None),
    "expired a second ago": _times(lambda now: now - LIFETIME_S - 1),
    "expired a year ago": _times(lambda now: now - 365 * DAY_S),
    "issued two minutes ahead": _times(lambda now: now + 120),
    "a second longer than seven days": _times(lambda now: now, LIFETIME_S + 1),
    "a second shorter than seven days": _times(lambda now: now, LIFETIME_S - 1),
    "a hundred years long": _times(lambda now: now, 36_500 * DAY_S),
    "exp before iat": _times(lambda now: now + 30, -60),
}


@pytest.mark.parametrize("name", VALID)
async def test_a_valid_token_is_accepted(realm: Realm, name: str) -> None:
    response = await realm.me(VALID[name](realm.session))
    assert response.status_code == 200, response.text


@pytest.mark.parametrize("name", [*FORGERIES, *OF_SESSIONS])
async def test_a_forged_token_is_refused(realm: Realm, name: str) -> None:
    forge = FORGERIES.get(name) or OF_SESSIONS[name]
    response = await realm.me(forge(realm.session))
    assert response.status_code == 401, response.text
    assert response.json()["error"]["code"] == "AUTHENTICATION_ERROR"
    assert response.headers["WWW-Authenticate"] == "Bearer"


async def test_a_token_of_a_retired_key_is_refused(realm: Realm) -> None:
    assert (await realm.me(realm.retired.token())).status_code == 401


async def test_an_id_token_is_not_accepted_as_a_session_token(realm: Realm) -> None:
    id_token = realm.provider.mint("rs").token()
    assert (await realm.me(id_token)).status_code == 401
    disguised = realm.provider.mint("rs").token(header={"typ": "session+jwt"})
    assert (await realm.me(disguised)).status_code == 401
    assert (await realm.start(id_token)).status_code == 200


async def test_an_id_token_with_a_sessions_claims_is_refused(realm: Realm) -> None:
    mint = realm.provider.mint("ed", "Ed25519")
    assert (await realm.me(mint.token(claims=realm.session.claims))).status_code == 401


async def test_a_session_is_valid_only_for_its_own_user(realm: Realm) -> None:
    other = await realm.mint(await realm.service.sign_in())
    mine = realm.session.claims
    mixed = [
        other.token(claims={"sid": mine["sid"]}),
        other.token(claims={"sub": mine["sub"]}),
    ]
    for token in mixed:
        assert (await realm.me(token)).status_code == 401
    assert (await realm.me(other.token())).status_code == 200


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "Bearer",
        "Token {}",
        "Basic {}",
        "{}",
        "Bearer\t{}",
        "Bearer {} {}",
        "Bearer: {}",
        "Bearer,{}",
        'Bearer "{}"',
        "Bearer <{}>",
    ],
)
async def test_a_malformed_authorization_header_is_refused(realm: Realm, value: str | None) -> None:
    token = realm.session.token()
    headers = {} if value is None else {"Authorization": value.replace("{}", token)}
    response = await realm.service.http.get("/api/me", headers=headers)
    assert response.status_code == 401, response.text
    assert response.json()["error"]["path"] == "/api/me"


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_can_have_any_case(realm: Realm, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} {realm.session.token()}"}
    assert (await realm.service.http.get("/api/me", headers=headers)).status_code == 200


async def test_a_token_has_the_documented_header_and_claims(realm: Realm) -> None:
    token = (await realm.service.sign_in()).token
    header, claims = header_of(token), claims_of(token)
    published = await realm.service.http.get("/.well-known/jwks.json")
    keys: dict[str, Any] = {key["kid"]: key for key in published.json()["keys"]}
    assert header == {"typ": "session+jwt", "alg": "Ed25519", "kid": header["kid"]}
    assert keys[header["kid"]]["alg"] == "Ed25519"
    assert "retired" not in keys
    assert not any("d" in key for key in keys.values())
    assert claims.keys() == {"iss", "aud", "sub", "sid", "jti", "ver", "iat", "exp"}
    assert claims["exp"] - claims["iat"] == 604_800
    assert claims["iss"] == realm.service.settings.public_url
