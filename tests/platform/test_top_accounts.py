"""The metric of the accounts that use the most: few series, and the right ones."""

from prometheus_client import CollectorRegistry

from rota.platform.top_accounts import COUNTED, HALF_LIFE_S, SHOWN, TopAccounts


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def top_accounts() -> tuple[TopAccounts, Clock]:
    clock = Clock()
    return TopAccounts("used_total", "Use.", now_s=clock, registry=CollectorRegistry()), clock


def shown(top: TopAccounts) -> dict[str, float]:
    [family] = top.collect()
    return {sample.labels["account"]: sample.value for sample in family.samples}


def test_only_the_accounts_that_use_the_most_are_shown() -> None:
    top, _ = top_accounts()
    for number in range(100):
        top.add(f"acct_{number}", number)
    assert shown(top) == {f"acct_{number}": number for number in range(100 - SHOWN, 100)}


def test_an_account_that_is_busy_now_replaces_one_that_was_busy_before() -> None:
    top, clock = top_accounts()
    for number in range(SHOWN):
        top.add(f"acct_old{number}", 1_000)
    top.add("acct_new", 100)
    assert "acct_new" not in shown(top)
    clock.now_s += 5 * HALF_LIFE_S
    top.add("acct_new", 100)
    assert shown(top)["acct_new"] == 200


def test_what_is_shown_never_decreases_while_it_is_shown() -> None:
    top, clock = top_accounts()
    top.add("acct_1", 3)
    clock.now_s += 10 * HALF_LIFE_S
    top.add("acct_1", 2)
    assert shown(top) == {"acct_1": 5}


def test_accounts_beyond_the_limit_push_out_those_that_use_the_least() -> None:
    top, _ = top_accounts()
    top.add("acct_large", 50)
    for number in range(3 * COUNTED):
        top.add(f"acct_{number}")
    assert shown(top)["acct_large"] == 50
    assert len(top._uses) <= COUNTED
