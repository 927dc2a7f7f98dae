"""docs/plans.md and docs/payments.md match the code."""

import asyncio
import json
import os
import re
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any, get_args

from rota.payments.port import Status as ProcessorStatus
from rota.plans.commands import EVENTS
from rota.plans.states import State, Status, next_state
from rota.variants.a import VARIANT_A
from rota.variants.b import VARIANT_B
from rota.variants.variant import Tier
from tests.plans.subscriptions import END, GRACE, NEXT, START, TIERS, known, seen
from tests.plans.world import World

DOCS = Path(__file__).parents[2] / "docs"


def marked(page: str, name: str) -> str:
    text = (DOCS / page).read_text()
    kind = page.removesuffix(".md")
    [found] = re.findall(rf"<!-- {kind}: {name} -->\n(.*?)<!-- {kind}: end -->", text, re.DOTALL)
    return str(found)


def transitions() -> set[tuple[str, str]]:
    """Every transition: from every state, for every report of the processor, at every time."""
    found: set[tuple[str, str]] = set()
    periods = ((START, END), (END, NEXT))
    booleans = (True, False)
    known_states: list[State | None] = [
        known(status=status, period_start=starts, period_end=ends, cancel_at_period_end=cancels)
        for status, (starts, ends), cancels in product(get_args(Status), periods, booleans)
    ]
    known_states += [
        replace(state, trial_end=END, unpaid_since=START if state.status == "PAST_DUE" else None)
        for state in known_states
        if state
    ]
    for current, status, (starts, ends), cancels, name in product(
        [None, *known_states], get_args(ProcessorStatus), periods, booleans, ("sub_1", "sub_2")
    ):
        if current and name == "sub_1" and starts < current.period_start:
            continue  # A period cannot move back.
        more: dict[str, Any] = {"cancel_at_period_end": cancels, "id": name}
        report = seen(status=status, period_start=starts, period_end=ends, **more)
        for now in (starts, starts + timedelta(days=8), ends, ends + timedelta(days=1)):
            then = next_state(current, report, now, GRACE, TIERS.index).state
            before = current.status if current else "[*]"
            if then is not None and before != then.status:
                found.add((before, then.status))
    return found


# A correct processor never causes these: a subscription starts with its trial, and ends if the
# first payment after the trial fails.
IMPOSSIBLE = {("ACTIVE", "TRIALING"), ("PAST_DUE", "TRIALING"), ("TRIALING", "PAST_DUE")}


def test_the_diagram_has_every_transition() -> None:
    shown = re.findall(r"(\S+) --> (\S+?):", marked("plans.md", "diagram"))
    assert len(shown) == len(set(shown))
    assert set(shown) == transitions() - IMPOSSIBLE


def _line(tier: Tier) -> str:
    seat = " for each seat" if tier.min_seats else ""
    least = f", at least {tier.min_seats}" if (tier.min_seats or 0) > 1 else ""
    price = f"${tier.price_cents // 100}{seat}{least}" if tier.price_cents else "free"
    allowance = f"${tier.allowance_cents // 100}{seat}" if tier.allowance_cents else "none"
    return f"| {tier.name} | {price} | {allowance} | {'companies' if seat else 'everyone'} |"


def test_the_table_has_the_variants_tiers() -> None:
    lines = marked("plans.md", "tiers").splitlines()[2:]
    assert lines == [_line(tier) for tier in VARIANT_A.tiers]
    assert VARIANT_B.pass_price_cents == 900
    assert "for $9 a month" in (DOCS / "plans.md").read_text()


def test_the_page_lists_the_commands_events() -> None:
    assert re.findall(r"- `(.*)`", marked("payments.md", "events")) == list(EVENTS)


async def test_the_examples_work(a: World) -> None:
    person = await a.person()
    blocks = re.findall(r"^```sh\n(.*?)^```", (DOCS / "plans.md").read_text(), re.DOTALL | re.M)
    port = a.service.settings.port
    for block, field in zip(blocks, ("effectiveTier", "checkoutUrl"), strict=True):
        shell = await asyncio.create_subprocess_exec(
            "bash",
            "-euo",
            "pipefail",
            "-c",
            block,
            env=os.environ | {"BASE": f"http://127.0.0.1:{port}", "TOKEN": person.token},
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await shell.communicate()
        assert field in json.loads(out)
