"""Only valid ID tokens of trusted issuers for this client are accepted, and each only once."""

import time

import pytest

from tests.auth.conftest import Realm
from tests.auth.forge import WITHOUT, Mint, b64, by, dumps, parts, unb64
from tests.auth.forgeries import FORGERIES, VALID, Forgery
from tests.auth.provider import CLIENT_ID

P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def _claims(**changes: object) -> Forgery:
    return lambda mint: mint.token(claims=changes)


def _typ(value: object) -> Forgery:
    return lambda mint: mint.token(header={"typ": value})


def _at(**seconds_from_now: float) -> Forgery:
    return lambda mint: mint.token(
        claims={name: int(time.time() + s) for name, s in seconds_from_now.items()}
    )


OF_ID_TOKENS: dict[str, Forgery] = {
    "typ of session tokens": _typ("session+jwt"),
    "typ of access tokens": _typ("at+jwt"),
    "typ of logout tokens": _typ("logout+jwt"),
    "typ null": _typ(None),
    "typ a list": _typ(["JWT"]),
    "aud two, without azp": _claims(aud=[CLIENT_ID, "another"]),
    "aud two, azp another": _claims(aud=[CLIENT_ID, "another"], azp="another"),
    "aud two others": _claims(aud=["one", "another"], azp=CLIENT_ID),
    "aud a nested list": _claims(aud=[[CLIENT_ID]]),
    "aud in capitals": _claims(aud=CLIENT_ID.upper()),
    "azp another": _claims(azp="another"),
    "azp empty": _claims(azp=""),
    "azp a list": _claims(azp=[CLIENT_ID]),
    "azp correct, aud another": _claims(aud="another", azp=CLIENT_ID),
    "issued eleven minutes ago": _at(iat=-660, exp=300),
    "issued a year ago and valid for ten": _at(iat=-31_536_000, exp=315_360_000),
    "issued a minute ahead": _at(iat=60, exp=300),
    "expired a second ago": _at(iat=-100, exp=-1),
    "not valid before the next hour": _at(nbf=3600),
    "nbf a string": _claims(nbf="0"),
    "nbf null": _claims(nbf=None),
    "iat too small": _claims(iat=-(10**399)),
    "sub of 256 characters": _claims(sub="s" * 256),
    "sub with NUL": _claims(sub="a\0b"),
    "RS384 with a key for RS256": lambda m: m.token({"alg": "RS384"}, sign=by("RS384", m.key)),
    "PS256 with a key for RS256": lambda m: m.token({"alg": "PS256"}, sign=by("PS256", m.key)),
    "RS256 with a key for PS256": lambda m: m.token({"kid": "ps"}),
    "RS256 with a key for ES256": lambda mint: mint.token({"kid": "ec256"}),
    "RS256 with an Ed25519 key": lambda mint: mint.token({"kid": "ed"}),
    "a key for encryption": lambda mint: mint.token({"kid": "enc"}),
    "a published symmetric key": lambda mint: mint.token({"kid": "oct"}),
    "a published key of an unknown type": lambda mint: mint.token({"kid": "new"}),
    "a published key that is broken": lambda mint: mint.token({"kid": "broken"}),
    "another trusted issuer's kid": lambda mint: mint.token({"kid": "theirs"}),
}


@pytest.fixture
def mint(realm: Realm) -> Mint:
    return realm.provider.mint("rs")


@pytest.mark.parametrize("name", VALID)
async def test_a_valid_token_is_accepted(realm: Realm, mint: Mint, name: str) -> None:
    response = await realm.start(VALID[name](mint))
    assert response.status_code == 200, response.text
    assert (await realm.me(response.json()["token"])).status_code == 200


@pytest.mark.parametrize("name", [*FORGERIES, *OF_ID_TOKENS])
async def test_a_forged_token_is_refused(realm: Realm, mint: Mint, name: str) -> None:
    forge = FORGERIES.get(name) or OF_ID_TOKENS[name]
    forged = forge(mint)
    response = await realm.start(forged)
    assert response.status_code == 401, response.text
    assert response.json()["error"]["code"] == "AUTHENTICATION_ERROR"
    assert forged not in response.text


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
@pytest.mark.parametrize(
    ("kid", "alg"),
    [
        *(("any", f"{family}{size}") for family in ("RS", "PS") for size in (256, 384, 512)),
        ("rs", "RS256"),
        ("ps", "PS256"),
        ("ec256", "ES256"),
        ("ec384", "ES384"),
        ("ec521", "ES512"),
        ("ed", "Ed25519"),
        ("ed", "EdDSA"),
    ],
)
async def test_every_allowed_algorithm_is_accepted(realm: Realm, kid: str, alg: str) -> None:
    mint = realm.provider.mint(kid, alg)
    assert (await realm.start(mint.token())).status_code == 200
    assert (await realm.start(realm.provider.mint(kid, alg).resigned(_changed))).status_code == 401


def _changed(signature: bytes) -> bytes:
    return signature[:-1] + bytes([signature[-1] ^ 1])


@pytest.mark.parametrize("curve", [("ec256", "ES384"), ("ec384", "ES256"), ("ec521", "ES384")])
async def test_the_algorithm_must_match_the_curve(realm: Realm, curve: tuple[str, str]) -> None:
    kid, alg = curve
    own = {"ec256": "ES256", "ec384": "ES384", "ec521": "ES512"}[kid]
    mint = realm.provider.mint(kid, own)
    assert (await realm.start(mint.token({"alg": alg}))).status_code == 401


async def test_a_published_symmetric_key_is_not_used(realm: Realm) -> None:
    mint = realm.provider.mint("oct", "HS256")
    assert (await realm.start(mint.token())).status_code == 401


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": [CLIENT_ID]},
        {"aud": [CLIENT_ID, "another"], "azp": CLIENT_ID},
        {"azp": CLIENT_ID},
        {"nbf": 0},
        {"sub": "s" * 255},
        {"sub": "ünïcödé 🙂"},
        {"email": 7, "name": ["x"]},
    ],
)
async def test_unusual_but_valid_claims_are_accepted(
    realm: Realm, mint: Mint, changes: dict[str, object]
) -> None:
    assert (await realm.start(mint.token(claims=changes))).status_code == 200


async def test_a_time_with_a_fraction_is_accepted(realm: Realm, mint: Mint) -> None:
    assert (await realm.start(mint.token(claims={"iat": time.time() - 0.5}))).status_code == 200


async def test_a_token_without_typ_is_accepted(realm: Realm, mint: Mint) -> None:
    assert (await realm.start(mint.token({"typ": WITHOUT}))).status_code == 200


async def test_a_token_without_kid_is_accepted_if_the_issuer_has_one_key(
    realm: Realm,
) -> None:
    mint = realm.other.mint("theirs")
    assert (await realm.start(mint.token({"kid": WITHOUT}))).status_code == 200
    untrusted = realm.other.mint("theirs").token({"kid": WITHOUT}, sign=by("ES256", mint.untrusted))
    assert (await realm.start(untrusted)).status_code == 401


async def test_a_trusted_issuer_cannot_sign_for_another(realm: Realm) -> None:
    theirs = realm.other.mint("theirs")
    posing = theirs.token(claims={"iss": realm.provider.issuer})
    assert (await realm.start(posing)).status_code == 401
    posing = theirs.token({"kid": "rs"}, {"iss": realm.provider.issuer})
    assert (await realm.start(posing)).status_code == 401
    assert (await realm.start(theirs.token())).status_code == 200


async def test_the_same_subject_of_two_issuers_is_two_users(realm: Realm) -> None:
    tokens = [
        realm.provider.mint("rs", sub="one-name").token(),
        realm.other.mint("theirs", sub="one-name").token(),
    ]
    users = set()
    for token in tokens:
        session = (await realm.start(token)).json()["token"]
        users.add((await realm.me(session)).json()["user"]["id"])
    assert len(users) == 2


async def test_a_session_token_is_not_accepted_as_an_id_token(realm: Realm) -> None:
    assert (await realm.start(realm.session.token())).status_code == 401
    for typ in ("JWT", WITHOUT):
        disguised = realm.session.token({"typ": typ}, realm.provider.claims())
        assert (await realm.start(disguised)).status_code == 401


async def test_a_token_can_start_only_one_session(realm: Realm, mint: Mint) -> None:
    token = mint.token()
    assert (await realm.start(token)).status_code == 200
    response = await realm.start(token)
    assert response.status_code == 401
    assert "already used" in response.json()["error"]["message"]


async def test_a_token_with_an_equivalent_signature_counts_as_used(
    realm: Realm,
) -> None:
    token = realm.provider.mint("ec256").token()
    assert (await realm.start(token)).status_code == 200
    header, claims, signature = parts(token)
    raw = unb64(signature)
    r, s = raw[:32], int.from_bytes(raw[32:], "big")
    # For ECDSA (r, -s) is as valid as (r, s).
    twin = f"{header}.{claims}.{b64(r + (P256_ORDER - s).to_bytes(32, 'big'))}"
    response = await realm.start(twin)
    assert response.status_code == 401
    assert "already used" in response.json()["error"]["message"]


async def test_a_token_signed_twice_can_be_used_only_once(realm: Realm) -> None:
    # PSS signatures are random: the same content with another valid signature.
    mint = realm.provider.mint("ps")
    first, second = mint.token(), mint.token()
    assert first != second
    assert (await realm.start(first)).status_code == 200
    assert (await realm.start(second)).status_code == 401


async def test_used_tokens_are_deleted_after_they_expire(realm: Realm) -> None:
    async with realm.service.owner() as connection:
        await connection.executemany(
            "INSERT INTO used_id_tokens VALUES ($1, now() - interval '2 minutes')",
            [(bytes([n]) * 32,) for n in range(15)],
        )
        count = "SELECT count(*) FROM used_id_tokens WHERE expires_at < now()"
        for left in (5, 0):
            assert (await realm.start(realm.provider.mint("rs").token())).status_code == 200
            assert await connection.fetchval(count) == left


@pytest.mark.parametrize(
    "body", [{}, {"idToken": None}, {"idToken": ""}, {"idToken": 7}, {"id_token": "x"}, []]
)
async def test_a_body_without_a_token_is_refused(realm: Realm, body: object) -> None:
    response = await realm.service.http.post("/api/auth/session", json=body)
    assert response.status_code == 400, response.text


async def test_a_body_with_nul_is_refused(realm: Realm, mint: Mint) -> None:
    body = dumps({"idToken": mint.token() + "\0"})
    response = await realm.service.http.post(
        "/api/auth/session", content=body, headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 400
