"""A company in a real browser: create it, invite a colleague, and what a removed member sees."""

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from playwright.async_api import Browser, Locator, ViewportSize, expect

from tests.e2e.browser import Tab
from tests.plans.world import World

DESKTOP: ViewportSize = {"width": 1280, "height": 860}
PHONE: ViewportSize = {"width": 390, "height": 844}
# Where to write pictures, for a person to look at.
PICTURES = os.environ.get("ROTA_TEST_PICTURES")


async def picture(tab: Tab, name: str) -> None:
    if PICTURES:
        await tab.page.screenshot(path=Path(PICTURES) / f"{name}.png")


async def both_widths(tab: Tab, name: str) -> None:
    if PICTURES:
        for width, size in {"1280": DESKTOP, "390": PHONE}.items():
            await tab.page.set_viewport_size(size)
            await picture(tab, f"{name}-{width}")
        await tab.page.set_viewport_size(DESKTOP)


def row(tab: Tab, text: str) -> Locator:
    return tab.page.get_by_role("row").filter(has_text=text)


def approves(tab: Tab, who: str) -> Locator:
    return row(tab, who).get_by_role("cell").nth(2)


async def manage(tab: Tab, who: str, action: str) -> None:
    await row(tab, who).get_by_role("button", name="Manage").click()
    await row(tab, who).get_by_role("menuitem", name=action).click()


async def sign_in_here(tab: Tab, subject: str) -> None:
    await expect(tab.heading("Sign in to Rota")).to_be_visible()
    await tab.leave_for_provider()
    await tab.choose(subject)
    await tab.page.wait_for_url(f"{tab.origin}/invitation")


async def test_a_colleague_is_invited_decides_and_is_removed(
    browser: Browser, shop_a: World
) -> None:
    service = shop_a.service
    owner = await service.sign_in()
    stranger, guest = (f"{name}-{owner.user_id.hex[-8:]}" for name in ("stranger", "grace"))
    address = f"{guest}@example.test"
    async with (
        Tab.open(browser, service) as tab,
        Tab.open(browser, service, viewport=PHONE) as other,
    ):
        # The owner creates a company and invites a colleague.
        await tab.enter(owner.subject)
        await tab.select("Account and settings", "New company")
        await tab.press("Create company", inside=tab.dialog)
        await expect(tab.dialog).to_contain_text("Enter the name of the company.")
        await tab.dialog.get_by_label("Name").fill("Fernhill Supply")
        await both_widths(tab, "company-dialog")
        await tab.press("Create company", inside=tab.dialog)
        await expect(tab.heading("Members", level=2)).to_be_visible()
        await tab.sees("1 of 10 seats used")
        await tab.sees("The last owner cannot leave")
        company = tab.account
        await tab.press("Invite")
        await tab.dialog.get_by_label("Email address").fill("grace")
        await tab.press("Create invitation", inside=tab.dialog)
        await expect(tab.dialog).to_contain_text("Enter an email address")
        await tab.dialog.get_by_label("Email address").fill(address)
        await both_widths(tab, "invite-dialog")
        await tab.press("Create invitation", inside=tab.dialog)
        fresh = tab.page.get_by_role("region", name=f"Send this link to {address}")
        link = await fresh.locator(".secret code").inner_text()
        token = link.rpartition("#")[2]
        await expect(row(tab, address)).to_contain_text("in 6 d")
        await both_widths(tab, "members-invited")

        # Somebody else opens the link. It stays in the tab while they sign in, in no address.
        await other.page.goto(link)
        await sign_in_here(other, stranger)
        await expect(other.heading("Join Fernhill Supply", level=1)).to_be_visible()
        other.expect_error("403")
        await other.press("Accept invitation")
        await other.sees("This invitation is for another address")
        await other.sees(f"not {stranger}@example.test")
        await picture(other, "invitation-address-390")
        await other.press("Sign in with another address")
        await sign_in_here(other, guest)
        await expect(other.page.get_by_text("Signed in as")).to_be_visible()
        await expect(other.page.get_by_role("main")).to_contain_text(address)
        width = await other.page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["width"]
        await picture(other, "invitation-390")
        if PICTURES:
            await other.page.set_viewport_size(DESKTOP)
            await picture(other, "invitation-1280")
            await other.page.set_viewport_size(PHONE)
        # A request that fails behind the page does not take the link away.
        tab.expect_error("429")
        await tab.page.route("**/api/me", lambda route: route.fulfill(status=429))
        async with tab.page.expect_response("**/api/me"):
            await other.press("Accept invitation")
        await other.page.wait_for_url(re.compile(f"{company}/?$"))
        await other.page.set_viewport_size(DESKTOP)
        for request in other.requests:
            place = urlsplit(request.url)
            assert token not in request.url or place.path.startswith("/api/invitations/")

        # The owner sees it without reloading, and lets the colleague approve.
        await tab.sees("2 of 10 seats used")
        await tab.page.unroute("**/api/me")
        await expect(fresh).to_contain_text(token)
        await tab.press("Done")
        await tab.sees("No open invitations.")
        await expect(approves(tab, address)).to_have_text("No")
        await manage(tab, address, "Change role")
        await tab.dialog.get_by_label("Can approve").check()
        await both_widths(tab, "change-dialog")
        await tab.press("Save", inside=tab.dialog)
        await expect(approves(tab, address)).to_have_text("Yes")
        await both_widths(tab, "members")

        # A member sees who works here, and can only leave.
        await other.go("/settings/members")
        await expect(row(other, address).get_by_role("button", name="Manage")).to_be_visible()
        await expect(other.page.get_by_role("button", name="Manage")).to_have_count(1)
        await expect(other.button("Invite")).to_have_count(0)
        await expect(other.heading("Open invitations")).to_have_count(0)
        await picture(other, "members-member-1280")

        created = await owner.post(
            "/api/tasks",
            {"name": "Import the orders", "status": "WAITING_APPROVAL"},
            headers={"X-Service-Account": company},
        )
        task = created.json()["task"]["id"]
        await other.go(f"/reviews/{task}")
        await other.read_to_end()
        await other.press("Approve")
        await other.says("Approved.")
        selected = {"X-Service-Account": company}
        decided = (await owner.get(f"/api/tasks/{task}", headers=selected)).json()["task"]
        assert decided["status"] != "WAITING_APPROVAL"

        # The owner removes the colleague, whose open page says so.
        await other.go("")
        await other.is_live()
        await manage(tab, address, "Remove")
        await expect(tab.dialog).to_contain_text("API keys that the member created are deleted.")
        await both_widths(tab, "remove-dialog")
        await tab.press("Remove member", inside=tab.dialog)
        await tab.sees("1 of 10 seats used")
        await expect(row(tab, address)).to_have_count(0)
        lost = other.heading("You are no longer a member of this account")
        await expect(lost).to_be_visible()
        await picture(other, "lost-1280")
        await other.link("Go to the inbox").click()
        await expect(other.heading("Start your first task")).to_be_visible()
        assert other.account != company

        # The link works once.
        other.expect_error("404")
        await other.page.goto(link)
        await expect(other.heading("This invitation is no longer valid")).to_be_visible()
        await both_widths(other, "invitation-gone")


async def test_an_invitation_says_what_to_do_when_it_cannot_be_used(
    browser: Browser, shop_a: World
) -> None:
    owner, guest = await shop_a.service.sign_in(), await shop_a.service.sign_in()
    company = (await owner.post("/api/companies", {"name": "Acme"})).json()["account"]["id"]
    path = f"/api/companies/{company}/invitations"
    body = {"email": f"{guest.subject}@example.test", "role": "admin"}
    invited = (await owner.post(path, body)).json()
    async with Tab.open(browser, shop_a.service) as tab:
        await tab.enter(guest.subject)
        # The last seat is taken after the invitation was created.
        async with shop_a.service.owner() as connection:
            await connection.execute(
                "UPDATE accounts SET seats = 1 WHERE id = $1::uuid", company.removeprefix("acct_")
            )
        await tab.page.goto(invited["url"])
        await expect(tab.page.get_by_text("Admin")).to_be_visible()
        tab.expect_error("409")
        await tab.press("Accept invitation")
        await tab.sees("The company has no free seat")
        async with shop_a.service.owner() as connection:
            await connection.execute(
                "UPDATE accounts SET seats = 2 WHERE id = $1::uuid", company.removeprefix("acct_")
            )
        await tab.press("Accept invitation")
        await tab.page.wait_for_url(re.compile(f"{company}/?$"))

        # Without a token, the page says so. A member does not need an invitation.
        await tab.page.goto("/invitation")
        await expect(tab.heading("The link is not complete")).to_be_visible()
        async with shop_a.service.owner() as connection:
            await connection.execute(
                "UPDATE accounts SET seats = 3 WHERE id = $1::uuid", company.removeprefix("acct_")
            )
        again = (await owner.post(path, {"email": "ada@example.test", "role": "member"})).json()
        await tab.page.goto(again["url"])
        await expect(tab.heading("You are already a member of Acme")).to_be_visible()
        task = {"name": "Count the boxes", "status": "WAITING_APPROVAL"}
        await owner.post("/api/tasks", task, headers={"X-Service-Account": company})
        await tab.link("Open Acme").click()
        # The inbox opens the task that waits as soon as it has loaded.
        await tab.page.wait_for_url(re.compile(rf"/{company}(\?|$)"))

        # The router prepares the page of a link that has the focus. It is not selected yet.
        await tab.is_live()
        await tab.link("Settings").click()
        await tab.link(re.compile("^Open ")).focus()
        async with tab.page.expect_request("**/api/approvals?*") as asked:
            await owner.post("/api/tasks", task, headers={"X-Service-Account": company})
        assert (await (await asked.value).all_headers())["x-service-account"] == company

        # Revoked while the page is open.
        await owner.delete(f"/api/companies/{company}/members/user_{guest.user_id.hex}")
        tab.expect_error("403")
        invited = (await owner.post(path, body)).json()
        await tab.page.goto(invited["url"])
        await expect(tab.button("Accept invitation")).to_be_visible()
        await owner.delete(f"{path}/{invited['invitation']['id']}")
        tab.expect_error("404")
        await tab.press("Accept invitation")
        await expect(tab.heading("This invitation is no longer valid")).to_be_visible()
