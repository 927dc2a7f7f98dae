"""The session cookie, for the pages of this service.

A browser sends the cookie on its own, also when another site makes it send a request. So every
request by cookie, reading ones and streams included, must prove that a page of this service sent
it. Scripts cannot set or change `Sec-Fetch-Site` and `Origin`.
"""

from dataclasses import dataclass

from starlette.responses import Response
from starlette.types import Scope

from rota.auth import secrets
from rota.auth.errors import NotSameOrigin, SessionTokenInvalid
from rota.platform.errors import AuthenticationFailed
from rota.platform.http.origins import OwnOrigin
from rota.platform.settings import DAY_S

SECURE_NAME = "__Host-rota"
# For plain http on this machine: browsers accept the prefix `__Host-` only with https.
LOCAL_NAME = "rota"
# The longest that browsers keep a cookie.
MAX_DAYS = 400

Headers = dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Credential:
    """What a request authenticates with, as the value of an Authorization header."""

    authorization: str
    by_cookie: bool


class Cookies:
    def __init__(self, origin: OwnOrigin, *, idle_days: int) -> None:
        self._origin = origin
        self.name = LOCAL_NAME if origin.local else SECURE_NAME
        # As long as the session: a token that has expired can still be refreshed.
        self._max_age_s = min(idle_days, MAX_DAYS) * DAY_S

    def credential(self, scope: Scope, headers: Headers) -> Credential:
        """The Authorization header of a request, or its session cookie."""
        if b"authorization" in headers:
            return Credential(headers[b"authorization"].decode("latin-1"), by_cookie=False)
        token = self._token(scope) if b"cookie" in headers else None
        if token is None:
            raise AuthenticationFailed.missing()
        self.check_same_origin(headers)
        if token.startswith(secrets.PREFIX):
            # An API key is for programs, which send it in the Authorization header.
            raise SessionTokenInvalid
        return Credential(f"Bearer {token}", by_cookie=True)

    def check_same_origin(self, headers: Headers) -> None:
        """Refuses a request that no page of this service has sent."""
        origin = headers.get(b"origin", b"null")
        if origin == b"null":
            # Browsers leave it out or hide it, depending on the method and the referrer policy.
            same = headers.get(b"sec-fetch-site") == b"same-origin"
        else:
            same = origin.decode("latin-1") == self._origin.of(headers)
        if not same:
            raise NotSameOrigin

    def own_origin(self, headers: Headers) -> str:
        return self._origin.of(headers)

    def set(self, response: Response, token: str) -> None:
        self._write(response, token, self._max_age_s)

    def clear(self, response: Response) -> None:
        self._write(response, "", 0)

    def _write(self, response: Response, value: str, max_age_s: int) -> None:
        response.set_cookie(
            self.name,
            value,
            max_age=max_age_s,
            path="/",
            secure=not self._origin.local,
            httponly=True,
            samesite="strict",
        )

    def _token(self, scope: Scope) -> str | None:
        sent = b";".join(value for name, value in scope["headers"] if name == b"cookie")
        for pair in sent.decode("latin-1").split(";"):
            name, _, value = pair.strip().partition("=")
            if name == self.name:
                return value
        return None
