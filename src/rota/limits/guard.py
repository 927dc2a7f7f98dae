"""Authenticates every request, then applies the rate limit of its account or address.

A request counts toward an account only if its credentials are valid. Every other request counts by
client address, so an unauthenticated client cannot use up an account's quota. A request with valid
credentials never meets the limit of its address.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Protocol

from starlette.responses import Response
from starlette.types import Scope

from rota.auth.actor import act_as
from rota.auth.authenticator import Authenticator
from rota.auth.caller import Caller
from rota.auth.cookies import Cookies
from rota.auth.errors import SelectionRefused
from rota.auth.routing import ADDRESS, AUTHORIZATION, CALLER, RENEWAL
from rota.limits.client import client_ip, direct_client
from rota.limits.result import Ceilings, LimitResult, full_window, rate_limit_headers
from rota.limits.window import Window
from rota.platform import ids
from rota.platform.cell import FIND, ROUTING_HEADER
from rota.platform.errors import ApiError, AuthenticationFailed, RateLimited
from rota.platform.http.cors import PREFLIGHT
from rota.platform.http.edge import Admission, as_api_error
from rota.platform.http.responses import error_response, json_response

# The payment processor sends its webhooks in bursts from few addresses.
UNLIMITED = ("/health", "/metrics", "/openapi.json", "/docs", "/.well-known", "/webhooks")
# The dashboard's pages and files. They are small, and served from memory.
PAGES = (
    "/assets",
    "/favicon.ico",
    "/favicon.svg",
    "/invitation",
    "/money",
    "/signin",
    "/unsubscribe",
)
AI_PREFIXES = ("/api/agents",)
# A function of the request's scope that counts it as more than one request.
CHARGE = "rota.charge"
_ROUTING, _FIND = ROUTING_HEADER.encode(), FIND.encode()


def is_below(path: str, prefixes: tuple[str, ...]) -> bool:
    """Whether the path is one of the prefixes or below one: /docs/x, but not /docsx."""
    return path.startswith(prefixes) and any(
        path == prefix or path.startswith(f"{prefix}/") for prefix in prefixes
    )


def is_page(path: str) -> bool:
    return path == "/" or path.startswith("/acct_") or is_below(path, PAGES)


class CallerFinder(Protocol):
    async def authenticate(
        self,
        authorization: str | None,
        selection: str | None,
        address: str | None = None,
        *,
        since: float | None = None,
    ) -> Caller: ...


class RequestGuard:
    def __init__(
        self,
        authenticator: Authenticator,
        cookies: Cookies,
        window: Window,
        ceilings_of: Callable[[str], Ceilings],
        *,
        lowest_tier: str,
        trusted_proxies: Sequence[IPv4Network | IPv6Network],
        ai_prefixes: tuple[str, ...] = AI_PREFIXES,
        programs: Mapping[str, CallerFinder] | None = None,
    ) -> None:
        self._authenticator = authenticator
        # Who finds the callers of paths that accept other credentials, and of the paths below.
        self._programs = programs or {}
        self._cookies = cookies
        self._window = window
        self._ceilings_of = ceilings_of
        self._by_address = ceilings_of(lowest_tier)
        self._unlimited = rate_limit_headers(full_window(self._by_address))
        self._trusted = trusted_proxies
        self._ai_prefixes = ai_prefixes

    async def __call__(self, scope: Scope, headers: dict[bytes, bytes]) -> Admission:
        path: str = scope["path"]
        if PREFLIGHT in scope or is_below(path, UNLIMITED) or is_page(path):
            # Not counted, but its body is.
            return Admission(self._unlimited, client=f"ip:{self._address(scope)}")
        scope[ADDRESS] = address = self._address(scope)
        scope[CALLER] = caller = await self._caller(scope, headers)
        scope[RENEWAL] = (time.monotonic(), self._renewed)
        # A valid credential counts toward its account, also if it selects one that it cannot use.
        known = caller.caller if isinstance(caller, SelectionRefused) else caller
        act_as(known, address)
        ai = is_below(path, self._ai_prefixes)
        if isinstance(known, Caller):
            ceilings = self._ceilings_of(known.tier)
            key = f"acct:{known.account_id.hex}"
            account = ids.to_wire("acct", known.account_id)
        else:
            ceilings, key, account = self._by_address, f"ip:{address}", None
        result = await self._window.admit(key, ceilings, ai=ai)
        answer = None if result.allowed else _too_many_requests(result.reset_s)
        if answer is None and self._is_question(path, headers):
            # The router looks for the cell that knows the caller.
            answer = (
                Response(status_code=204)
                if isinstance(caller, Caller)
                else error_response(path, caller)
            )
        admission = Admission(
            headers=rate_limit_headers(result),
            refusal=answer,
            account=account,
            client=key,
        )

        async def charge(cost: int, *, as_ai: bool = ai) -> LimitResult:
            recounted = await self._window.admit(
                key, ceilings, ai=as_ai, cost=cost, replaces=result
            )
            admission.headers = rate_limit_headers(recounted)
            return recounted

        scope[CHARGE] = charge
        return admission

    # Not a closure over the scope that stores it. The scope would be part of a cycle, and every
    # request would leave work for the garbage collector.
    def _renewed(self, scope: Scope) -> Awaitable[Caller | ApiError]:
        return self._caller(scope, dict(scope["headers"]))

    async def _caller(self, scope: Scope, headers: dict[bytes, bytes]) -> Caller | ApiError:
        if len(headers) < len(scope["headers"]) and _count(scope, b"authorization") > 1:
            # It is not clear which of them the client means.
            return AuthenticationFailed("Send exactly one Authorization header.")
        selection = headers.get(b"x-service-account")
        try:
            credential = self._cookies.credential(scope, headers)
            scope[AUTHORIZATION] = credential.authorization
            finder = self._finder(scope["path"])
            return await finder.authenticate(
                credential.authorization,
                selection.decode("latin-1") if selection is not None else None,
                scope[ADDRESS],
            )
        except Exception as error:
            # Includes database failures: the response still needs its rate limit headers.
            return as_api_error(error)

    def _finder(self, path: str) -> CallerFinder:
        for prefix, finder in self._programs.items():
            if is_below(path, (prefix,)):
                return finder
        return self._authenticator

    def _is_question(self, path: str, headers: dict[bytes, bytes]) -> bool:
        asked = headers.get(_ROUTING, b"").partition(b" ")[0]
        return asked == _FIND and is_below(path, tuple(self._programs))

    def _address(self, scope: Scope) -> str:
        peer = scope["client"][0] if scope["client"] else None
        if not self._trusted:
            return direct_client(peer)
        forwarded = b",".join(v for name, v in scope["headers"] if name == b"x-forwarded-for")
        return client_ip(peer, forwarded.decode("latin-1"), self._trusted)


async def charge(scope: Scope, requests: int) -> Response | None:
    """Counts an admitted request as this many. If they are too many, it counts as one, and
    the result is the response."""
    if requests == 1:
        return None
    result: LimitResult = await scope[CHARGE](requests)
    return None if result.allowed else _too_many_requests(result.reset_s)


class RequestLimit(RateLimited):
    code = "RATE_LIMIT_EXCEEDED"

    def __init__(self, reset_s: int) -> None:
        super().__init__(too_many(reset_s), retry_after_s=reset_s)
        self.response = _too_many_requests(reset_s)


async def charge_as_ai(scope: Scope) -> None:
    """Counts an admitted request as one to an AI endpoint, for requests whose path does not say
    what they do. Raises if that exceeds the limit."""
    result: LimitResult = await scope[CHARGE](1, as_ai=True)
    if not result.allowed:
        raise RequestLimit(result.reset_s)


def _count(scope: Scope, header: bytes) -> int:
    return sum(name == header for name, _ in scope["headers"])


def too_many(reset_s: int) -> str:
    return f"Too many requests. Wait {reset_s} s before the next one."


def _too_many_requests(reset_s: int) -> Response:
    body = {"error": {"message": too_many(reset_s), "code": RequestLimit.code}}
    return json_response(429, body)
