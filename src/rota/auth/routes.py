"""Endpoints: sessions, the caller's own view, API keys."""

from typing import Any

from fastapi import APIRouter, Response
from starlette.requests import Request

from rota.auth import schemas
from rota.auth.authenticator import bearer_token
from rota.auth.keys import Keys
from rota.auth.profiles import Profiles
from rota.auth.routing import AnyCaller, SessionCaller, public_router, secured_router
from rota.auth.schemas import (
    AuthConfigResponse,
    CreateKey,
    DeletedResponse,
    KeyCreatedResponse,
    KeysResponse,
    LogoutResponse,
    MeResponse,
    StartSession,
    TokenResponse,
)
from rota.auth.sessions import Sessions
from rota.auth.tokens import KeyRing
from rota.platform import ids
from rota.platform.http.description import documented
from rota.platform.http.responses import respond
from rota.platform.http.schemas import Text
from rota.platform.idempotency import IdempotencyKey
from rota.platform.settings import Issuer


def sign_in_routes(sessions: Sessions, variant: str, issuers: tuple[Issuer, ...]) -> APIRouter:
    public = public_router("Auth")
    config = AuthConfigResponse(
        variant=variant,
        issuers=[schemas.Issuer(**issuer.model_dump()) for issuer in issuers],
    )

    @public.get("/api/auth/config", summary="How to sign in here")
    async def auth_config() -> AuthConfigResponse:
        return config

    @public.post(
        "/api/auth/session",
        summary="Exchange an ID token for a session token",
        responses=documented(401, 503),
    )
    async def start_session(body: StartSession) -> TokenResponse:
        return TokenResponse(token=await sessions.start(body.id_token))

    @public.post(
        "/api/auth/refresh",
        summary="Renew a session token, also an expired one",
        responses=documented(401, 404),
        openapi_extra={"security": [{"bearer": []}]},
    )
    async def refresh_session(request: Request) -> TokenResponse:
        token = bearer_token(request.headers.get("authorization"))
        return TokenResponse(token=await sessions.refresh(token))

    return public


def logout_routes(sessions: Sessions) -> APIRouter:
    router = secured_router("Auth")

    @router.post("/api/auth/logout", summary="End the current session")
    async def logout(caller: SessionCaller) -> LogoutResponse:
        await sessions.end(caller)
        return LogoutResponse(logged_out=True)

    return router


def me_routes(profiles: Profiles, variant: str) -> APIRouter:
    router = secured_router("Account")

    @router.get("/api/me", summary="Who is calling, and for which account")
    async def me(caller: AnyCaller) -> MeResponse:
        profile = await profiles.me(caller)
        return MeResponse(
            user=schemas.User.of(profile.user),
            account=schemas.Account.of(profile.account),
            accounts=[schemas.Account.of(account) for account in profile.accounts],
            effective_tier=caller.tier.upper(),
            user_tier=caller.user_tier.upper(),
            variant=variant,
        )

    return router


def key_routes(keys: Keys) -> APIRouter:
    router = secured_router("API keys")

    @router.get("/api/keys", summary="List the account's API keys")
    async def list_keys(caller: SessionCaller) -> KeysResponse:
        found = await keys.all(caller)
        return KeysResponse(keys=[schemas.ApiKey.of(key) for key in found], total=len(found))

    @router.post(
        "/api/keys",
        status_code=201,
        response_model=KeyCreatedResponse,
        summary="Make an API key; its secret is shown this once",
        responses=documented(409),
    )
    async def create_key(
        caller: SessionCaller, body: CreateKey, idempotency_key: IdempotencyKey = None
    ) -> Response:
        return respond(await keys.create(caller, body, idempotency_key))

    @router.delete("/api/keys/{id}", summary="Revoke an API key", responses=documented(404))
    async def delete_key(caller: SessionCaller, id: Text) -> DeletedResponse:  # noqa: A002
        await keys.delete(caller, ids.from_wire("key", id))
        return DeletedResponse(id=id)

    return router


def jwks_routes(ring: KeyRing) -> APIRouter:
    router = public_router("Auth")

    @router.get("/.well-known/jwks.json", summary="Public keys of session tokens")
    async def jwks() -> dict[str, list[dict[str, Any]]]:
        return {"keys": await ring.public_keys()}

    return router
