"""A development identity provider: a small OpenID Connect issuer.

It implements the authorization code flow with PKCE, for clients on loopback addresses.
`POST /dev/token` returns an ID token without a browser, for scripts. It does not check who signs
in, so it refuses to start in production.
"""

import argparse
import base64
import hashlib
import json
import os
import re
import secrets
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from rota.dev import CLIENT_ID, idp_page
from rota.dev.directory import DataDirectory
from rota.dev.serving import serve
from rota.platform.http.origins import HostCheck

CODE_LIFE_S = 60
TOKEN_LIFE_S = 600
LOOPBACK = r"http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?"
VERIFIER = re.compile(r"[A-Za-z0-9\-._~]{43,128}")
CHALLENGE = re.compile(r"[A-Za-z0-9\-_]{43}")


class OAuthError(Exception):
    """An error in the format of RFC 6749."""

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        self.error = error
        self.description = description
        self.status = status

    @property
    def body(self) -> dict[str, str]:
        return {"error": self.error, "error_description": self.description}


@dataclass(frozen=True)
class Person:
    subject: str
    email: str
    name: str

    @classmethod
    def of(cls, subject: str, email: str | None = None, name: str | None = None) -> "Person":
        address = email or f"{subject}@example.test"
        known = idp_page.PEOPLE.get(address) or address.partition("@")[0].title()
        return cls(subject, address, name or known)


@dataclass(frozen=True)
class Grant:
    """What a client gets for an authorization code."""

    person: Person
    redirect_uri: str
    challenge: str
    nonce: str | None
    expires_at: float


@dataclass
class Provider:
    issuer: str
    key: RSAKey
    grants: dict[str, Grant] = field(default_factory=dict)
    # Access tokens work for /userinfo only.
    access: dict[str, tuple[Person, float]] = field(default_factory=dict)

    def id_token(self, person: Person, nonce: str | None = None) -> str:
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "azp": CLIENT_ID,
            "sub": person.subject,
            "email": person.email,
            "email_verified": True,
            "name": person.name,
            "iat": now,
            "exp": now + TOKEN_LIFE_S,
            "jti": secrets.token_urlsafe(16),
        }
        if nonce is not None:
            claims["nonce"] = nonce
        return jwt.encode({"alg": "RS256", "kid": self.key.kid, "typ": "JWT"}, claims, self.key)

    def grant(self, grant: Grant) -> str:
        now = time.monotonic()
        self.grants = {code: g for code, g in self.grants.items() if g.expires_at > now}
        code = secrets.token_urlsafe(32)
        self.grants[code] = grant
        return code

    def redeem(self, form: Mapping[str, str]) -> Grant:
        # Removed before any check, so each code allows one attempt.
        grant = self.grants.pop(form.get("code", ""), None)
        if grant is None or grant.expires_at <= time.monotonic():
            raise OAuthError("invalid_grant", "The code is unknown, used or expired.")
        if form.get("redirect_uri") != grant.redirect_uri:
            raise OAuthError(
                "invalid_grant", "redirect_uri differs from the one in the authorization request."
            )
        verifier = form.get("code_verifier", "")
        if not VERIFIER.fullmatch(verifier) or challenge_of(verifier) != grant.challenge:
            raise OAuthError("invalid_grant", "code_verifier does not match the code_challenge.")
        return grant

    def access_token(self, person: Person) -> str:
        now = time.monotonic()
        self.access = {token: held for token, held in self.access.items() if held[1] > now}
        token = secrets.token_urlsafe(32)
        self.access[token] = (person, now + TOKEN_LIFE_S)
        return token


def challenge_of(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def is_loopback(uri: str) -> bool:
    """Accepts only addresses of this machine that every browser reads the same way."""
    if "#" in uri or "\\" in uri or any(c.isspace() for c in uri):
        return False
    parts = urlsplit(uri)
    return re.fullmatch(LOOPBACK, f"{parts.scheme}://{parts.netloc}") is not None


def client_redirect(params: Mapping[str, str]) -> tuple[str, str | None]:
    """Returns the checked redirect_uri, and the state.

    Until redirect_uri is known to be valid, an error must not be redirected to it.
    """
    if params.get("client_id") != CLIENT_ID:
        raise OAuthError("invalid_request", f"client_id must be {CLIENT_ID}.")
    redirect_uri = params.get("redirect_uri", "")
    if not is_loopback(redirect_uri):
        raise OAuthError("invalid_request", "redirect_uri must be an http URL on this machine.")
    return redirect_uri, params.get("state")


def check_authorization(params: Mapping[str, str]) -> None:
    if params.get("response_type") != "code":
        raise OAuthError("unsupported_response_type", "response_type must be code.")
    if "openid" not in params.get("scope", "").split():
        raise OAuthError("invalid_scope", "scope must include openid.")
    if params.get("code_challenge_method") != "S256":
        raise OAuthError("invalid_request", "code_challenge_method must be S256.")
    if not CHALLENGE.fullmatch(params.get("code_challenge", "")):
        raise OAuthError(
            "invalid_request", "code_challenge must be the Base64url encoding of a SHA-256 hash."
        )
    if params.get("prompt") == "none":
        raise OAuthError(
            "login_required", "The provider keeps no sessions, so the user must sign in."
        )


def redirect(uri: str, state: str | None, params: Mapping[str, str]) -> Response:
    query = urlencode({**params, **({"state": state} if state is not None else {})})
    separator = "&" if urlsplit(uri).query else "?"
    return RedirectResponse(f"{uri}{separator}{query}", status_code=303)


def show(redirect_uri: str, problem: str = "") -> Response:
    """The page where people choose who they are."""
    parts = urlsplit(redirect_uri)
    headers = idp_page.form_headers(f"{parts.scheme}://{parts.netloc}")
    page = idp_page.choose(redirect_uri, problem)
    return HTMLResponse(page, status_code=400 if problem else 200, headers=headers)


async def read_form(request: Request) -> dict[str, str]:
    """OAuth requests are always URL-encoded forms."""
    return dict(parse_qsl((await request.body()).decode("utf-8", "replace")))


def text(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in values.items() if isinstance(value, str)}


def build(provider: Provider) -> Starlette:
    async def discovery(_: Request) -> Response:
        return JSONResponse(
            {
                "issuer": provider.issuer,
                "authorization_endpoint": f"{provider.issuer}/authorize",
                "token_endpoint": f"{provider.issuer}/token",
                "userinfo_endpoint": f"{provider.issuer}/userinfo",
                "jwks_uri": f"{provider.issuer}/jwks",
                "response_types_supported": ["code"],
                "response_modes_supported": ["query"],
                "grant_types_supported": ["authorization_code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "code_challenge_methods_supported": ["S256"],
                "scopes_supported": ["openid", "email", "profile"],
                "claims_supported": ["sub", "email", "email_verified", "name"],
                "authorization_response_iss_parameter_supported": True,
            }
        )

    async def jwks(_: Request) -> Response:
        return JSONResponse({"keys": [provider.key.as_dict(private=False)]})

    async def authorize(request: Request) -> Response:
        params = text(request.query_params)
        redirect_uri, state = client_redirect(params)
        try:
            check_authorization(params)
        except OAuthError as error:
            return redirect(redirect_uri, state, {**error.body, "iss": provider.issuer})
        if request.method == "GET":
            return show(redirect_uri)
        form = await read_form(request)
        email = (form.get("email") or form.get("other") or "").strip().lower()
        if not re.fullmatch(r"[^@\s]+@[^@\s]+", email):
            return show(redirect_uri, "Choose a user or enter an email address.")
        person = Person.of(subject_of(email), email)
        expires_at = time.monotonic() + CODE_LIFE_S
        nonce = params.get("nonce")
        grant = Grant(person, redirect_uri, params["code_challenge"], nonce, expires_at)
        granted = {"code": provider.grant(grant), "iss": provider.issuer}
        return redirect(redirect_uri, state, granted)

    async def token(request: Request) -> Response:
        form = await read_form(request)
        if form.get("grant_type") != "authorization_code":
            raise OAuthError("unsupported_grant_type", "grant_type must be authorization_code.")
        if form.get("client_id") != CLIENT_ID:
            raise OAuthError("invalid_client", f"client_id must be {CLIENT_ID}.", 401)
        grant = provider.redeem(form)
        return JSONResponse(
            {
                "access_token": provider.access_token(grant.person),
                "token_type": "Bearer",
                "expires_in": TOKEN_LIFE_S,
                "scope": "openid email profile",
                "id_token": provider.id_token(grant.person, grant.nonce),
            },
            headers={"Cache-Control": "no-store"},
        )

    async def userinfo(request: Request) -> Response:
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        person, expires_at = provider.access.get(value, (None, 0.0))
        if scheme.lower() != "bearer" or person is None or expires_at <= time.monotonic():
            return Response(
                status_code=401, headers={"WWW-Authenticate": 'Bearer error="invalid_token"'}
            )
        return JSONResponse(
            {
                "sub": person.subject,
                "email": person.email,
                "email_verified": True,
                "name": person.name,
            }
        )

    async def dev_token(request: Request) -> Response:
        try:
            body = text(await request.json())
        except (ValueError, AttributeError):
            body = {}
        if not body.get("sub"):
            raise OAuthError(
                "invalid_request", 'Send {"sub": "ada"}. The fields email and name are optional.'
            )
        person = Person.of(body["sub"], body.get("email"), body.get("name"))
        return JSONResponse({"idToken": provider.id_token(person)})

    async def show_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, OAuthError)
        return JSONResponse(
            error.body, status_code=error.status, headers={"Cache-Control": "no-store"}
        )

    async def home(_: Request) -> Response:
        return HTMLResponse(idp_page.home(provider.issuer), headers=idp_page.HEADERS)

    return Starlette(
        routes=[
            Route("/", home),
            Route("/.well-known/openid-configuration", discovery),
            Route("/jwks", jwks),
            Route("/authorize", authorize, methods=["GET", "POST"]),
            Route("/token", token, methods=["POST"]),
            Route("/userinfo", userinfo, methods=["GET", "POST"]),
            Route("/dev/token", dev_token, methods=["POST"]),
        ],
        middleware=[
            Middleware(HostCheck),
            Middleware(
                CORSMiddleware,
                allow_origin_regex=LOOPBACK,
                allow_methods=["GET", "POST"],
                allow_headers=["authorization", "content-type"],
            ),
        ],
        exception_handlers={OAuthError: show_error},
    )


def subject_of(email: str) -> str:
    """The browser and scripts get the same subject: `ada` for `ada@example.test`."""
    name, _, domain = email.partition("@")
    return name if domain == "example.test" else email


def load_key(folder: Path) -> RSAKey:
    """Loads the signing key, which is stored so that tokens stay valid after a restart."""
    file = folder / "key.json"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        key = RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256"}, auto_kid=True)
        DataDirectory.write_private(file, json.dumps(key.as_dict(private=True)))
    return RSAKey.import_key(json.loads(file.read_text()))


def main() -> None:
    if os.environ.get("ROTA_ENV") == "production":
        sys.exit(
            "ROTA_ENV is production. The development identity provider does not check who signs in,"
            " so it does not start."
        )
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    provider = Provider(f"http://127.0.0.1:{options.port}", load_key(options.data))
    serve(build(provider), options.port)


if __name__ == "__main__":
    main()
