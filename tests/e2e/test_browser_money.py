"""Money in a real browser: the way to the payment page and back, plans, the pass and settings."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from playwright.async_api import Browser, Locator, Route, expect

from rota.platform import ids
from rota.platform.db import Database
from tests.credits.world import CENT, end_run, spend, start_run
from tests.e2e.browser import PHONE, Tab
from tests.e2e.office import Office
from tests.payments.stripe_server import DECLINED_CARD
from tests.plans.world import World
from tests.service import Person


@asynccontextmanager
async def money_of(
    browser: Browser, world: World, person: Person, **options: object
) -> AsyncIterator[Tab]:
    """The Money screen of a person."""
    friends = (world.stripe_server.url,)
    async with Tab.open(browser, world.service, friends=friends, **options) as tab:
        await tab.enter(person.subject, "/money")
        yield tab


def available(tab: Tab) -> Locator:
    return tab.page.get_by_role("region", name="Available now").locator(".money-big")


def transactions(tab: Tab) -> Locator:
    return tab.page.get_by_role("region", name="Transactions").get_by_role("row")


def plan(tab: Tab) -> Locator:
    return tab.page.get_by_role("region", name=re.compile("^(Plan|Connect pass)$"))


async def test_a_person_pays_after_a_declined_card_and_sees_the_money(
    browser: Browser, shop: World
) -> None:
    person = await shop.service.sign_in()
    async with money_of(browser, shop, person) as tab:
        await expect(available(tab)).to_have_text("$0.00")
        await tab.press("Top up")
        await tab.dialog.get_by_label("Amount in dollars").fill("4.99")
        await tab.press("Pay", inside=tab.dialog)
        await expect(tab.dialog).to_contain_text("Enter an amount from $5 to $1,000.")
        await tab.dialog.get_by_role("button", name="$5", exact=True).click()
        await expect(tab.dialog).to_contain_text("After the payment, $5.00 is available.")
        await tab.press("Pay $5.00", inside=tab.dialog)
        tab.expect_error("status of 402")
        await tab.pay(DECLINED_CARD)
        await expect(tab.page.get_by_role("alert")).to_contain_text("declined")
        await tab.pay("4242 4242 4242 4242")
        await tab.says("The top-up has arrived")
        await expect(available(tab)).to_have_text("$5.00")
        await expect(transactions(tab).nth(1)).to_contain_text("Top-up")
        await expect(transactions(tab).nth(1)).to_contain_text("$5.00")
        # The message appears once, not again after a reload.
        assert tab.path == "/money"
        await tab.page.reload()
        await expect(available(tab)).to_have_text("$5.00")
        await expect(tab.page.get_by_text("has arrived")).to_have_count(0)
    assert (await person.get("/api/credits/balance")).json()["totalLoadedCents"] == 500


async def test_nothing_is_for_sale_where_the_service_takes_no_payments(
    office: Office, tab: Tab
) -> None:
    person = await office.service.sign_in()
    plans = (await person.get("/api/plans")).json()
    assert plans["takesPayments"] is False
    await tab.enter(person.subject, "/money")
    await expect(tab.page.get_by_text("To get more credit, ask the operator")).to_be_visible()
    buying = re.compile("Top up|Subscribe|Change|Buy")
    await expect(tab.page.locator("main").get_by_role("button", name=buying)).to_have_count(0)
    if office.service.variant == "a":
        await expect(plan(tab)).to_contain_text("To change the plan, ask the operator")
        await expect(tab.link("See plans")).to_be_visible()


async def test_a_person_who_cancels_the_payment_is_not_charged(
    browser: Browser, shop: World
) -> None:
    person = await shop.service.sign_in()
    answered, released = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        answer = await route.fetch()
        answered.set()
        await released.wait()
        await route.fulfill(response=answer)

    async with money_of(browser, shop, person, **PHONE) as tab:
        # Cancelled before the answer, which then leads nowhere.
        await tab.page.route("**/api/credits/topup", hold)
        await tab.press("Top up")
        await tab.press("Pay $20.00", inside=tab.dialog)
        await answered.wait()
        await tab.press("Cancel", inside=tab.dialog)
        async with tab.page.expect_response("**/api/credits/topup"):
            released.set()
        await tab.press("Top up")
        await tab.dialog.get_by_label("Amount in dollars").fill("12.34")
        await tab.press("Pay $12.34", inside=tab.dialog)
        # The dialog has a button of this name, too.
        await expect(tab.page.get_by_role("heading", name="Pay")).to_be_visible()
        await tab.press("Cancel")
        await tab.says("Nothing was charged")
        await expect(available(tab)).to_have_text("$0.00")
    assert (await person.get("/api/credits/balance")).json()["totalLoadedCents"] == 0


async def test_the_page_waits_for_a_payment_that_arrives_late(
    browser: Browser, shop_a: World
) -> None:
    person = await shop_a.service.sign_in()
    async with money_of(browser, shop_a, person) as tab:
        await shop_a.stripe_server.hold()
        try:
            await tab.press("Top up")
            await tab.press("Pay $20.00", inside=tab.dialog)
            await tab.pay()
            await tab.says("Waiting for the payment to arrive")
            await expect(available(tab)).to_have_text("$0.00")
        finally:
            await shop_a.stripe_server.release()
        await expect(available(tab)).to_have_text("$20.00")
        await expect(tab.page.get_by_text("Waiting for the payment")).to_have_count(0)


async def test_a_plan_is_bought_upgraded_downgraded_cancelled_and_resumed(
    browser: Browser, shop_a: World
) -> None:
    person = await shop_a.service.sign_in()
    async with money_of(browser, shop_a, person) as tab:
        card = plan(tab)
        await expect(card.get_by_role("row", name="Basic")).to_contain_text("Current")
        await tab.press("Subscribe to Standard")
        await tab.press("Go to checkout", inside=tab.dialog)
        await tab.pay()
        await tab.says("The plan is up to date")
        await expect(card).to_contain_text("Standard renews on")
        await expect(available(tab)).to_have_text("$15.00")
        await expect(tab.page.get_by_text("of $15.00 allowance used")).to_be_visible()

        await tab.press("Change to Advanced")
        await expect(tab.dialog).to_contain_text("The unused part of what you paid for Standard")
        await tab.press("Go to checkout", inside=tab.dialog)
        await tab.pay()
        await expect(card).to_contain_text("Advanced renews on")
        await expect(tab.page.get_by_text("of $50.00 allowance used")).to_be_visible()

        await tab.press("Change to Standard")
        await expect(tab.dialog).to_contain_text("Nothing is charged now")
        await tab.press(re.compile("^Change on "), inside=tab.dialog)
        await expect(card).to_contain_text("then Standard.")
        await expect(card.get_by_role("row", name="Advanced")).to_contain_text("Current")
        await expect(card.get_by_role("row", name="Standard")).to_contain_text("Next")
        await tab.press("Keep Advanced")
        await tab.press("Keep Advanced", inside=tab.dialog)
        await expect(card).to_contain_text("Advanced renews on")

        await tab.press("Cancel the plan")
        await expect(tab.dialog).to_contain_text("Then the account moves to Basic")
        await tab.press("Cancel the plan", inside=tab.dialog)
        await expect(card).to_contain_text("Nothing more will be charged")
        await tab.press("Resume the plan")
        await tab.says("The plan continues")
        await expect(card).to_contain_text("Advanced renews on")
    assert (await person.get("/api/subscriptions")).json()["effectiveTier"] == "ADVANCED"


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


async def test_a_company_buys_a_plan_with_seats(browser: Browser, shop_a: World) -> None:
    person = await shop_a.service.sign_in()
    await join_company(shop_a, person)
    friends = (shop_a.stripe_server.url,)
    async with Tab.open(browser, shop_a.service, friends=friends) as tab:
        await tab.enter(person.subject)
        await tab.go("/money")
        await tab.press("Subscribe to Corporate")
        await tab.press("Go to checkout", inside=tab.dialog)
        # The dialog has a button of this name, too.
        await expect(tab.heading("Subscribe", level=1)).to_be_visible()
        await tab.press("Cancel")
        await tab.says("Nothing was charged")
        # The page returns to the account that would have paid, with what the person may do there.
        menu = tab.button(re.compile("Account and settings$"))
        await expect(menu).to_contain_text("Acme")
        await tab.press("Subscribe to Corporate")
        await tab.dialog.get_by_label("Seats").fill("3")
        await expect(tab.dialog).to_contain_text("$90.00")
        await tab.press("Go to checkout", inside=tab.dialog)
        await expect(tab.page.get_by_text("$90.00 a month")).to_be_visible()
        await tab.pay()
        # The page returns to the account that pays.
        await expect(plan(tab)).to_contain_text("Corporate with 3 seats renews on")
        await expect(tab.page.get_by_text("of $75.00 allowance used")).to_be_visible()
    assert (await person.get("/api/subscriptions")).json()["effectiveTier"] == "BASIC"


async def test_the_connect_pass_follows_its_trial_and_is_bought_cancelled_and_resumed(
    browser: Browser, shop_b: World
) -> None:
    person = await shop_b.service.sign_in()
    async with money_of(browser, shop_b, person) as tab:
        card = plan(tab)
        await expect(card).to_contain_text("The trial is free until")
        await expect(card).to_contain_text("Basic tier")
        await tab.press("Buy for $9.00 a month")
        await tab.pay()
        await tab.says("The connect pass is active")
        await expect(card).to_contain_text("The pass renews on")
        await tab.press("Cancel the pass")
        await tab.press("Cancel the pass", inside=tab.dialog)
        await tab.says("The connect pass ends on")
        await expect(card).to_contain_text("Nothing more will be charged")
        await tab.press("Resume the pass")
        await tab.says("The connect pass continues")
        await expect(card).to_contain_text("for $9.00 a month")


async def settings_of(person: Person) -> dict[str, object]:
    found: dict[str, object] = (await person.get("/api/credits/settings")).json()["settings"]
    return found


async def test_a_person_decides_what_happens_when_money_runs_low(
    browser: Browser, shop_a: World
) -> None:
    person = await shop_a.service.sign_in()
    await shop_a.buy(person, "standard")
    async with money_of(browser, shop_a, person) as tab:
        overflow = tab.page.get_by_label("continue with the top-up")
        before = await overflow.is_checked()
        await overflow.click()
        await expect(overflow).to_be_checked(checked=not before)
        await expect(overflow).to_be_enabled()
        assert (await settings_of(person))["allowOverflow"] is not before

        # What is chosen is shown at once. The settings can be changed again when it is stored.
        alert_off = tab.page.get_by_label("Alert me when the balance is low")
        await alert_off.click()
        amount = tab.page.get_by_label("Alert me when less than")
        await amount.fill("a lot")
        await tab.press("Save")
        await expect(tab.page.get_by_role("alert")).to_have_text(
            "Enter an amount from $0 to $100,000."
        )
        await amount.fill("25.50")
        await tab.press("Save")
        below = tab.page.get_by_label("Alert me when less than $25.50 is available")
        await expect(below).to_be_checked()
        await expect(tab.page.get_by_text("The balance is below this now")).to_be_visible()
        await expect(below).to_be_enabled()
        assert (await settings_of(person))["alertBelowCents"] == 2_550
        await below.click()
        await expect(alert_off).not_to_be_checked()
        await expect(alert_off).to_be_enabled()
        await expect(below).to_have_count(0)
    assert (await settings_of(person))["alertBelowCents"] is None


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


async def test_every_cent_of_a_task_is_in_the_transactions_and_in_the_chart(
    browser: Browser, shop_a: World
) -> None:
    person = await shop_a.service.sign_in()
    await shop_a.buy(person, "standard")
    await person.get("/api/credits/balance")
    await run_a_task(shop_a, person)
    async with money_of(browser, shop_a, person) as tab:
        rows = transactions(tab)
        for at, kind in enumerate(("Release", "Charge", "Hold", "Allowance"), 1):
            await expect(rows.nth(at)).to_contain_text(kind)
        await expect(rows.nth(2)).to_contain_text("$0.0123")
        await expect(rows.nth(2)).to_contain_text("model default")
        # What is in whole cents has no more decimals than that.
        await expect(rows.nth(3).get_by_text("−$0.20", exact=True)).to_be_visible()
        await expect(rows.nth(4).get_by_text("+$15.00", exact=True)).to_be_visible()
        await expect(tab.page.get_by_text("$0.02 of $15.00 allowance used")).to_be_visible()
        spending = tab.page.get_by_role("region", name=re.compile("^Spent in"))
        await spending.get_by_role("button", name="Show as table").click()
        await expect(spending.get_by_role("table")).to_contain_text("$0.0123")


async def test_a_request_without_a_response_is_repeated_with_the_same_idempotency_key(
    browser: Browser, shop_a: World
) -> None:
    keys: list[str] = []

    async def lose_the_first(route: Route) -> None:
        keys.append(route.request.headers["idempotency-key"])
        if len(keys) == 1:
            await route.fetch()
            await route.abort()
        else:
            await route.continue_()

    person = await shop_a.service.sign_in()
    async with money_of(browser, shop_a, person) as tab:
        tab.expect_error("ERR_FAILED")
        await tab.page.route("**/api/credits/topup", lose_the_first)
        await tab.press("Top up")
        await tab.press("Pay $20.00", inside=tab.dialog)
        await expect(tab.dialog.get_by_role("alert")).to_be_visible()
        await tab.press("Pay $20.00", inside=tab.dialog)
        await expect(tab.page.get_by_label("Card number")).to_be_visible()
    assert len(keys) == 2
    assert len(set(keys)) == 1


async def test_an_error_of_the_payment_processor_is_shown_and_the_button_still_works(
    browser: Browser, shop_a: World
) -> None:
    person = await shop_a.service.sign_in()
    async with money_of(browser, shop_a, person) as tab:
        tab.expect_error("status of 402")
        await shop_a.stripe_server.fault("/v1/checkout/sessions", "500", times=3)
        await tab.press("Top up")
        await tab.press("Pay $20.00", inside=tab.dialog)
        await expect(tab.dialog.get_by_role("alert")).to_contain_text("payment processor")
        await tab.press("Pay $20.00", inside=tab.dialog)
        await tab.pay()
        await expect(available(tab)).to_have_text("$20.00")
