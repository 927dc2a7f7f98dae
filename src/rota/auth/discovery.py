"""The documents that an identity provider publishes, and its discovery document in particular."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import httpx
import structlog

from rota.platform import json

# A document that could not be fetched is tried again after this time.
MIN_RETRY_S = 1
# A document is fetched again after this time. If that fails, the known one stays in use.
STALE_AFTER_S = 600
FETCH_TIMEOUT_S = 10
MAX_DOCUMENT_BYTES = 512 * 1024

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Metadata:
    """What Rota uses of a discovery document. None for an address that is missing or not safe."""

    jwks_uri: str
    authorization_endpoint: str | None
    token_endpoint: str | None
    # How a client can prove its secret at the token endpoint.
    authentication_methods: tuple[str, ...]


class Discovery:
    """The discovery document of one issuer."""

    def __init__(self, issuer: str, client: httpx.AsyncClient) -> None:
        self._issuer = issuer
        self._client = client
        self._known: Metadata | None = None
        self._tried_at = float("-inf")
        self._renewal: asyncio.Task[None] | None = None

    async def current(self, wait_s: float) -> Metadata | None:
        """The document. Waits only if none is known yet, and then at most for this long."""
        wait_before_s = MIN_RETRY_S if self._known is None else STALE_AFTER_S
        renewal = self._renewal
        if renewal is None and time.monotonic() - self._tried_at >= wait_before_s:
            self._renewal = renewal = asyncio.create_task(self._renew())
        if self._known is None and renewal is not None:
            # The fetch goes on if this takes too long, for the next request.
            await asyncio.wait((renewal,), timeout=wait_s)
        return self._known

    async def fetch(self) -> Metadata:
        self._tried_at = time.monotonic()
        url = self._issuer.rstrip("/") + "/.well-known/openid-configuration"
        document = await get(self._client, url)
        if document["issuer"] != self._issuer:
            raise ValueError(
                f"the discovery document is for another issuer: {document['issuer']!r}"
            )
        methods = document.get("token_endpoint_auth_methods_supported")
        self._known = Metadata(
            jwks_uri=document["jwks_uri"],
            authorization_endpoint=self._safe(document.get("authorization_endpoint")),
            token_endpoint=self._safe(document.get("token_endpoint")),
            # The default in OpenID Connect Discovery.
            authentication_methods=(
                tuple(methods) if isinstance(methods, list) else ("client_secret_basic",)
            ),
        )
        return self._known

    async def _renew(self) -> None:
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_S):
                await self.fetch()
        except Exception as error:
            log.warning("issuer_not_discovered", issuer=self._issuer, error=repr(error))
        finally:
            self._renewal = None

    def _safe(self, url: object) -> str | None:
        """Browsers go to this address, and codes and secrets are sent to it. So it must use https,
        unless the issuer does not."""
        schemes = ("https://",) if self._issuer.startswith("https://") else ("https://", "http://")
        return url if isinstance(url, str) and url.startswith(schemes) else None


async def get(client: httpx.AsyncClient, url: str) -> Any:
    status, body = await send(client, client.build_request("GET", url))
    if status != httpx.codes.OK:
        raise ValueError(f"the issuer responded with {status}")
    return json.loads(body)


async def send(client: httpx.AsyncClient, request: httpx.Request) -> tuple[int, bytes]:
    """The status and the body of a response, whose size is limited."""
    response = await client.send(request, stream=True)
    try:
        body = b""
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > MAX_DOCUMENT_BYTES:
                raise ValueError("the issuer's document is too large")
    finally:
        await response.aclose()
    return response.status_code, body
