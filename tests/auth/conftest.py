"""A service that trusts three issuers. The tests control two of them."""

import json
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from rota.auth.tokens import add_key
from rota.dev.stack import Stack
from rota.platform.crypto import Vault
from rota.platform.db import use_json
from rota.platform.issuer import Issuer
from tests.auth.forge import Mint, claims_of, header_of, untrusted_key
from tests.auth.provider import Provider
from tests.service import Person, Service

RETIRED_KID = "retired"


def random_address() -> dict[str, str]:
    """Headers of a client with its own address, and so with its own rate limit."""
    a, b, c = random.randbytes(3)
    return {"X-Forwarded-For": f"10.{a}.{b}.{c}"}


@dataclass
class Realm:
    service: Service
    provider: Provider
    # Another trusted issuer. It has one key.
    other: Provider
    # From a real sign-in. The tests change it.
    session: Mint
    retired: Mint

    async def me(self, token: str) -> httpx.Response:
        # Bytes, because httpx would refuse some of these tokens as text.
        bearer = b"Bearer " + token.encode("latin-1")
        headers: Any = {b"Authorization": bearer} | {
            k.encode(): v.encode() for k, v in random_address().items()
        }
        return await self.service.http.get("/api/me", headers=headers)

    async def start(self, id_token: str) -> httpx.Response:
        return await self.service.http.post(
            "/api/auth/session", json={"idToken": id_token}, headers=random_address()
        )

    async def refresh(self, token: str | None) -> httpx.Response:
        bearer = {} if token is None else {"Authorization": f"Bearer {token}"}
        return await self.service.http.post("/api/auth/refresh", headers=random_address() | bearer)

    async def mint(self, person: Person) -> Mint:
        return await session_mint(self.service, person)


async def session_mint(service: Service, person: Person) -> Mint:
    """Signs session tokens for this person with the key of the service."""
    kid = header_of(person.token)["kid"]
    key = await signing_key(service, kid)
    return Mint(header_of(person.token), claims_of(person.token), key, untrusted_key(key))


async def signing_key(service: Service, kid: str) -> OKPKey:
    async with service.owner() as connection:
        sealed = await connection.fetchval(
            "SELECT sealed_private FROM signing_keys WHERE kid = $1", kid
        )
    vault = Vault(service.settings.secret_key_bytes)
    return OKPKey.import_key(vault.open(sealed, f"signing_keys/{kid}/sealed_private"))


async def add_retired_key(service: Service) -> None:
    async with service.owner() as connection, connection.transaction():
        await use_json(connection)
        await add_key(connection, Vault(service.settings.secret_key_bytes), RETIRED_KID)
        await connection.execute(
            "UPDATE signing_keys SET retires_at = now() - interval '1 second' WHERE kid = $1",
            RETIRED_KID,
        )


def provider_with_all_algorithms() -> Provider:
    """Publishes a key for every algorithm, and keys that must not be used."""
    rsa = RSAKey.generate_key(2048).as_dict(private=True)
    provider = Provider(
        RSAKey.import_key(rsa, {"kid": "rs", "alg": "RS256", "use": "sig"}),
        RSAKey.import_key(rsa, {"kid": "ps", "alg": "PS256"}),
        RSAKey.import_key(rsa, {"kid": "any"}),
        RSAKey.import_key(rsa, {"kid": "enc", "use": "enc"}),
        ECKey.generate_key("P-256", {"kid": "ec256", "alg": "ES256"}),
        ECKey.generate_key("P-384", {"kid": "ec384"}),
        ECKey.generate_key("P-521", {"kid": "ec521"}),
        OKPKey.generate_key("Ed25519", {"kid": "ed"}),
    )
    secret = OctKey.generate_key(256, {"kid": "oct"})
    provider.keys["oct"] = secret
    provider.jwks["keys"][:0] = [
        secret.as_dict(),
        "not a key",
        {"kid": "new", "kty": "AKP", "alg": "ML-DSA-44", "pub": "AAAA"},
        {"kid": "broken", "kty": "RSA", "n": "AQAB", "e": "AQAB"},
        {"kid": "nameless"},
    ]
    return provider


@pytest.fixture(scope="session")
async def realm(stack: Stack) -> AsyncIterator[Realm]:
    provider = provider_with_all_algorithms()
    other = Provider(ECKey.generate_key("P-256", {"kid": "theirs", "alg": "ES256"}))
    async with (
        provider.serve(),
        other.serve(),
        Service.start(
            stack, variant="a", name="auth", **trusting(stack, provider, other)
        ) as service,
    ):
        person = await service.sign_in()
        session = await session_mint(service, person)
        await add_retired_key(service)
        retired = Mint(
            session.header | {"kid": RETIRED_KID},
            session.claims,
            await signing_key(service, RETIRED_KID),
            session.untrusted,
        )
        yield Realm(service, provider, other, session, retired)


def trusting(stack: Stack, *providers: Provider) -> dict[str, Any]:
    """Settings of a service that trusts these providers and the one of the stack."""
    development = json.loads(stack.environment()["ROTA_OIDC_ISSUERS"])
    return {
        "oidc_issuers": (
            *(Issuer.model_validate(issuer) for issuer in development),
            *(provider.setting for provider in providers),
        ),
        "trusted_proxies": ("127.0.0.1",),
    }
