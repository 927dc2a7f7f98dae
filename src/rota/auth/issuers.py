"""Verifies ID tokens and access tokens with the keys that identity providers publish."""

import asyncio
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
import structlog
from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key

from rota.accounts.addresses import normalized
from rota.accounts.service import Profile
from rota.auth import compact, discovery
from rota.auth.compact import BadToken, Compact
from rota.auth.discovery import FETCH_TIMEOUT_S, MIN_RETRY_S, STALE_AFTER_S, Discovery
from rota.auth.errors import IssuerUnavailable
from rota.platform.issuer import Issuer

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "Ed25519", "EdDSA"),
)
SYMMETRIC = frozenset({"oct"})

MAX_AGE_S = 600
# An access token cannot be revoked here, so it must not be valid for longer.
MAX_ACCESS_S = 24 * 3600
ID_TOKEN_TYPES = ("JWT",)
# Many issuers do not use the type of RFC 9068. The audience tells the tokens apart.
ACCESS_TOKEN_TYPES = ("at+jwt", "application/at+jwt", "JWT")
# Clocks differ slightly. A token issued further in the future than this is rejected.
LEEWAY_S = 30
# Unknown key IDs cause at most one fetch in this time.
MIN_REFETCH_S = 30
# How long a client that asks how to sign in waits for an issuer that was not reached before.
CONFIG_WAIT_S = 1
# The maximum length in OpenID Connect.
MAX_SUBJECT_CHARACTERS = 255

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Identity:
    """A verified identity, and the hash that makes its token single-use."""

    profile: Profile
    nonce: str | None
    token_hash: bytes
    expires_at: datetime
    # The address, if the issuer says that it is the user's.
    verified_email: str | None


# They say what the client learns about the user, not what it can do here.
OPENID_SCOPES = frozenset({"openid", "profile", "email", "address", "phone", "offline_access"})


class SenderConstrained(BadToken):
    """The token is bound to a key of its client (RFC 9449 or RFC 8705)."""


@dataclass(frozen=True, slots=True)
class AccessGrant:
    """Whom a verified access token acts for, and what it allows."""

    issuer: str
    subject: str
    # None: the token names none, apart from those of OpenID Connect.
    scopes: frozenset[str] | None
    expires_at: float
    # Identifies the token in the audit trail.
    digest: str


class KeyCache:
    """The published keys of one issuer. They stay in use while the issuer is down."""

    def __init__(self, issuer: str, discovery: Discovery, client: httpx.AsyncClient) -> None:
        self._issuer = issuer
        self._discovery = discovery
        self._client = client
        self._keys: tuple[Key, ...] = ()
        self._tried_at = float("-inf")
        self._fetched_at = float("-inf")
        self._lock = asyncio.Lock()
        self._renewal: asyncio.Task[None] | None = None

    async def find(self, kid: str | None) -> Key:
        key = self._known(kid)
        if key is not None:
            stale = time.monotonic() - self._fetched_at > STALE_AFTER_S
            if stale and (self._renewal is None or self._renewal.done()):
                # In the background: the known key stays valid until a fetch removes it.
                self._renewal = asyncio.create_task(self._refetch())
            return key
        await self._refetch()
        key = self._known(kid)
        if key is not None:
            return key
        if not self._keys:
            raise IssuerUnavailable(self._issuer)
        raise BadToken("the issuer does not publish the signing key")

    def _known(self, kid: str | None) -> Key | None:
        if kid is None:
            # OpenID Connect allows this if the issuer has only one key.
            return self._keys[0] if len(self._keys) == 1 else None
        return next((key for key in self._keys if key.kid == kid), None)

    async def _refetch(self) -> None:
        async with self._lock:
            # Without any key, no token can be verified, so the next attempt comes sooner.
            interval_s = MIN_REFETCH_S if self._keys else MIN_RETRY_S
            if time.monotonic() - self._tried_at < interval_s:
                return
            self._tried_at = time.monotonic()
            try:
                async with asyncio.timeout(FETCH_TIMEOUT_S):
                    self._keys = await self._fetch()
                self._fetched_at = time.monotonic()
            except Exception as error:
                # Known keys stay in use, whatever is wrong with the issuer's documents.
                log.warning("issuer_keys_not_fetched", issuer=self._issuer, error=repr(error))

    async def _fetch(self) -> tuple[Key, ...]:
        metadata = await self._discovery.fetch()
        document = await discovery.get(self._client, metadata.jwks_uri)
        keys = tuple(key for jwk in document["keys"] if (key := _usable(jwk)))
        if not keys:
            raise ValueError("the issuer publishes no signing keys")
        return keys


def _usable(jwk: Any) -> Key | None:
    """A public key for signatures, or None if the key has another purpose or an unknown type."""
    try:
        if jwk["kty"] in SYMMETRIC or jwk.get("use", "sig") != "sig":
            return None
        return JWKRegistry.import_key(jwk)
    except (JoseError, ValueError, TypeError, KeyError, AttributeError):
        return None


class Issuers:
    """Verifies tokens of the configured issuers."""

    def __init__(self, issuers: Sequence[Issuer], client: httpx.AsyncClient) -> None:
        self._issuers = {issuer.issuer: issuer for issuer in issuers}
        self._discovery = {name: Discovery(name, client) for name in self._issuers}
        self._keys = {
            name: KeyCache(name, known, client) for name, known in self._discovery.items()
        }

    @property
    def names(self) -> list[str]:
        return list(self._issuers)

    def find(self, name: str) -> tuple[Issuer, Discovery] | None:
        issuer = self._issuers.get(name)
        return (issuer, self._discovery[name]) if issuer else None

    async def sign_in_pages(self) -> list[tuple[Issuer, str | None]]:
        """Each issuer and the address where browsers sign in, or None if it is not known."""
        found = await asyncio.gather(
            *[known.current(CONFIG_WAIT_S) for known in self._discovery.values()]
        )
        return [
            (issuer, metadata.authorization_endpoint if metadata else None)
            for issuer, metadata in zip(self._issuers.values(), found, strict=True)
        ]

    async def verify(self, text: str) -> Identity:
        token = compact.parse(text)
        issuer = self._issuer_of(token, ID_TOKEN_TYPES)
        # Checks without a key come first, so that invalid tokens cause no fetches.
        _check_audience(token, issuer)
        expires_at = _check_times(token)
        if token.time_claim("iat") < time.time() - MAX_AGE_S:
            raise BadToken("issued too long ago")
        await self._check_signature(token, issuer)
        return Identity(
            Profile(
                issuer.issuer,
                _subject(token),
                _optional(token, "email"),
                _optional(token, "name"),
            ),
            nonce if isinstance(nonce := token.claims.get("nonce"), str) else None,
            hashlib.sha256(token.signing_input.encode()).digest(),
            # The token is stored as used until it is too old to be accepted.
            datetime.fromtimestamp(min(expires_at, token.time_claim("iat") + MAX_AGE_S), UTC),
            _verified_email(token, issuer),
        )

    async def verify_access(self, text: str, audience: str) -> AccessGrant:
        """The claims of an access token (RFC 9068) that was issued for this audience."""
        token = compact.parse(text)
        issuer = self._issuer_of(token, ACCESS_TOKEN_TYPES)
        if audience not in _audiences(token):
            raise BadToken("the audience is another service")
        if "cnf" in token.claims:
            # Whoever sends it must prove that it holds a key, and that is not checked here.
            raise SenderConstrained
        expires_at = _check_times(token)
        if expires_at - token.time_claim("iat") > MAX_ACCESS_S:
            raise BadToken("valid for too long")
        await self._check_signature(token, issuer)
        return AccessGrant(
            issuer.issuer,
            _subject(token),
            _scopes(token),
            expires_at,
            hashlib.sha256(token.signing_input.encode()).hexdigest(),
        )

    def _issuer_of(self, token: Compact, types: tuple[str, ...]) -> Issuer:
        issuer = self._issuers.get(token.text_claim("iss"))
        if issuer is None:
            raise BadToken("unknown issuer")
        if token.header.get("typ", "JWT") not in types:
            raise BadToken("wrong type of token")
        if token.header.get("alg") not in ALGORITHMS:
            raise BadToken("algorithm not allowed")
        return issuer

    async def _check_signature(self, token: Compact, issuer: Issuer) -> None:
        kid = token.header.get("kid")
        if kid is not None and not isinstance(kid, str):
            raise BadToken("kid is not a string")
        key = await self._keys[issuer.issuer].find(kid)
        if key.alg is not None and key.alg != token.header["alg"]:
            raise BadToken("the key is for another algorithm")
        compact.verify(token, key, ALGORITHMS)


def _subject(token: Compact) -> str:
    subject = token.text_claim("sub")
    if len(subject) > MAX_SUBJECT_CHARACTERS:
        raise BadToken("sub is too long")
    return subject


def _audiences(token: Compact) -> list[Any]:
    audience = token.claims.get("aud")
    return audience if isinstance(audience, list) else [audience]


def _check_audience(token: Compact, issuer: Issuer) -> None:
    audiences = _audiences(token)
    client_id = next((own for own in (issuer.client_id, issuer.cli[0]) if own in audiences), None)
    if client_id is None:
        raise BadToken("the audience is another client")
    authorized = token.claims.get("azp")
    if authorized != client_id and (authorized is not None or len(audiences) > 1):
        raise BadToken("issued to another client")


def _check_times(token: Compact) -> float:
    now = time.time()
    issued, expires = token.time_claim("iat"), token.time_claim("exp")
    if expires <= now:
        raise BadToken("expired")
    if issued > now + LEEWAY_S:
        raise BadToken("issued in the future")
    if "nbf" in token.claims and token.time_claim("nbf") > now + LEEWAY_S:
        raise BadToken("not valid yet")
    return expires


def _verified_email(token: Compact, issuer: Issuer) -> str | None:
    """Some issuers send the claim as text. Without it, the operator can trust the issuer."""
    verified = token.claims.get("email_verified", issuer.trust_email)
    email = _optional(token, "email") if verified in (True, "true") else None
    return normalized(email) if email else None


def _optional(token: Compact, name: str) -> str | None:
    value = token.claims.get(name)
    return value[:320] if isinstance(value, str) and value else None


def _scopes(token: Compact) -> frozenset[str] | None:
    """What the token allows. Some providers call the claim `scp`, or send a list."""
    named: set[str] = set()
    for claim in ("scope", "scp"):
        match token.claims.get(claim):
            case None:
                pass
            case str(text):
                named.update(text.split())
            case list(names):
                named.update(str(name) for name in names)
            case _:
                raise BadToken(f"the claim {claim} is neither text nor a list")
    return frozenset(named - OPENID_SCOPES) or None
