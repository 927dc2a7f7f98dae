"""Notifications in a real browser: the settings, the page of an unsubscribe link, and the mails."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Browser, expect

from rota.composition import Composition
from rota.dev.stack import Stack
from tests.e2e.browser import DESKTOP, PHONE, Tab
from tests.e2e.test_browser_accessibility import AXE, violations
from tests.mcp.conftest import LOCAL
from tests.notifications.conftest import SENDER
from tests.notifications.receivers import Channel, Mailbox
from tests.notifications.world import (
    Desk,
    failed,
    html_of,
    program,
    shown,
    unsubscribe_path,
    waiting,
)
from tests.service import Service

# Where to write pictures, for a person to look at.
PICTURES = os.environ.get("ROTA_TEST_PICTURES")


@pytest.fixture(params=["a", "b"])
async def desk(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Desk]:
    async with (
        Mailbox().serve() as mailbox,
        Service.start(
            stack,
            variant=request.param,
            name=f"told_{request.param}",
            egress_allow=LOCAL,
            smtp_host="127.0.0.1",
            smtp_port=mailbox.port,
            smtp_tls="none",
            smtp_from=SENDER,
        ) as service,
        Composition(service.settings, pool_size=4) as parts,
    ):
        yield Desk(service, parts, mailbox)


async def picture(tab: Tab, name: str) -> None:
    if PICTURES:
        await tab.page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


async def test_a_person_chooses_what_to_be_told_and_turns_it_off_again(
    browser: Browser, desk: Desk
) -> None:
    person = await desk.service.sign_in()
    async with Channel().serve() as channel, Tab.open(browser, desk.service) as tab:
        await tab.enter(person.subject)
        await tab.go("/settings/notifications")
        mail = tab.page.get_by_role("region", name="By email")
        chat = tab.page.get_by_role("region", name="In a chat")
        await expect(mail).to_contain_text(f"{person.subject}@example.test")
        await expect(tab.button("Save")).to_be_disabled()
        kinds = tab.page.get_by_role("table", name="Notify me about")
        approvals = kinds.get_by_role("checkbox", name="Approvals that wait for you Email")
        await approvals.check()
        await kinds.get_by_role("checkbox", name="Failed tasks Chat").check()
        await tab.press("Save")
        await tab.sees("Enter the URL of the webhook")
        await chat.get_by_label("Chat service").select_option("mattermost")
        await chat.get_by_label("URL of the webhook").fill(channel.url)
        await tab.press("Save")
        await tab.says("Notifications saved")
        await tab.page.reload()
        await expect(approvals).to_be_checked()
        await expect(chat.get_by_label("URL of the webhook")).to_have_value("")
        assert "a-long-and-secret-part" not in await tab.page.content()
        await tab.press("Send a test (Chat)")
        await tab.says("Test message sent")
        assert "This is a test" in channel.messages[0]["text"]

        bot = await program(person)
        await waiting(bot, "Order paper")
        channel.answers = [(404, "")]
        await failed(bot)
        await desk.send()
        await tab.page.reload()
        await tab.sees("Chat · Failed")
        await tab.sees("status 404")
        await picture(tab, f"notifications-{desk.service.variant}-1280")

    [sent] = desk.mails(person)
    # The link of the mail, in a browser that nobody is signed in with.
    async with Tab.open(browser, desk.service, **PHONE) as tab:
        await tab.page.goto(unsubscribe_path(sent))
        await tab.sees("Unsubscribe from these emails?")
        await picture(tab, f"unsubscribe-{desk.service.variant}")
        assert (await shown(person))["mail"]["kinds"] == ["approval_waiting"]
        await tab.press("Unsubscribe")
        await tab.sees("You are unsubscribed")
        assert (await shown(person))["mail"]["kinds"] == []


async def test_the_screens_are_accessible_and_fit_a_phone(browser: Browser, desk: Desk) -> None:
    person = await desk.person()
    await waiting(await program(person))
    await desk.send()
    link = unsubscribe_path(desk.mails(person)[0])
    async with Tab.open(browser, desk.service, reduced_motion="reduce") as tab:
        await tab.context.add_init_script(path=AXE)
        await tab.enter(person.subject)
        await tab.go("/settings/notifications")
        await tab.sees("Approvals that wait for you")
        found = await violations(tab, "notifications")
        await tab.page.goto(link)
        await tab.sees("Unsubscribe from these emails?")
        found += await violations(tab, "unsubscribe")
        assert found == []
    for scheme in ("light", "dark"):
        async with Tab.open(browser, desk.service, **PHONE, color_scheme=scheme) as tab:
            await tab.enter(person.subject)
            await tab.go("/settings/notifications")
            await tab.sees("Approvals that wait for you")
            await picture(tab, f"notifications-{scheme}-390")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_mails_show_hostile_texts_as_text_and_load_nothing(
    browser: Browser, desk: Desk, scheme: Literal["light", "dark"]
) -> None:
    person = await desk.person()
    bot = await program(person)
    await waiting(bot, "Order 20 boxes of paper for the office in Berlin")
    await failed(bot, '<img src="http://evil.test/x" onerror=alert(1)> Nightly import')
    await desk.send()
    for number in range(3):
        await waiting(bot, f"Pay invoice {number + 1} of Paper & Sons <ltd>")
    await desk.later(person)
    await desk.send()
    asked: list[str] = []
    for number, mail in enumerate(desk.mails(person)):
        for size in (DESKTOP, PHONE):
            context = await browser.new_context(**size | {"color_scheme": scheme})
            page = await context.new_page()
            page.on("request", lambda request: asked.append(request.url))
            page.on("dialog", lambda dialog: asked.append(dialog.message))
            await page.set_content(html_of(mail))
            width = await page.evaluate("document.documentElement.scrollWidth")
            assert width <= size["viewport"]["width"]
            if PICTURES:
                name = f"mail-{number}-{scheme}-{size['viewport']['width']}.png"
                await page.screenshot(path=Path(PICTURES) / name, full_page=True)
            await context.close()
    assert asked == []
