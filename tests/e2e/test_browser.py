"""The billing page in a real browser, including the way to the payment page and back."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest
from playwright.async_api import Browser, Error, Route, expect

from rota.dev.stack import Stack
from rota.platform import ids
from rota.platform.db import Database
from tests.credits.world import CENT, end_run, spend, start_run
from tests.e2e.browser import Tab, chromium
from tests.payments.stripe_server import DECLINED_CARD
from tests.plans.world import World
from tests.service import Person


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as started:
        yield started


@pytest.fixture(scope="module")
async def world_a(stack: Stack) -> AsyncIterator[World]:
    async with World.start(stack, "a", "browser_a", allowances={}) as started:
        yield started


@pytest.fixture(scope="module")
async def world_b(stack: Stack) -> AsyncIterator[World]:
    async with World.start(stack, "b", "browser_b", allowances={}) as started:
        yield started


@pytest.fixture
async def a(browser: Browser, world_a: World) -> AsyncIterator[Tab]:
    async with Tab.open(browser, world_a) as tab:
        yield tab


@pytest.fixture
async def b(browser: Browser, world_b: World) -> AsyncIterator[Tab]:
    async with Tab.open(browser, world_b) as tab:
        yield tab


@pytest.fixture(params=["a", "b"])
def tab(request: pytest.FixtureRequest) -> Tab:
    found: Tab = request.getfixturevalue(request.param)
    return found


async def signed_in(tab: Tab) -> Person:
    person = await tab.world.service.sign_in()
    await tab.sign_in(person)
    return person


async def join_company(world: World, person: Person) -> None:
    async with world.service.owner() as connection:
        await connection.execute(
            """
            WITH company AS (
                INSERT INTO accounts (id, kind, name) VALUES ($1, 'company', 'Acme') RETURNING id
            )
            INSERT INTO members (account_id, user_id, role) SELECT id, $2, 'owner' FROM company
            """,
            ids.new_uuid(),
            person.user_id,
        )


async def run_a_task(world: World, person: Person) -> UUID:
    """A finished and settled run with one model call."""
    db = Database(world.service.database_url, pool_size=1)
    await db.open()
    async with db.write(person.user_id) as tx:
        run = await start_run(tx, 20 * CENT)
        await spend(tx, run, 0, 12_300, model="default")
        await end_run(tx, run)
    await db.close()
    return run.task_id


async def test_a_top_up_is_paid_and_shows_in_balance_and_transactions(tab: Tab) -> None:
    await signed_in(tab)
    await expect(tab.balance).to_have_text("$0.00")
    await tab.page.get_by_role("radio", name="$5", exact=True).check()
    await tab.press("Pay $5.00")
    await tab.pay()
    await expect(tab.balance).to_have_text("$5.00")
    await tab.says("Your balance is up to date")
    [row] = await tab.page.locator("#movements tr").all()
    await expect(row).to_contain_text("Top-up")
    await expect(row).to_contain_text("+$5.00")
    # The message appears once, not again after a reload.
    assert tab.page.url == f"{tab.world.service.settings.public_url}/billing"
    await tab.page.reload()
    await expect(tab.balance).to_have_text("$5.00")
    await expect(tab.page.get_by_role("status")).to_be_empty()
    assert tab.errors == []


async def test_a_user_who_cancels_the_payment_is_not_charged(tab: Tab) -> None:
    person = await signed_in(tab)
    await tab.page.get_by_label("Another amount in dollars").fill("12.34")
    await tab.press("Pay $12.34")
    await tab.pay(DECLINED_CARD)
    await expect(tab.page.get_by_role("alert")).to_contain_text("declined")
    await tab.press("Cancel")
    await tab.says("Nothing was charged")
    await expect(tab.balance).to_have_text("$0.00")
    assert (await person.get("/api/credits/balance")).json()["totalLoadedCents"] == 0


async def test_the_page_waits_for_a_payment_that_arrives_late(a: Tab) -> None:
    await signed_in(a)
    await a.world.stripe_server.hold()
    try:
        await a.press("Pay $20.00")
        await a.pay()
        await a.says("Payment received. Your balance will show it in a moment")
        await expect(a.balance).to_have_text("$0.00")
    finally:
        await a.world.stripe_server.release()
    await expect(a.balance).to_have_text("$20.00")
    await a.says("Thank you")


async def test_a_plan_is_bought_changed_cancelled_and_resumed(a: Tab) -> None:
    await signed_in(a)
    await expect(a.tier).to_have_text("Basic")
    await a.press("Subscribe to Standard")
    await a.pay()
    await expect(a.tier).to_have_text("Standard")
    await a.says("Your plan is up to date")
    await expect(a.page.locator("#plan-note")).to_contain_text("Standard renews on")
    await expect(a.page.locator("#allowance-used")).to_have_text("$0.00 of $15.00")
    await expect(a.page.get_by_role("progressbar")).to_be_visible()

    await a.press("Change to Advanced")
    await a.pay()
    await expect(a.tier).to_have_text("Advanced")
    await expect(a.page.locator("#allowance-used")).to_have_text("$0.00 of $50.00")

    await a.press("Change to Standard")
    await a.says("then Standard")
    await expect(a.tier).to_have_text("Advanced")
    await a.press("Keep Advanced")
    await a.says("Advanced renews on")

    await a.press("Cancel subscription")
    await a.says("The plan ends on")
    await expect(a.page.locator("#plan-note")).to_contain_text("Nothing more will be charged")
    await expect(a.page.locator("#plan-status")).to_have_text("Ending")
    await a.press("Resume subscription")
    await a.says("The plan continues")
    await expect(a.page.locator("#plan-note")).to_contain_text("Advanced renews on")
    assert a.errors == []


async def test_a_company_buys_a_plan_with_seats(a: Tab) -> None:
    person = await a.world.service.sign_in()
    await join_company(a.world, person)
    await a.sign_in(person)
    await a.page.get_by_label("Account").select_option("Acme")
    await a.page.get_by_label("Seats").first.fill("3")
    await a.press("Subscribe to Corporate")
    await expect(a.page.get_by_text("$90.00 a month")).to_be_visible()
    await a.pay()
    # The page returns to the selected account.
    await expect(a.tier).to_have_text("Corporate")
    await expect(a.page.locator("#plan-note")).to_contain_text("Corporate with 3 seats")
    await expect(a.page.locator("#allowance-used")).to_have_text("$0.00 of $75.00")
    name = (await person.get("/api/me")).json()["account"]["name"]
    await a.page.get_by_label("Account").select_option(f"{name} (personal)")
    await expect(a.tier).to_have_text("Basic")


async def test_the_connect_pass_is_bought_cancelled_and_resumed(b: Tab) -> None:
    await signed_in(b)
    note = b.page.locator("#pass-note")
    await expect(note).to_contain_text("Free until")
    await b.press("Buy for $9 a month")
    await b.pay()
    await expect(note).to_contain_text("Renews on")
    await b.says("Your connect pass is up to date")
    await expect(b.tier).to_have_text("Basic")
    await b.press("Cancel connect pass")
    await b.says("The connect pass ends on")
    await expect(note).to_contain_text("Nothing more will be charged")
    await b.press("Resume connect pass")
    await b.says("The connect pass continues")
    await expect(note).to_contain_text("Renews on")
    assert b.errors == []


async def test_the_cost_of_a_task_is_shown_as_text_and_in_the_chart(a: Tab) -> None:
    person = await a.world.service.sign_in()
    await a.world.buy(person, "standard")
    await person.get("/api/credits/balance")
    task_id = await run_a_task(a.world, person)
    await a.sign_in(person)
    rows = a.page.locator("#movements tr")
    task = f"task\u00a0…\u2060{task_id.hex[-6:]}"
    await expect(rows).to_contain_text(
        [f"Released by {task}", f"Model call, default, {task}", f"Held for {task}", "allowance"]
    )
    await expect(rows.nth(1)).to_contain_text("−$0.0123")
    await expect(a.page.locator("#allowance-used")).to_have_text("$0.02 of $15.00")
    chart = a.page.get_by_role("img", name="Cost by day")
    await expect(chart.locator("title").last).to_contain_text("$0.0123, 1 call")
    assert a.errors == []


async def test_a_token_stays_in_its_tab_until_the_user_signs_out(a: Tab) -> None:
    person = await signed_in(a)
    assert person.token not in a.page.url
    assert await a.page.evaluate("document.cookie + JSON.stringify(localStorage)") == "{}"
    assert person.token in await a.page.evaluate("JSON.stringify(sessionStorage)")
    await a.press("Sign out")
    await expect(a.page.get_by_label("Session token or API key")).to_be_focused()
    assert await a.page.evaluate("sessionStorage.length") == 0
    await a.page.reload()
    await expect(a.page.get_by_label("Session token or API key")).to_be_visible()
    await expect(a.page.get_by_role("heading", name="Balance")).to_be_hidden()


async def test_errors_are_shown_with_the_message_of_the_api(a: Tab) -> None:
    await a.page.goto("/billing")
    await a.page.get_by_label("Session token or API key").fill("rota_unknown")
    await a.press("Show my billing")
    response = await a.world.service.http.get(
        "/api/me", headers={"Authorization": "Bearer rota_unknown"}
    )
    problem = a.page.get_by_role("alert")
    await expect(problem).to_have_text(response.json()["error"]["message"])

    await signed_in(a)
    await a.page.get_by_label("Another amount in dollars").fill("4")
    await a.press("Pay $4.00")
    await expect(problem).to_have_text("Choose an amount from $5 to $1,000.")
    await a.page.get_by_label("Another amount in dollars").fill("5")
    await a.world.stripe_server.fault("/v1/checkout/sessions", "500", times=3)
    await a.press("Pay $5.00")
    await expect(problem).to_contain_text("payment processor")
    # The fault is over, and the button still works.
    await a.press("Pay $5.00")
    await a.pay()
    await expect(a.balance).to_have_text("$5.00")


async def test_a_request_without_a_response_is_repeated_with_the_same_idempotency_key(
    a: Tab,
) -> None:
    await signed_in(a)
    keys: list[str] = []

    async def lose_the_first(route: Route) -> None:
        keys.append(route.request.headers["idempotency-key"])
        if len(keys) == 1:
            await route.fetch()
            await route.abort()
        else:
            await route.continue_()

    await a.page.route("**/api/credits/topup", lose_the_first)
    await a.press("Pay $20.00")
    await expect(a.page.get_by_role("alert")).to_contain_text("did not respond")
    await a.press("Pay $20.00")
    await expect(a.page.get_by_label("Card number")).to_be_visible()
    assert len(keys) == 2
    assert len(set(keys)) == 1


async def test_the_page_loads_nothing_from_other_hosts_and_blocks_injected_code(a: Tab) -> None:
    await signed_in(a)
    assert a.origins == {f"127.0.0.1:{a.world.service.settings.port}"}
    assert a.errors == []
    with pytest.raises(Error, match="TrustedHTML"):
        await a.page.evaluate("document.body.innerHTML = '<p>'")
    with pytest.raises(Error, match="Failed to fetch"):
        await a.page.evaluate(f"fetch('{a.world.stripe_server.url}')")
    with pytest.raises(Error, match="TrustedScript"):
        await a.page.evaluate("document.body.setAttribute('onclick', 'alert(1)')")


@pytest.mark.parametrize("name", ["billing_page.py", "..%2fapp.py", "billing.html", "x"])
async def test_no_other_files_are_served(world_a: World, name: str) -> None:
    assert (await world_a.service.http.get(f"/billing/{name}")).status_code == 404
