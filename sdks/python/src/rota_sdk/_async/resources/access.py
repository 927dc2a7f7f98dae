"""Who may use the service: API keys, sessions and signing in."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeAlias

from rota_sdk import models
from rota_sdk._async.pages import AsyncPages
from rota_sdk._async.resource import AsyncResource
from rota_sdk._generated import operations
from rota_sdk._requests import creation, id_of

KeyRef: TypeAlias = str | models.ApiKey
SessionRef: TypeAlias = str | models.Session


class Keys(AsyncResource):
    """API keys. Only a session can manage them: pass its token as `api_key`."""

    def list(self) -> AsyncPages[models.ApiKey]:
        return self._whole_list(operations.list_keys, lambda r: r.keys)

    async def create(
        self,
        *,
        name: str,
        scopes: Sequence[models.Scope] | None = None,
        expires_at: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> models.KeyCreatedResponse:
        """Creates a key. `secret` is shown only here.

        If the connection breaks before the response arrives, `secret` is None: delete the key and
        create another.
        """
        body = creation(models.CreateKey, name=name, scopes=scopes, expires_at=expires_at)
        return await self._call(operations.create_key, body=body, idempotency_key=idempotency_key)

    async def delete(self, key: KeyRef) -> None:
        """Revokes the key. It stops working within a second."""
        await self._end(operations.delete_key, {"id": id_of(key)})


class Sessions(AsyncResource):
    def list(self) -> AsyncPages[models.Session]:
        """The sessions of the user that have not ended."""
        return self._whole_list(operations.list_sessions, lambda r: r.sessions)

    async def delete(self, session: SessionRef) -> None:
        """Ends the session and its tokens."""
        await self._end(operations.delete_session, {"id": id_of(session)})


class Auth(AsyncResource):
    """Signing in. A session token is used like an API key."""

    async def config(self) -> models.AuthConfigResponse:
        """The identity providers of the deployment. Needs no credentials."""
        return await self._call(operations.auth_config)

    async def start_session(self, *, id_token: str) -> str:
        """A session token for an ID token of an identity provider. Each ID token works once."""
        body = models.StartSession(id_token=id_token)
        return _token(await self._call(operations.start_session, body=body, is_repeatable=False))

    async def start_session_by_code(
        self,
        *,
        code: str,
        code_verifier: str,
        redirect_uri: str,
        issuer: str,
        nonce: str | None = None,
    ) -> str:
        """A session token for an authorization code. Each code works once."""
        body = creation(
            models.StartSessionByCode,
            code=code,
            code_verifier=code_verifier,
            redirect_uri=redirect_uri,
            issuer=issuer,
            nonce=nonce,
        )
        return _token(
            await self._call(operations.start_session_by_code, body=body, is_repeatable=False)
        )

    async def refresh(self) -> str:
        """A new token of the same session. The old one stays valid until it expires."""
        return _token(await self._call(operations.refresh_session))

    async def logout(self) -> None:
        """Ends the session and all of its tokens."""
        # The token of a session that has ended is refused.
        await self._end(operations.logout, gone_status=401)

    async def public_keys(self) -> models.JsonWebKeySet:
        """The keys that sign session tokens. Needs no credentials."""
        return await self._call(operations.jwks)


def _token(response: models.TokenResponse) -> str:
    # Null only for cookies, which the SDK does not ask for.
    return response.token or ""
