"""A real browser, and the actions of a user on the billing and payment pages."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import (
    Browser,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    async_playwright,
    expect,
)

from tests.plans.world import World
from tests.service import Person

# The installed browser. Playwright does not download one.
CHROMIUM = "chromium"
# Enough time for a busy machine.
expect.set_options(timeout=15_000)


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    path = shutil.which(CHROMIUM)
    assert path, "These tests need Chromium. Install it: apt-get install chromium"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield browser
        finally:
            await browser.close()


@dataclass
class Tab:
    """A tab, its errors and the hosts that it contacted."""

    world: World
    page: Page
    errors: list[str] = field(default_factory=list)
    origins: set[str] = field(default_factory=set)

    @classmethod
    @asynccontextmanager
    async def open(cls, browser: Browser, world: World, **options: Any) -> AsyncIterator["Tab"]:
        context = await browser.new_context(base_url=world.service.settings.public_url, **options)
        tab = cls(world, await context.new_page())
        tab.page.on("console", tab._listen)
        tab.page.on("pageerror", lambda error: tab.errors.append(str(error)))
        tab.page.on("request", tab._note)
        try:
            yield tab
        finally:
            await context.close()

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _note(self, request: Request) -> None:
        if not request.url.startswith("data:"):
            self.origins.add(urlsplit(request.url).netloc)

    @property
    def balance(self) -> Locator:
        return self.page.locator("#available")

    @property
    def tier(self) -> Locator:
        return self.page.locator("#tier")

    async def sign_in(self, person: Person) -> None:
        await self.page.goto("/billing")
        await self.page.get_by_label("Session token or API key").fill(person.token)
        await self.page.get_by_role("button", name="Show my billing").click()
        await expect(self.page.get_by_role("heading", name="Balance")).to_be_visible()

    async def press(self, name: str) -> None:
        await self.page.get_by_role("button", name=name, exact=True).click()

    async def says(self, text: str) -> None:
        await expect(self.page.get_by_role("status")).to_contain_text(text)

    async def pay(self, card: str | None = None) -> None:
        """Pays on the hosted page."""
        await expect(self.page.get_by_label("Card number")).to_be_visible()
        if card is not None:
            await self.page.get_by_label("Card number").fill(card)
        await self.press("Pay")
