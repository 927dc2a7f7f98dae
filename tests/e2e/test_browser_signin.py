"""Signing in through the identity provider, coming back to the right page, and signing out."""

import re
from urllib.parse import quote

from playwright.async_api import expect

from tests.e2e.browser import Tab
from tests.e2e.office import Office


async def test_a_person_signs_in_on_the_page_that_was_asked_for_and_signs_out(
    tab: Tab, office: Office
) -> None:
    [person] = await office.company(helpdesk="")
    asked = f"/{person.account}/tasks?status=FAILED&q=ticket"
    await tab.sign_in(person.subject, asked)
    await expect(tab.heading("Tasks", level=1)).to_be_visible()
    assert tab.page.url == tab.origin + asked
    await expect(tab.page.get_by_label("Search tasks")).to_have_value("ticket")
    # Scripts can read neither the session nor any token.
    stored = "JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])"
    readable = await tab.page.evaluate(stored)
    [cookie] = [each for each in await tab.context.cookies() if each.get("httpOnly")]
    assert cookie.get("value", "-") not in readable
    assert "token" not in readable.lower()
    # Without an answer, the session lives on, and the page says so.
    tab.expect_error("ERR_FAILED")
    await tab.page.route("**/api/auth/logout", lambda route: route.abort())
    await tab.select("Account and settings", "Sign out")
    await tab.says(re.compile("You may still be signed in"))
    assert tab.page.url == tab.origin + asked
    await tab.page.unroute("**/api/auth/logout")
    await tab.sign_out()
    assert tab.path == "/signin"
    assert not [each for each in await tab.context.cookies() if each.get("httpOnly")]
    # A page of the account asks to sign in again, and shows nothing before.
    await tab.page.goto(asked)
    await expect(tab.heading("Sign in to Rota")).to_be_visible()
    await expect(tab.page.get_by_text("Fernhill Supply")).to_have_count(0)


ELSEWHERE = (
    "//evil.example",
    "/\\evil.example",
    "/\t/evil.example",
    "https://evil.example/",
    "/.//evil.example",
    "javascript:alert(1)",
    "/signin",
)


async def test_a_link_cannot_send_a_person_who_signs_in_elsewhere(tab: Tab, office: Office) -> None:
    person = await office.service.sign_in()
    for elsewhere in ELSEWHERE:
        await tab.sign_in(person.subject, f"/signin?next={quote(elsewhere, safe='')}")
        await expect(tab.heading("Nothing needs your decision yet")).to_be_visible()
        assert tab.path == "/", elsewhere


async def test_an_answer_that_this_tab_did_not_ask_for_signs_nobody_in(tab: Tab) -> None:
    await tab.page.goto("/signin/callback?code=abc&state=made-up")
    await tab.sees("This sign-in was not started in this tab. Start again.")
    assert not tab.asked_for(lambda path: path == "/api/auth/code")
    await tab.press("Start again")
    await expect(tab.button("Continue with", exact=False)).to_be_visible()


async def test_a_session_that_ended_elsewhere_leads_to_sign_in_and_back(
    tab: Tab, office: Office
) -> None:
    [person] = await office.company(helpdesk="")
    await tab.enter(person.subject, f"/{person.account}/agents")
    await expect(tab.heading("Agents", level=1)).to_be_visible()
    await tab.context.clear_cookies()
    tab.expect_error(r"status of 401")
    await tab.page.reload()
    await tab.leave_for_provider()
    await tab.choose(person.subject)
    await expect(tab.heading("Agents", level=1)).to_be_visible()
    assert tab.path == "/agents"
    # A page that is open notices by itself.
    sessions = (await person.get("/api/auth/sessions")).json()["sessions"]
    for session in sessions:
        if not session["current"]:
            await person.delete(f"/api/auth/sessions/{session['id']}")
    await tab.leave_for_provider()
    await tab.choose(person.subject)
    await expect(tab.heading("Agents", level=1)).to_be_visible()
    assert tab.path == "/agents"


async def test_what_one_person_typed_is_not_shown_to_the_next_in_the_same_tab(
    tab: Tab, office: Office
) -> None:
    one, two = await office.company(2, helpdesk="")
    await tab.enter(one.subject, f"/{one.account}/new")
    work = tab.page.get_by_label("What should be done?")
    await work.fill("A confidential task.")
    # No session, and no agent for the text.
    tab.expect_error(r"status of 40[14]")
    for subject, text in ((one.subject, "A confidential task."), (two.subject, "")):
        await tab.context.clear_cookies()
        await tab.page.reload()
        await tab.leave_for_provider()
        await tab.choose(subject)
        await expect(work).to_have_value(text)
