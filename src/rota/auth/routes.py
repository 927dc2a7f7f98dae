"""Endpoints: sessions, the caller's own view, API keys."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response
from starlette.requests import Request

from rota.auth import schemas, session_schemas
from rota.auth.authenticator import bearer_token
from rota.auth.caller import Caller
from rota.auth.codes import Code
from rota.auth.cookies import Cookies
from rota.auth.devices import device_of
from rota.auth.issuers import Issuers
from rota.auth.keys import Keys
from rota.auth.profiles import Profiles
from rota.auth.routing import (
    ADDRESS,
    AnyCaller,
    SessionCaller,
    UserRoute,
    allowed,
    public_router,
    secured_router,
)
from rota.auth.schemas import (
    CreateKey,
    DeletedResponse,
    JsonWebKeySet,
    KeyCreatedResponse,
    KeysResponse,
    MeResponse,
)
from rota.auth.session_schemas import (
    AuthConfigResponse,
    LogoutResponse,
    SessionsResponse,
    StartSession,
    StartSessionByCode,
    TokenResponse,
)
from rota.auth.sessions import Client, Sessions
from rota.auth.tokens import KeyRing
from rota.platform import ids
from rota.platform.cell import ROUTING_HEADER, Routing
from rota.platform.http import examples
from rota.platform.http.components import ref
from rota.platform.http.description import documented
from rota.platform.http.responses import respond
from rota.platform.http.schemas import Text, path_id
from rota.platform.idempotency import IdempotencyKey

KeyManager = Annotated[Caller, Depends(allowed(right="keys", session=True))]
SessionId = Annotated[Text, path_id("session", examples.SESSION_ID)]
KeyId = Annotated[Text, path_id("key", examples.KEY_ID)]
SETS_COOKIE: dict[int | str, dict[str, Any]] = {
    200: {"headers": {"Set-Cookie": ref("headers", "Set-Cookie")}}
}


def sign_in_routes(
    sessions: Sessions,
    issuers: Issuers,
    cookies: Cookies,
    variant: str,
    *,
    in_cell: bool = False,
) -> APIRouter:
    public = public_router("Auth")

    def issued(token: str | None, response: Response, *, as_cookie: bool) -> TokenResponse:
        if token is None or not as_cookie:
            return TokenResponse(token=token)
        cookies.set(response, token)
        return TokenResponse(token=None)

    @public.get("/api/auth/config", summary="Get the sign-in configuration")
    async def auth_config() -> AuthConfigResponse:
        """Returns the identity providers whose ID tokens this service accepts. No
        authentication."""
        return AuthConfigResponse(
            variant=variant,
            issuers=[session_schemas.Issuer.of(*found) for found in await issuers.sign_in_pages()],
        )

    @public.post(
        "/api/auth/session",
        summary="Sign in",
        responses=documented(401, 503) | SETS_COOKIE,
    )
    async def start_session(
        request: Request, response: Response, body: StartSession
    ) -> TokenResponse:
        """Exchanges an ID token from an identity provider for a session token that is valid for 7
        days. The first sign-in creates the user and a personal account. Each ID token works once.
        With `rota dev`, the page of the development identity provider shows how to get one."""
        if body.cookie:
            cookies.check_same_origin(dict(request.scope["headers"]))
        token = await sessions.start(
            body.id_token, _client(request), routing=_routing(request) if in_cell else None
        )
        return issued(token, response, as_cookie=body.cookie)

    @public.post(
        "/api/auth/code",
        summary="Sign in with a code",
        responses=documented(401, 503) | SETS_COOKIE,
    )
    async def start_session_by_code(
        request: Request, response: Response, body: StartSessionByCode
    ) -> TokenResponse:
        """Exchanges an authorization code of an identity provider (OpenID Connect with PKCE) for a
        session token. The service gets the ID token from the provider and checks its nonce. Each
        code works only once, even if the exchange fails."""
        headers = dict(request.scope["headers"])
        if body.cookie:
            cookies.check_same_origin(headers)
        token = await sessions.start_by_code(
            Code(body.code, body.code_verifier, body.redirect_uri, body.issuer),
            body.nonce,
            cookies.own_origin(headers),
            _client(request),
            # A program on the user's machine has no cookies.
            pages_only=body.cookie,
            routing=_routing(request) if in_cell else None,
        )
        return issued(token, response, as_cookie=body.cookie)

    @public.post(
        "/api/auth/refresh",
        summary="Renew the session token",
        responses=documented(401, 404) | SETS_COOKIE,
        openapi_extra={"security": [{"bearer": []}]},
    )
    async def refresh_session(request: Request, response: Response) -> TokenResponse:
        """Returns a new session token that is valid for 7 days. The current one, sent as the bearer
        token, may have expired, as long as its session has not ended. If it was sent as a cookie,
        the new one is set as a cookie. Returns 404 if the account of the session no longer
        exists."""
        credential = cookies.credential(request.scope, dict(request.scope["headers"]))
        token = await sessions.refresh(bearer_token(credential.authorization))
        return issued(token, response, as_cookie=credential.by_cookie)

    return public


def session_routes(sessions: Sessions, cookies: Cookies) -> APIRouter:
    router = secured_router("Auth", UserRoute)

    @router.get("/api/auth/sessions", summary="List sessions")
    async def list_sessions(caller: SessionCaller) -> SessionsResponse:
        """Returns the sessions of the calling user that have not ended, whichever account is
        selected."""
        found = await sessions.all(caller)
        shown = [session_schemas.Session.of(session, caller.session_id) for session in found]
        return SessionsResponse(sessions=shown, total=len(shown))

    @router.delete("/api/auth/sessions/{id}", summary="End a session", responses=documented(404))
    async def delete_session(caller: SessionCaller, id: SessionId) -> DeletedResponse:  # noqa: A002
        """Ends a session of the calling user: all of its tokens stop working within one second."""
        await sessions.delete(caller, ids.from_wire("sess", id))
        return DeletedResponse(id=id)

    @router.post("/api/auth/logout", summary="Sign out", responses=SETS_COOKIE)
    async def logout(request: Request, response: Response, caller: SessionCaller) -> LogoutResponse:
        """Ends the session: all of its tokens stop working within one second, and its cookie is
        cleared."""
        await sessions.end(caller)
        if cookies.credential(request.scope, dict(request.scope["headers"])).by_cookie:
            cookies.clear(response)
        return LogoutResponse(logged_out=True)

    return router


def _client(request: Request) -> Client:
    return Client(device_of(request.headers.get("user-agent")), request.scope.get(ADDRESS))


def _routing(request: Request) -> Routing | None:
    return Routing.of(request.headers.get(ROUTING_HEADER))


def me_routes(profiles: Profiles, variant: str) -> APIRouter:
    router = secured_router("Account")

    @router.get("/api/me", summary="Get the caller")
    async def me(caller: AnyCaller) -> MeResponse:
        """Returns the user behind the credential, the selected account, and the accounts to choose
        from. Any credential can call this."""
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

    @router.get("/api/keys", summary="List API keys")
    async def list_keys(caller: KeyManager) -> KeysResponse:
        """Returns the API keys of the account, without their secrets."""
        found = await keys.all(caller)
        return KeysResponse(keys=[schemas.ApiKey.of(key) for key in found], total=len(found))

    @router.post(
        "/api/keys",
        status_code=201,
        response_model=KeyCreatedResponse,
        summary="Create an API key",
        responses=documented(409),
    )
    async def create_key(
        caller: KeyManager, body: CreateKey, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Creates an API key for the selected account. Store `secret` now: it is not shown
        again."""
        return respond(await keys.create(caller, body, idempotency_key))

    @router.delete("/api/keys/{id}", summary="Revoke an API key", responses=documented(404))
    async def delete_key(caller: KeyManager, id: KeyId) -> DeletedResponse:  # noqa: A002
        """Revokes an API key. It stops working within one second."""
        await keys.delete(caller, ids.from_wire("key", id))
        return DeletedResponse(id=id)

    return router


def jwks_routes(ring: KeyRing) -> APIRouter:
    router = public_router("Auth")

    @router.get("/.well-known/jwks.json", summary="Get the public keys of session tokens")
    async def jwks() -> JsonWebKeySet:
        """Returns the keys that verify session tokens, as a JSON Web Key Set."""
        return JsonWebKeySet(keys=await ring.public_keys())

    return router
