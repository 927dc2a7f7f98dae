"""A service that trusts an identity provider, for the endpoints that take its access tokens."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from joserfc.jwk import RSAKey

from rota.agents.sync import sync
from rota.dev.stack import Stack
from tests.auth.forge import Mint
from tests.auth.provider import Provider
from tests.runs.runner import CATALOG
from tests.service import Person, Service


@dataclass
class Realm:
    """A service, and an identity provider that it trusts."""

    service: Service
    provider: Provider
    # Signed in once with an ID token of the provider.
    person: Person
    # The path of the endpoint.
    path: str

    @property
    def audience(self) -> str:
        return f"{self.service.settings.public_url}{self.path}"

    def mint(self, **claims: Any) -> Mint:
        """Access tokens of the person."""
        own = {"sub": self.person.subject, "aud": self.audience, "scope": "openid"}
        made = self.provider.mint("rs", **{**own, **claims})
        return Mint({**made.header, "typ": "at+jwt"}, made.claims, made.key, made.untrusted)


@asynccontextmanager
async def started_realm(
    stack: Stack, path: str, *, variant: str, name: str
) -> AsyncIterator[Realm]:
    key = RSAKey.generate_key(2048, {"kid": "rs", "use": "sig", "alg": "RS256"})
    async with Provider(key).serve() as provider:
        issuers = (provider.setting,)
        async with Service.start(
            stack, variant=variant, name=name, oidc_issuers=issuers
        ) as service:
            await sync(service.database_url, CATALOG)
            subject = "somebody"
            answer = await service.http.post(
                "/api/auth/session", json={"idToken": provider.mint("rs", sub=subject).token()}
            )
            assert answer.status_code == 200, answer.text
            person = Person(service, subject, answer.json()["token"])
            yield Realm(service, provider, person, path)
