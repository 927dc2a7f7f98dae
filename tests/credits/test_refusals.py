"""402 says what the account has to do before an agent can run."""

from typing import Any

import pytest

from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.credits import ledger
from tests.assertions import assert_error
from tests.credits.world import CENT, Shop, start_run
from tests.tasks.world import newcomer

TOP_UP = "Top up with POST /api/credits/topup"
ALLOW = "et allowOverflow to true with PATCH /api/credits/settings"


@pytest.fixture(scope="module", autouse=True)
async def catalog(shop: Shop) -> None:
    await sync(shop.service.database_url, catalog_folder())


async def refused(shop: Shop, tier: str, *, topup_cents: int, allow_overflow: bool) -> str:
    """The message for a person who has used up the allowance. The agent's budget is 15 cents."""
    person = await newcomer(shop.service, tier=tier)
    settings = {"allowOverflow": allow_overflow}
    await person.request("PATCH", "/api/credits/settings", json=settings)
    available = (await shop.balance(person))["totalAvailable"]
    async with shop.db.write(person.user_id) as tx:
        await start_run(tx, available * CENT)
        if topup_cents:
            await ledger.top_up(tx, topup_cents * CENT, "pi_1")
    body: dict[str, Any] = {"name": "Write", "agent": "outreach-writer"}
    response = await person.post("/api/tasks", body)
    assert_error(response, 402, "INSUFFICIENT_CREDITS")
    message = str(response.json()["error"]["message"])
    assert message.startswith("The run's budget of $0.15 must be available")
    if topup_cents >= 15:
        # The remedy works.
        await person.request("PATCH", "/api/credits/settings", json={"allowOverflow": True})
        assert (await person.post("/api/tasks", body)).status_code == 201
    return message


async def test_allow_overflow_is_the_remedy_if_the_top_up_is_enough(shop: Shop) -> None:
    message = await refused(shop, "standard", topup_cents=500, allow_overflow=False)
    assert f". S{ALLOW}, or wait" in message
    assert "top-up balance of $5.00" in message
    assert "Top up" not in message


@pytest.mark.parametrize("topup_cents", [0, 14])
async def test_both_are_needed_if_the_top_up_is_not_enough_either(
    shop: Shop, topup_cents: int
) -> None:
    message = await refused(shop, "standard", topup_cents=topup_cents, allow_overflow=False)
    assert f"{TOP_UP} and s{ALLOW}, or wait" in message


@pytest.mark.parametrize(("tier", "allow_overflow"), [("standard", True), ("basic", False)])
async def test_a_top_up_is_the_remedy_if_runs_can_use_it(
    shop: Shop, tier: str, allow_overflow: bool
) -> None:
    message = await refused(shop, tier, topup_cents=14, allow_overflow=allow_overflow)
    assert f"{TOP_UP}, or wait" in message
    assert "allowOverflow" not in message
