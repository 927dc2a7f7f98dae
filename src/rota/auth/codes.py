"""Exchanges authorization codes for ID tokens at the token endpoint of an identity provider.

The service does this for its own pages and for the command line: some providers require a client
secret, which neither can keep, and the pages then connect to no other host.
"""

import asyncio
import base64
import re
from dataclasses import dataclass
from urllib.parse import quote_plus

import httpx
import structlog

from rota.auth import discovery
from rota.auth.discovery import FETCH_TIMEOUT_S, Metadata
from rota.auth.errors import (
    ClientRefused,
    CodeNotExchanged,
    CodeRefused,
    IssuerUnavailable,
)
from rota.auth.issuers import Issuers
from rota.platform import json
from rota.platform.errors import FieldError, ValidationFailed
from rota.platform.issuer import Issuer, is_loopback_callback

# The page of this service that identity providers send people back to.
CALLBACK = "/signin/callback"
# Errors (RFC 6749, section 5.2) that only the operator of this service can correct.
CLIENT_ERRORS = ("invalid_client", "unauthorized_client")

_ERROR = re.compile(r"[a-z_]{1,64}")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Code:
    """An authorization code, and what the client used to get it."""

    code: str
    verifier: str
    redirect_uri: str
    issuer: str

    @property
    def is_for_cli(self) -> bool:
        """Whether a program on the user's machine got it, and not a page of this service."""
        return not self.redirect_uri.endswith(CALLBACK)


class CodeExchange:
    def __init__(self, issuers: Issuers, client: httpx.AsyncClient) -> None:
        self._issuers = issuers
        self._client = client

    def check(self, code: Code, own_origin: str, *, pages_only: bool) -> None:
        found = self._issuers.find(code.issuer)
        if found is None:
            raise ValidationFailed.of(
                FieldError("issuer", "is not an issuer that GET /api/auth/config lists")
            )
        if code.redirect_uri == own_origin + CALLBACK:
            return
        registered = found[0].cli_redirect_uri
        if pages_only or not is_loopback_callback(code.redirect_uri):
            raise ValidationFailed.of(FieldError("redirectUri", f"must be {own_origin}{CALLBACK}"))
        if registered not in (None, code.redirect_uri):
            raise ValidationFailed.of(FieldError("redirectUri", f"must be {registered}"))

    async def id_token(self, code: Code) -> str:
        """Makes one attempt: a code works once, also if the exchange fails."""
        found = self._issuers.find(code.issuer)
        assert found is not None
        issuer, known = found
        metadata = await known.current(FETCH_TIMEOUT_S)
        if metadata is None or metadata.token_endpoint is None:
            raise IssuerUnavailable(issuer.issuer)
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_S):
                request = self._request(code, issuer, metadata, metadata.token_endpoint)
                status, body = await discovery.send(self._client, request)
            document = json.loads(body)
            if not isinstance(document, dict):
                raise ValueError("the response is not an object")
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError) as error:
            log.warning("code_not_exchanged", issuer=issuer.issuer, error=repr(error))
            raise CodeNotExchanged(issuer.issuer) from None
        token = document.get("id_token")
        if status == httpx.codes.OK and isinstance(token, str):
            return token
        reason = document.get("error")
        shown = reason if isinstance(reason, str) and _ERROR.fullmatch(reason) else None
        log.warning("code_not_exchanged", issuer=issuer.issuer, status=status, error=shown)
        if shown in CLIENT_ERRORS:
            raise ClientRefused(issuer.issuer)
        if httpx.codes.is_client_error(status):
            raise CodeRefused
        raise CodeNotExchanged(issuer.issuer)

    def _request(
        self, code: Code, issuer: Issuer, metadata: Metadata, endpoint: str
    ) -> httpx.Request:
        form = {
            "grant_type": "authorization_code",
            "code": code.code,
            "redirect_uri": code.redirect_uri,
            "code_verifier": code.verifier,
        }
        headers = {"Accept": "application/json"}
        web = issuer.client_id, issuer.client_secret
        client_id, secret = issuer.cli if code.is_for_cli else web
        if secret is None:
            form["client_id"] = client_id
        elif _in_the_form(metadata.authentication_methods):
            form |= {"client_id": client_id, "client_secret": secret.get_secret_value()}
        else:
            headers["Authorization"] = _basic(client_id, secret.get_secret_value())
        return self._client.build_request("POST", endpoint, data=form, headers=headers)


def _in_the_form(methods: tuple[str, ...]) -> bool:
    return "client_secret_post" in methods and "client_secret_basic" not in methods


def _basic(client_id: str, secret: str) -> str:
    """RFC 6749, section 2.3.1: both parts are encoded like the values of a form first."""
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"
