"""A browser that shows a page of the service, and signs in as the page does."""

import re
import secrets
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from rota.dev.idp import challenge_of
from tests.service import Service

SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}


class Browser:
    """Keeps cookies, and sends what browsers send with the requests of a page."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.http = httpx.AsyncClient(
            base_url=str(service.http.base_url), headers=SAME_ORIGIN, timeout=30
        )
        self.verifier = secrets.token_urlsafe(48)
        self.nonce = secrets.token_urlsafe(16)
        self.redirect_uri = f"{self.http.base_url}/signin/callback".replace("//signin", "/signin")

    async def __aenter__(self) -> "Browser":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    @property
    def cookie(self) -> str | None:
        return self.http.cookies.get("rota")

    async def code(self, *, email: str | None = None, **changes: str) -> str:
        """Signs in at the identity provider. Returns the code that the page gets back."""
        config = (await self.http.get("/api/auth/config")).json()
        (issuer,) = config["issuers"]
        state = secrets.token_urlsafe(16)
        query = {
            "client_id": issuer["clientId"],
            "redirect_uri": self.redirect_uri,
            "response_type": "code",
            "scope": "openid email profile",
            "state": state,
            "nonce": self.nonce,
            "code_challenge": challenge_of(self.verifier),
            "code_challenge_method": "S256",
        } | changes
        async with httpx.AsyncClient() as visitor:
            page = await visitor.get(issuer["authorizationEndpoint"], params=query)
            assert page.status_code == 200, page.text
            (first, *_) = re.findall(r'name="email" value="([^"]+)"', page.text)
            chosen = await visitor.post(page.url, data={"email": email or first})
        assert chosen.status_code == 303, chosen.text
        assert chosen.headers["location"].startswith(f"{self.redirect_uri}?")
        response = parse_qs(urlsplit(chosen.headers["location"]).query)
        assert (response["state"], response["iss"]) == ([state], [issuer["issuer"]])
        return response["code"][0]

    def body(self, code: str, /, **changes: Any) -> dict[str, Any]:
        return {
            "code": code,
            "codeVerifier": self.verifier,
            "redirectUri": self.redirect_uri,
            "issuer": self.service.stack.endpoints.issuer_url,
            "nonce": self.nonce,
            "cookie": True,
        } | changes

    async def exchange(
        self, code: str, /, headers: dict[str, str] | None = None, **changes: Any
    ) -> httpx.Response:
        body = self.body(code, **changes)
        return await self.http.post("/api/auth/code", json=body, headers=headers)

    async def sign_in(self) -> httpx.Response:
        response = await self.exchange(await self.code())
        assert response.status_code == 200, response.text
        return response

    async def me(self, headers: dict[str, str] | None = None) -> httpx.Response:
        return await self.http.get("/api/me", headers=headers)
