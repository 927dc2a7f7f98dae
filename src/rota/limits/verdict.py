"""What the limiter says about one request, and how a response says it in its headers."""

from dataclasses import dataclass
from functools import lru_cache

WINDOW_S = 60


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Requests per 60 seconds: of any kind, and to AI endpoints alone."""

    all: int
    ai: int


@dataclass(frozen=True, slots=True)
class Verdict:
    allowed: bool
    limit: int
    remaining: int
    reset_s: int
    policy: str


@lru_cache(maxsize=256)
def policy(*ceilings: int) -> str:
    """The ceilings that a request counts toward, in the words of RateLimit-Policy."""
    return ", ".join(f"{ceiling};w={WINDOW_S}" for ceiling in ceilings)


@lru_cache(maxsize=256)
def untouched(ceilings: Ceilings) -> Verdict:
    """A full window, for routes that are not limited but still carry the headers."""
    return Verdict(True, ceilings.all, ceilings.all, 0, policy(ceilings.all))


def headers(verdict: Verdict) -> list[tuple[bytes, bytes]]:
    """The verdict as raw ASGI headers."""
    reset = b"%d" % verdict.reset_s
    pairs = [
        (b"ratelimit-limit", b"%d" % verdict.limit),
        (b"ratelimit-remaining", b"%d" % verdict.remaining),
        (b"ratelimit-reset", reset),
        (b"ratelimit-policy", verdict.policy.encode()),
    ]
    if not verdict.allowed:
        pairs.append((b"retry-after", reset))
    return pairs
