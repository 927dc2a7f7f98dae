"""ID tokens: good ones of trusted issuers, meant for us, once. Nothing else."""

import time

import pytest

from tests.auth.conftest import Realm
from tests.auth.forge import WITHOUT, Mint, b64, by, dumps, parts, unb64
from tests.auth.forgeries import FORGERIES, HONEST, Forgery
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
    "aud ours in capitals": _claims(aud=CLIENT_ID.upper()),
    "azp another": _claims(azp="another"),
    "azp empty": _claims(azp=""),
    "azp a list": _claims(azp=[CLIENT_ID]),
    "azp ours, aud another": _claims(aud="another", azp=CLIENT_ID),
    "issued eleven minutes ago": _at(iat=-660, exp=300),
    "issued a year ago and good for ten": _at(iat=-31_536_000, exp=315_360_000),
    "issued a minute ahead": _at(iat=60, exp=300),
    "expired a second ago": _at(iat=-100, exp=-1),
    "not valid before the next hour": _at(nbf=3600),
    "nbf a text": _claims(nbf="0"),
    "nbf null": _claims(nbf=None),
    "iat beyond all numbers": _claims(iat=-(10**399)),
    "sub of 256 characters": _claims(sub="s" * 256),
    "sub with NUL": _claims(sub="a\0b"),
    "RS384 with a key for RS256": lambda m: m.token({"alg": "RS384"}, sign=by("RS384", m.key)),
    "PS256 with a key for RS256": lambda m: m.token({"alg": "PS256"}, sign=by("PS256", m.key)),
    "RS256 with a key for PS256": lambda m: m.token({"kid": "ps"}),
    "RS256 said of a key for ES256": lambda mint: mint.token({"kid": "ec256"}),
    "RS256 said of an Ed25519 key": lambda mint: mint.token({"kid": "ed"}),
    "a key for encryption": lambda mint: mint.token({"kid": "enc"}),
    "a published symmetric key": lambda mint: mint.token({"kid": "oct"}),
    "a published key of an unknown kind": lambda mint: mint.token({"kid": "new"}),
    "a published key that is broken": lambda mint: mint.token({"kid": "broken"}),
    "another trusted issuer's kid": lambda mint: mint.token({"kid": "theirs"}),
}


@pytest.fixture
def mint(realm: Realm) -> Mint:
    return realm.provider.mint("rs")


@pytest.mark.parametrize("name", HONEST)
async def test_an_honest_token_passes(realm: Realm, mint: Mint, name: str) -> None:
    answer = await realm.start(HONEST[name](mint))
    assert answer.status_code == 200, answer.text
    assert (await realm.me(answer.json()["token"])).status_code == 200


@pytest.mark.parametrize("name", [*FORGERIES, *OF_ID_TOKENS])
async def test_a_forged_token_is_refused(realm: Realm, mint: Mint, name: str) -> None:
    forge = FORGERIES.get(name) or OF_ID_TOKENS[name]
    forged = forge(mint)
    answer = await realm.start(forged)
    assert answer.status_code == 401, answer.text
    assert answer.json()["error"]["code"] == "AUTHENTICATION_ERROR"
    assert forged not in answer.text


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
    assert (await realm.start(realm.provider.mint(kid, alg).resigned(_spoilt))).status_code == 401


def _spoilt(signature: bytes) -> bytes:
    return signature[:-1] + bytes([signature[-1] ^ 1])


@pytest.mark.parametrize("curve", [("ec256", "ES384"), ("ec384", "ES256"), ("ec521", "ES384")])
async def test_a_curve_has_its_own_algorithm(realm: Realm, curve: tuple[str, str]) -> None:
    kid, alg = curve
    own = {"ec256": "ES256", "ec384": "ES384", "ec521": "ES512"}[kid]
    mint = realm.provider.mint(kid, own)
    assert (await realm.start(mint.token({"alg": alg}))).status_code == 401


async def test_a_published_symmetric_key_signs_nothing(realm: Realm) -> None:
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
        {"iat": time.time()},
        {"email": 7, "name": ["x"]},
    ],
)
async def test_claims_within_the_rules_are_accepted(
    realm: Realm, mint: Mint, changes: dict[str, object]
) -> None:
    assert (await realm.start(mint.token(claims=changes))).status_code == 200


async def test_a_token_without_typ_is_accepted(realm: Realm, mint: Mint) -> None:
    assert (await realm.start(mint.token({"typ": WITHOUT}))).status_code == 200


async def test_a_token_without_kid_is_accepted_where_the_issuer_has_one_key(
    realm: Realm,
) -> None:
    mint = realm.other.mint("theirs")
    assert (await realm.start(mint.token({"kid": WITHOUT}))).status_code == 200
    strangers = realm.other.mint("theirs").token({"kid": WITHOUT}, sign=by("ES256", mint.stranger))
    assert (await realm.start(strangers)).status_code == 401


async def test_a_trusted_issuer_cannot_speak_for_another(realm: Realm) -> None:
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


async def test_a_session_token_is_no_id_token(realm: Realm) -> None:
    assert (await realm.start(realm.session.token())).status_code == 401
    for typ in ("JWT", WITHOUT):
        disguised = realm.session.token({"typ": typ}, realm.provider.claims())
        assert (await realm.start(disguised)).status_code == 401


async def test_a_token_is_good_for_one_session(realm: Realm, mint: Mint) -> None:
    token = mint.token()
    assert (await realm.start(token)).status_code == 200
    answer = await realm.start(token)
    assert answer.status_code == 401
    assert "used already" in answer.json()["error"]["message"]


async def test_a_signature_written_in_another_way_does_not_make_a_token_new(
    realm: Realm,
) -> None:
    token = realm.provider.mint("ec256").token()
    assert (await realm.start(token)).status_code == 200
    header, claims, signature = parts(token)
    raw = unb64(signature)
    r, s = raw[:32], int.from_bytes(raw[32:], "big")
    # For ECDSA (r, -s) is as valid as (r, s).
    twin = f"{header}.{claims}.{b64(r + (P256_ORDER - s).to_bytes(32, 'big'))}"
    answer = await realm.start(twin)
    assert answer.status_code == 401
    assert "used already" in answer.json()["error"]["message"]


async def test_a_token_signed_twice_is_used_once(realm: Realm) -> None:
    # PSS signatures are random: the same words with another valid signature.
    mint = realm.provider.mint("ps")
    first, second = mint.token(), mint.token()
    assert first != second
    assert (await realm.start(first)).status_code == 200
    assert (await realm.start(second)).status_code == 401


async def test_used_tokens_are_forgotten_once_they_are_too_old_anyway(realm: Realm) -> None:
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
async def test_a_body_without_a_token_is_not_valid(realm: Realm, body: object) -> None:
    answer = await realm.service.http.post("/api/auth/session", json=body)
    assert answer.status_code == 400, answer.text


async def test_nul_in_the_body_is_not_valid(realm: Realm, mint: Mint) -> None:
    body = dumps({"idToken": mint.token() + "\0"})
    answer = await realm.service.http.post(
        "/api/auth/session", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 400
