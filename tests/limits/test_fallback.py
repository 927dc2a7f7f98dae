from collections import defaultdict
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from rota.limits.fallback import WINDOW_NS, FallbackLimiter
from rota.limits.result import Ceilings, LimitResult

SECOND_NS = 1_000_000_000

ceilings = st.builds(Ceilings, all=st.integers(0, 12), ai=st.integers(0, 8))
# Mostly short steps, so that windows fill, and some exactly at the edge of the window.
steps_ns = st.one_of(
    st.integers(0, 2 * SECOND_NS), st.sampled_from([0, WINDOW_NS - 1, WINDOW_NS, WINDOW_NS + 1])
)
requests = st.tuples(steps_ns, st.sampled_from("ab"), ceilings, st.booleans(), st.integers(1, 5))


@dataclass
class Clock:
    now: int = 0

    def __call__(self) -> int:
        return self.now


class Oracle:
    """The same rules, implemented simply and slowly."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._admitted: dict[tuple[str, bool], list[int]] = defaultdict(list)

    def admit(self, now: int, key: str, ceilings: Ceilings, ai: bool, cost: int) -> LimitResult:
        limits = [ceilings.all, ceilings.ai] if ai else [ceilings.all]
        logs = [self._admitted[key, False], self._admitted[key, True]][: len(limits)]
        shares = [max(1, limit // self._processes) for limit in limits]

        def held(log: list[int]) -> list[int]:
            return [time for time in log if now - time < WINDOW_NS]

        cost = min([cost, *shares])
        allowed = all(
            len(held(log)) + cost <= share for log, share in zip(logs, shares, strict=True)
        )
        if allowed:
            for log in logs:
                log += [now] * cost
        candidates = []
        for limit, share, log in zip(limits, shares, logs, strict=True):
            # The first time at which one more request fits than now, or the refused one.
            kept = held(log)
            must_leave = len(kept) + (1 if allowed else cost) - share
            leaving = (kept[max(0, must_leave - 1)] if kept else now) + WINDOW_NS
            candidates.append((max(0, share - len(kept)), now - leaving, limit))
        remaining, minus_wait, limit = min(candidates)
        policy = ", ".join(f"{limit};w=60" for limit in limits)
        return LimitResult(allowed, limit, remaining, -(minus_wait // SECOND_NS), policy)


@given(processes=st.integers(1, 3), arrivals=st.lists(requests, max_size=60))
def test_every_result_matches_the_oracle(
    processes: int, arrivals: list[tuple[int, str, Ceilings, bool, int]]
) -> None:
    clock, oracle = Clock(), Oracle(processes)
    fallback = FallbackLimiter(processes=processes, clock_ns=clock)
    for step, key, ceilings, ai, cost in arrivals:
        clock.now += step
        result = fallback.admit(key, ceilings, ai=ai, cost=cost)
        assert result == oracle.admit(clock.now, key, ceilings, ai, cost)


def test_a_recounted_request_counts_as_several_or_as_one() -> None:
    fallback = FallbackLimiter(processes=1, clock_ns=Clock(now=5))
    five = Ceilings(5, 5)
    first = fallback.admit("a", five, ai=True)
    assert fallback.admit("a", five, ai=True, cost=3, replaces=first).remaining == 2
    second = fallback.admit("b", five, ai=True)
    assert fallback.admit("b", five, ai=True, cost=4).remaining == 0
    refused = fallback.admit("b", five, ai=True, cost=2, replaces=second)
    assert (refused.allowed, refused.remaining) == (False, 0)


@given(ceilings=ceilings, steps=st.lists(steps_ns, max_size=20), ai=st.booleans())
def test_a_request_passes_after_its_wait(ceilings: Ceilings, steps: list[int], ai: bool) -> None:
    clock = Clock()
    fallback = FallbackLimiter(processes=1, clock_ns=clock)
    for step in steps:
        clock.now += step
        fallback.admit("a", Ceilings(20, 20), ai=True)
    result = fallback.admit("a", ceilings, ai=ai)
    if not result.allowed:
        clock.now += result.reset_s * SECOND_NS
        assert fallback.admit("a", ceilings, ai=ai).allowed


def test_each_process_has_its_share_and_at_least_one_request() -> None:
    fallback = FallbackLimiter(processes=4)
    assert sum(fallback.admit("a", Ceilings(10, 10), ai=False).allowed for _ in range(9)) == 2
    assert sum(fallback.admit("b", Ceilings(3, 3), ai=False).allowed for _ in range(9)) == 1


def test_the_least_recently_used_key_is_evicted_first() -> None:
    fallback = FallbackLimiter(processes=1, max_keys=3)
    one = Ceilings(1, 1)
    for key in "abc":
        assert fallback.admit(key, one, ai=False).allowed
    assert not fallback.admit("a", one, ai=False).allowed
    assert fallback.admit("d", one, ai=False).allowed
    assert [fallback.admit(key, one, ai=False).allowed for key in "acdb"] == [0, 0, 0, 1]


def test_the_total_number_of_hits_is_bounded() -> None:
    fallback = FallbackLimiter(processes=1, max_hits=100)
    many = Ceilings(1000, 1000)
    for i in range(500):
        fallback.admit(f"key {i // 10}", many, ai=True)
    # Of 1,000 entries (500 in each of two logs), the newest 100 remain. They belong to five keys.
    left = [many.all - fallback.admit(f"key {i}", many, ai=False).remaining for i in (45, 49)]
    assert left == [11, 11]
    assert fallback.admit("key 3", many, ai=False).remaining == 999


def test_expired_keys_are_removed() -> None:
    clock = Clock()
    fallback = FallbackLimiter(processes=1, clock_ns=clock)
    for i in range(1000):
        fallback.admit(f"key {i}", Ceilings(5, 5), ai=False)
    clock.now += WINDOW_NS
    fallback.admit("later", Ceilings(5, 5), ai=False)
    assert list(fallback._logs) == ["later"]
