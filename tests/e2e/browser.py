"""A real browser, and what people do in it on the billing page and where they pay."""

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

# The machine's own: nothing is downloaded.
CHROMIUM = "chromium"
# A machine that does other things as well is given time.
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
    """A tab, and what went wrong or elsewhere in it."""

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

    async def says(self, words: str) -> None:
        await expect(self.page.get_by_role("status")).to_contain_text(words)

    async def pay(self, card: str | None = None) -> None:
        """On the hosted page."""
        await expect(self.page.get_by_label("Card number")).to_be_visible()
        if card is not None:
            await self.page.get_by_label("Card number").fill(card)
        await self.press("Pay")
