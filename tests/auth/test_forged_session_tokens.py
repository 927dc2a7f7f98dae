"""Session tokens: ours pass, and nothing that merely looks like one does."""

import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from tests.auth.conftest import Realm
from tests.auth.forge import WITHOUT, Mint, by, claims_of, header_of, stranger_to
from tests.auth.forgeries import FORGERIES, HONEST, Forgery

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
    "aud a list with ours in it": lambda mint: mint.token(claims={"aud": [mint.claims["aud"]]}),
    "alg by its older name": lambda mint: mint.token(
        header={"alg": "EdDSA"}, sign=by("EdDSA", mint.key)
    ),
    "kid that was never ours": lambda mint: mint.token(
        header={"kid": "ffffffffffff"}, sign=by("Ed25519", stranger_to(mint.key))
    ),
    "sub without its prefix": lambda m: m.token(claims={"sub": m.claims["sub"][5:]}),
    "sub an account's id": lambda m: m.token(
        claims={"sub": m.claims["sub"].replace("user_", "acct_")}
    ),
    "sub in capitals": lambda m: m.token(claims={"sub": "user_" + m.claims["sub"][5:].upper()}),
    "sub with dashes": lambda m: m.token(claims={"sub": "user_" + str(uuid4())}),
    "sub of nobody": _claim("sub", "user_" + uuid4().hex),
    "sid missing, as in legacy tokens": _claim("sid", WITHOUT),
    "sid null": _claim("sid", None),
    "sid empty": _claim("sid", ""),
    "sid a number": _claim("sid", 1),
    "sid a list": lambda mint: mint.token(claims={"sid": [mint.claims["sid"]]}),
    "sid of no session": _claim("sid", "sess_" + uuid4().hex),
    "sid without its prefix": lambda m: m.token(claims={"sid": m.claims["sid"][5:]}),
    "sid with SQL": _claim("sid", "sess_' OR '1'='1"),
    "ver missing": _claim("ver", WITHOUT),
    "ver of older tokens": _claim("ver", 0),
    "ver of the future": _claim("ver", 2),
    "ver a text": _claim("ver", "1"),
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


@pytest.mark.parametrize("name", HONEST)
async def test_an_honest_token_passes(realm: Realm, name: str) -> None:
    answer = await realm.me(HONEST[name](realm.session))
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("name", [*FORGERIES, *OF_SESSIONS])
async def test_a_forged_token_is_refused(realm: Realm, name: str) -> None:
    forge = FORGERIES.get(name) or OF_SESSIONS[name]
    answer = await realm.me(forge(realm.session))
    assert answer.status_code == 401, answer.text
    assert answer.json()["error"]["code"] == "AUTHENTICATION_ERROR"
    assert answer.headers["WWW-Authenticate"] == "Bearer"


async def test_a_token_of_a_retired_key_is_refused(realm: Realm) -> None:
    assert (await realm.me(realm.retired.token())).status_code == 401


async def test_an_id_token_is_no_session_token(realm: Realm) -> None:
    id_token = realm.provider.mint("rs").token()
    assert (await realm.me(id_token)).status_code == 401
    disguised = realm.provider.mint("rs").token(header={"typ": "session+jwt"})
    assert (await realm.me(disguised)).status_code == 401
    assert (await realm.start(id_token)).status_code == 200


async def test_an_id_token_with_a_sessions_claims_is_refused(realm: Realm) -> None:
    mint = realm.provider.mint("ed", "Ed25519")
    assert (await realm.me(mint.token(claims=realm.session.claims))).status_code == 401


async def test_a_session_cannot_be_used_in_anothers_name(realm: Realm) -> None:
    somebody = await realm.mint(await realm.service.sign_in())
    mine = realm.session.claims
    mixed = [
        somebody.token(claims={"sid": mine["sid"]}),
        somebody.token(claims={"sub": mine["sub"]}),
    ]
    for token in mixed:
        assert (await realm.me(token)).status_code == 401
    assert (await realm.me(somebody.token())).status_code == 200


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
async def test_another_authorization_header_is_refused(realm: Realm, value: str | None) -> None:
    token = realm.session.token()
    headers = {} if value is None else {"Authorization": value.replace("{}", token)}
    answer = await realm.service.http.get("/api/me", headers=headers)
    assert answer.status_code == 401, answer.text
    assert answer.json()["error"]["path"] == "/api/me"


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_is_told_in_any_case(realm: Realm, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} {realm.session.token()}"}
    assert (await realm.service.http.get("/api/me", headers=headers)).status_code == 200


async def test_the_header_and_claims_of_a_token_are_those_of_the_contract(realm: Realm) -> None:
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
