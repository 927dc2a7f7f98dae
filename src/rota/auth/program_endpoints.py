"""What the endpoints for programs, MCP and A2A, have in common: who may use them, and how a client
learns where to get a token."""

from fastapi import APIRouter
from starlette.responses import Response
from starlette.types import Scope

from rota.auth.access_tokens import SCOPES, check_program
from rota.auth.issuers import Issuers
from rota.auth.routing import caller_of
from rota.platform.errors import ApiError, AuthenticationFailed, Forbidden
from rota.platform.http.origins import OwnOrigin
from rota.platform.http.responses import json_response
from rota.platform.settings import Settings

METADATA_ROOT = "/.well-known/oauth-protected-resource"


class OriginRefused(Forbidden):
    def __init__(self) -> None:
        super().__init__(
            "Pages of this origin cannot use this endpoint. The operator can allow the origin with "
            "ROTA_CORS_ORIGINS."
        )


class ProgramEndpoint:
    def __init__(self, path: str, settings: Settings) -> None:
        self._path = path
        self._public_url = settings.public_url.rstrip("/")
        self._own_origin = OwnOrigin(settings.public_url, production=settings.env == "production")
        self._cors_origins = frozenset(settings.cors_origins)
        self._challenge = f'Bearer resource_metadata="{self._public_url}{METADATA_ROOT}{path}"'

    def check_credential(self, scope: Scope) -> None:
        """Refuses who may not use the endpoint, and tells the client how to get a token."""
        try:
            check_program(caller_of(scope), self._path)
        except AuthenticationFailed as error:
            error.headers = {"WWW-Authenticate": self._challenge}
            raise
        except ApiError as error:
            if error.status == 403:
                challenge = f'{self._challenge}, error="insufficient_scope"'
                error.headers = {"WWW-Authenticate": challenge}
            raise

    def check_origin(self, headers: dict[bytes, bytes]) -> None:
        """A web page must not use a server that the user reaches, unless it is allowed."""
        sent = headers.get(b"origin")
        if sent is None:
            return
        origin = sent.decode("latin-1")
        if origin != self._own_origin.of(headers) and origin not in self._cors_origins:
            raise OriginRefused

    def add_metadata(self, router: APIRouter, issuers: Issuers, *more_paths: str) -> None:
        """The metadata of RFC 9728."""
        metadata = {
            "resource": f"{self._public_url}{self._path}",
            "resource_name": "Rota",
            "authorization_servers": issuers.names,
            "scopes_supported": list(SCOPES),
            "bearer_methods_supported": ["header"],
        }

        async def protected_resource() -> Response:
            return json_response(200, metadata, {"Cache-Control": "public, max-age=300"})

        for path in (METADATA_ROOT + self._path, *more_paths):
            router.add_api_route(path, protected_resource, include_in_schema=False)
