"""Session tokens, which this service issues as JSON web tokens, and their signing keys.

The keys are in the database, with the private part sealed. Every process reads them twice a second,
so a rotation takes effect everywhere within a second and without a restart. The newest key signs as
soon as every process has read it. Older keys verify tokens until they retire.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from joserfc.jwk import OKPKey

from rota.auth import compact, signing_key_queries
from rota.auth.compact import BadToken
from rota.auth.errors import SigningKeyMissing
from rota.platform import cell, clock, ids
from rota.platform.cache import ExpiringCache
from rota.platform.crypto import Vault
from rota.platform.db import Database, WriteConnection
from rota.platform.settings import DAY_S

LIFETIME_S = 7 * DAY_S
ALGORITHM = "Ed25519"
TYPE = "session+jwt"
AUDIENCE = "rota"
# Tokens of older versions are rejected.
VERSION = 1

RELOAD_AFTER_S = 0.5
# Sign-ins and unknown key IDs cause at most ten reads per second.
MIN_RELOAD_S = 0.1
# After this time, every process has read a new key.
PROPAGATION = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class SessionClaims:
    user_id: UUID
    session_id: UUID
    kid: str
    expires_at: float


@dataclass(frozen=True, slots=True)
class SigningKey:
    kid: str
    key: OKPKey
    created_at: datetime


class KeyRing:
    """The signing keys that are not retired, at most `RELOAD_AFTER_S` old."""

    def __init__(self, db: Database, vault: Vault) -> None:
        self._db = db
        self._vault = vault
        self._keys: dict[str, SigningKey] = {}
        self._loaded_at = float("-inf")
        self._lock = asyncio.Lock()

    async def active(self) -> SigningKey:
        # Tokens are issued rarely, and a key that was just retired must not sign.
        keys = await self._current(MIN_RELOAD_S)
        if not keys:
            raise SigningKeyMissing
        propagated = (key for key in keys.values() if key.created_at <= clock.now() - PROPAGATION)
        return next(propagated, next(iter(keys.values())))

    async def find(self, kid: object) -> SigningKey:
        if not isinstance(kid, str):
            raise BadToken("kid is missing or not a string")
        key = (await self._current(RELOAD_AFTER_S)).get(kid)
        if key is None:
            # The key may be new.
            key = (await self._current(MIN_RELOAD_S)).get(kid)
        if key is None:
            raise BadToken("unknown or retired key")
        return key

    async def public_keys(self) -> list[dict[str, Any]]:
        keys = await self._current(MIN_RELOAD_S)
        return [dict(key.key.as_dict(private=False)) for key in keys.values()]

    async def can_open(self) -> bool:
        """Whether there are keys. Raises `SealBroken` if this process cannot open one, also if it
        opened the key before: the secret key may have been rotated since."""
        async with self._db.directory() as connection:
            rows = await signing_key_queries.current(connection)
        for row in rows:
            self._vault.open(row.sealed_private, seal_context(row.kid))
        return bool(rows)

    async def _current(self, max_age_s: float) -> dict[str, SigningKey]:
        """The keys by kid, the newest first."""
        if time.monotonic() - self._loaded_at >= max_age_s:
            async with self._lock:
                if time.monotonic() - self._loaded_at >= max_age_s:
                    await self._load()
        return self._keys

    async def _load(self) -> None:
        # The rows can be as old as the start of the query.
        started_at = time.monotonic()
        async with self._db.directory() as connection:
            rows = await signing_key_queries.current(connection)
        self._keys = {row.kid: self._known(row) for row in rows}
        self._loaded_at = started_at

    def _known(self, row: signing_key_queries.SigningKeyRow) -> SigningKey:
        held = self._keys.get(row.kid)
        return SigningKey(row.kid, held.key if held else self._opened(row), row.created_at)

    def _opened(self, row: signing_key_queries.SigningKeyRow) -> OKPKey:
        private = self._vault.open(row.sealed_private, seal_context(row.kid))
        return OKPKey.import_key(private, {"kid": row.kid, "use": "sig", "alg": ALGORITHM})


def seal_context(kid: str) -> str:
    return f"signing_keys/{kid}/sealed_private"


async def add_key(connection: WriteConnection, vault: Vault, kid: str) -> None:
    key = OKPKey.generate_key("Ed25519", {"kid": kid, "use": "sig", "alg": ALGORITHM})
    sealed = vault.seal(key.as_pem(private=True), seal_context(kid))
    await signing_key_queries.insert(connection, kid, key.as_dict(private=False), sealed)


class SessionTokens:
    """Issues and verifies session tokens."""

    def __init__(
        self,
        ring: KeyRing,
        issuer: str,
        clock: Callable[[], float] = time.time,
        *,
        cell: str | None = None,
    ) -> None:
        self._ring = ring
        self._issuer = issuer
        self._cell = cell
        self._clock = clock
        # Tokens with verified signatures. Expiry and key are checked again on every use.
        self._verified: ExpiringCache[str, SessionClaims] = ExpiringCache(
            max_items=10_000, max_age_s=600
        )

    async def issue(self, user_id: UUID, session_id: UUID) -> str:
        signing = await self._ring.active()
        issued = int(self._clock())
        claims: dict[str, Any] = {
            "iss": self._issuer,
            "aud": AUDIENCE,
            "sub": ids.to_wire("user", user_id),
            "sid": ids.to_wire("sess", session_id),
            # Makes two tokens of the same second different.
            "jti": secrets.token_hex(8),
            "ver": VERSION,
            "iat": issued,
            "exp": issued + LIFETIME_S,
        }
        if self._cell is not None:
            claims["cell"] = self._cell
        header = {"typ": TYPE, "alg": ALGORITHM, "kid": signing.kid}
        return compact.sign(header, claims, signing.key)

    async def verify(self, text: str, *, allow_expired: bool = False) -> SessionClaims:
        """The claims of a valid token. Does not check whether its session is still active."""
        claims = self._verified.get(text)
        if claims is None:
            claims = await self._read(text)
            self._verified.put(text, claims)
        else:
            await self._ring.find(claims.kid)
        if claims.expires_at <= self._clock() and not allow_expired:
            raise BadToken("expired")
        return claims

    async def _read(self, text: str) -> SessionClaims:
        token = compact.parse(text)
        if token.header.get("typ") != TYPE:
            raise BadToken("wrong type of token")
        # Before the signature: the keys of another cell are not here.
        named = token.claims.get("cell")
        cell.check("The session token", named if isinstance(named, str) else None, self._cell)
        signing = await self._ring.find(token.header.get("kid"))
        compact.verify(token, signing.key, [ALGORITHM])
        claims = token.claims
        if claims.get("iss") != self._issuer or claims.get("aud") != AUDIENCE:
            raise BadToken("wrong issuer or audience")
        if type(claims.get("ver")) is not int or claims["ver"] != VERSION:
            raise BadToken("retired version")
        issued, expires = token.time_claim("iat"), token.time_claim("exp")
        if issued > self._clock() + 60 or expires - issued != LIFETIME_S:
            raise BadToken("invalid times")
        user_id = ids.from_wire("user", token.text_claim("sub"))
        session_id = ids.from_wire("sess", token.text_claim("sid"))
        if user_id is None or session_id is None:
            raise BadToken("invalid IDs")
        return SessionClaims(user_id, session_id, signing.kid, expires)
