"""The limiter's result for one request, and the response headers that report it."""

from dataclasses import dataclass, field
from functools import lru_cache

WINDOW_S = 60


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The maximum number of requests in 60 seconds: in total, and to AI endpoints."""

    all: int
    ai: int


@dataclass(frozen=True, slots=True)
class LimitResult:
    allowed: bool
    limit: int
    remaining: int
    reset_s: int
    policy: str
    # When the request was counted, by the clock of the limiter that counted it, and toward how many
    # ceilings: the first one is of all requests, the second one of those to AI endpoints.
    at: int = field(default=0, compare=False)
    counted: int = field(default=1, compare=False)


@lru_cache(maxsize=256)
def policy(*ceilings: int) -> str:
    """The ceilings that a request counts toward, in the format of RateLimit-Policy."""
    return ", ".join(f"{ceiling};w={WINDOW_S}" for ceiling in ceilings)


@lru_cache(maxsize=256)
def full_window(ceilings: Ceilings) -> LimitResult:
    """The result for routes without a limit, whose responses have the headers too."""
    return LimitResult(True, ceilings.all, ceilings.all, 0, policy(ceilings.all))


def rate_limit_headers(result: LimitResult) -> list[tuple[bytes, bytes]]:
    """The result as raw ASGI headers."""
    reset = b"%d" % result.reset_s
    pairs = [
        (b"ratelimit-limit", b"%d" % result.limit),
        (b"ratelimit-remaining", b"%d" % result.remaining),
        (b"ratelimit-reset", reset),
        (b"ratelimit-policy", result.policy.encode()),
    ]
    if not result.allowed:
        pairs.append((b"retry-after", reset))
    return pairs
