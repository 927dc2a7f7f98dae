"""The gate every request passes: who calls is found out first, then the window is asked.

An account pays for its own requests only. Whoever cannot be told, or fails to
prove it, is counted by address, so a stranger never spends an account's quota.
"""

from collections.abc import Callable, Sequence
from ipaddress import IPv4Network, IPv6Network

from starlette.responses import Response
from starlette.types import Scope

from rota.auth.authenticator import Authenticator
from rota.auth.caller import Caller
from rota.auth.routing import CALLER
from rota.limits.client import client_ip
from rota.limits.window import Ceilings, Verdict, Window, headers, untouched
from rota.platform import ids
from rota.platform.errors import ApiError, AuthenticationFailed
from rota.platform.http.answers import json_response
from rota.platform.http.edge import Pass, as_api_error

# Signed messages of the payment processor come in bursts, from few addresses.
UNLIMITED = ("/health", "/metrics", "/openapi.json", "/docs", "/.well-known", "/webhooks")
# Chat, agents and media generation are AI endpoints; agents are what there is of them.
AI_PREFIXES = ("/api/agents",)


def is_below(path: str, prefixes: tuple[str, ...]) -> bool:
    """Whether the path is one of these or lies below one: /docs/x, but not /docsx."""
    return path.startswith(prefixes) and any(
        path == prefix or path.startswith(f"{prefix}/") for prefix in prefixes
    )


class RequestGuard:
    def __init__(
        self,
        authenticator: Authenticator,
        window: Window,
        ceilings_of: Callable[[str], Ceilings],
        *,
        lowest_tier: str,
        trusted_proxies: Sequence[IPv4Network | IPv6Network],
        ai_prefixes: tuple[str, ...] = AI_PREFIXES,
    ) -> None:
        self._authenticator = authenticator
        self._window = window
        self._ceilings_of = ceilings_of
        self._by_address = ceilings_of(lowest_tier)
        self._unlimited = headers(untouched(self._by_address))
        self._trusted = trusted_proxies
        self._ai_prefixes = ai_prefixes

    async def __call__(self, scope: Scope, given: dict[bytes, bytes]) -> Pass:
        path: str = scope["path"]
        if is_below(path, UNLIMITED):
            return Pass(self._unlimited)
        caller = await self._caller(scope, given)
        scope[CALLER] = caller
        ai = is_below(path, self._ai_prefixes)
        if isinstance(caller, Caller):
            ceilings = self._ceilings_of(caller.tier)
            key = f"acct:{caller.account_id.hex}"
            account = ids.to_wire("acct", caller.account_id)
        else:
            ceilings, key, account = self._by_address, f"ip:{self._address(scope)}", None
        verdict = await self._window.admit(key, ceilings, ai=ai)
        return Pass(headers(verdict), None if verdict.allowed else _refuse(verdict), account)

    async def _caller(self, scope: Scope, given: dict[bytes, bytes]) -> Caller | ApiError:
        if b"authorization" not in given:
            return AuthenticationFailed.missing()
        if len(given) < len(scope["headers"]) and _count(scope, b"authorization") > 1:
            # Which of them somebody means is not ours to guess.
            return AuthenticationFailed("Send one Authorization header, not several.")
        selection = given.get(b"x-service-account")
        try:
            return await self._authenticator.authenticate(
                given[b"authorization"].decode("latin-1"),
                selection.decode("latin-1") if selection is not None else None,
            )
        except Exception as error:
            # Also a database that is away: the answer must still carry its headers.
            return as_api_error(error)

    def _address(self, scope: Scope) -> str:
        peer = scope["client"][0] if scope["client"] else None
        if not self._trusted:
            return client_ip(peer, None, ())
        forwarded = b",".join(v for name, v in scope["headers"] if name == b"x-forwarded-for")
        return client_ip(peer, forwarded.decode("latin-1"), self._trusted)


def _count(scope: Scope, header: bytes) -> int:
    return sum(name == header for name, _ in scope["headers"])


def _refuse(verdict: Verdict) -> Response:
    body = {
        "error": {
            "message": f"Too many requests. Wait {verdict.reset_s} s before the next one.",
            "code": "RATE_LIMIT_EXCEEDED",
        }
    }
    return json_response(429, body)
