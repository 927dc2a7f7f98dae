"""A real browser, and what every test of the dashboard does with it."""

import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    WebError,
    async_playwright,
    expect,
)

from tests.service import Service

# The installed browser. Playwright does not download one.
CHROMIUM = "chromium"
# Enough time for a busy machine.
DEADLINE_MS = 30_000
expect.set_options(timeout=DEADLINE_MS)

DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 860}}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "is_mobile": True,
    "has_touch": True,
}

REPORT_VIOLATIONS = """
addEventListener('securitypolicyviolation', (event) =>
  console.error(`security policy: ${event.violatedDirective} ${event.blockedURI}`));
"""

# Until the page does not ask to read on.
READ = """
async (subject) => {
  const box = subject.closest('dialog, .pane-detail');
  // What a dialog covers cannot be read.
  const page = subject.closest('dialog') ?? document;
  const scrolls = box && box.scrollHeight > box.clientHeight ? box : document.scrollingElement;
  const glance = () => new Promise((resolve) => setTimeout(resolve, 300));
  const deadline = performance.now() + 30_000;
  do {
    if (performance.now() > deadline) throw new Error('The page asks to scroll on for ever.');
    subject.scrollIntoView({ block: 'start' });
    scrolls.scrollBy(0, -100);
    await glance();
    for (let last = -1; last !== scrolls.scrollTop; ) {
      last = scrolls.scrollTop;
      if (subject.getBoundingClientRect().bottom < innerHeight / 2) break;
      scrolls.scrollBy(0, innerHeight / 2);
      await glance();
    }
  } while (subject.isConnected && page.querySelector('.read-on'));
}
"""


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
    """A tab of a browser of its own. A test fails if any page had an error that it did not expect.

    Errors are: messages in the console, exceptions, violations of the content security policy, and
    requests to other servers than the service, the identity provider and `friends`.
    """

    service: Service
    context: BrowserContext
    page: Page
    friends: tuple[str, ...] = ()
    errors: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, browser: Browser, service: Service, *, friends: tuple[str, ...] = (), **options: Any
    ) -> AsyncIterator["Tab"]:
        """`friends` are addresses of other servers that pages may use, such as Stripe's."""
        context = await browser.new_context(
            base_url=service.settings.public_url, **{**DESKTOP, **options}
        )
        context.set_default_timeout(DEADLINE_MS)
        await context.add_init_script(REPORT_VIOLATIONS)
        tab = cls(service, context, await context.new_page(), friends)
        context.on("console", tab._listen)
        context.on("weberror", tab._fail)
        context.on("request", tab._note)
        try:
            yield tab
            assert not tab.unexpected, "\n".join(tab.unexpected)
        finally:
            await context.close()

    async def another(self) -> "Tab":
        """A second tab of the same browser. It shares the lists of errors and requests."""
        return Tab(
            self.service,
            self.context,
            await self.context.new_page(),
            self.friends,
            self.errors,
            self.expected,
            self.requests,
        )

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location.get('url')})")

    def _fail(self, error: WebError) -> None:
        self.errors.append(str(error.error))

    def _note(self, request: Request) -> None:
        self.requests.append(request)
        known = (self.origin, self.service.stack.endpoints.issuer_url or "", *self.friends)
        place = urlsplit(request.url)
        if place.scheme in ("data", "blob"):
            return
        if place.netloc not in [urlsplit(each).netloc for each in known]:
            self.errors.append(f"request to {request.url}")

    def expect_error(self, pattern: str) -> None:
        """The browser reports every failed request. This one belongs to the test."""
        self.expected.append(pattern)

    @property
    def unexpected(self) -> list[str]:
        return [
            error
            for error in self.errors
            if not any(re.search(pattern, error) for pattern in self.expected)
        ]

    @property
    def origin(self) -> str:
        return self.service.settings.public_url

    @property
    def path(self) -> str:
        """Path and search of the page, without the account."""
        place = urlsplit(self.page.url)
        path = re.sub(r"^/acct_[^/]*", "", place.path) or "/"
        return f"{path}?{place.query}" if place.query else path

    @property
    def account(self) -> str:
        """The account that the URL names, as the API writes it."""
        return urlsplit(self.page.url).path.split("/")[1]

    async def sign_in(self, subject: str, path: str = "/") -> None:
        """Signs in at the identity provider, as a person does, and returns to `path`."""
        await self.page.goto(path)
        await self.leave_for_provider()
        await self.choose(subject)
        await self.page.wait_for_url(re.compile(f"{re.escape(self.origin)}/acct_"))

    async def leave_for_provider(self) -> None:
        await self.page.get_by_role("button", name="Continue with").click()

    async def choose(self, subject: str) -> None:
        """Chooses a person on the page of the identity provider."""
        await self.page.get_by_label("Another email address").fill(f"{subject}@example.test")
        await self.press("Continue")

    async def enter(self, subject: str, path: str = "/") -> None:
        """Signs in with a cookie, without the pages, for tests about other things."""
        blank = f"{self.origin}/blank"
        await self.page.route(blank, lambda route: route.fulfill(body=""))
        await self.page.goto(blank)
        status = await self.page.evaluate(
            """async (idToken) => {
                localStorage.setItem('rota.renewed', String(Date.now()));
                const response = await fetch('/api/auth/session', {
                    method: 'POST',
                    headers: { 'Content-Type': 'application/json' },
                    body: JSON.stringify({ idToken, cookie: true }),
                });
                return response.status;
            }""",
            await self.service.id_token(subject),
        )
        assert status == 200
        await self.page.unroute(blank)
        await self.page.goto(path)
        await self.page.wait_for_url(re.compile(f"{re.escape(self.origin)}/acct_"))

    async def go(self, path: str) -> None:
        """Opens a path of the account, such as `/money`, as a link from outside does."""
        await self.page.goto(f"/{self.account}{path}")

    def button(self, name: str | re.Pattern[str], *, exact: bool = True) -> Locator:
        return self.page.get_by_role("button", name=name, exact=exact)

    def link(self, name: str | re.Pattern[str], *, exact: bool = True) -> Locator:
        return self.page.get_by_role("link", name=name, exact=exact)

    def heading(self, name: str | re.Pattern[str], level: int | None = None) -> Locator:
        if level is None:
            return self.page.get_by_role("heading", name=name)
        return self.page.get_by_role("heading", name=name, level=level)

    @property
    def dialog(self) -> Locator:
        return self.page.get_by_role("dialog")

    async def press(self, name: str | re.Pattern[str], *, inside: Locator | None = None) -> None:
        place = inside or self.page
        await place.get_by_role("button", name=name, exact=True).click()

    async def select(self, menu: str, action: str) -> None:
        """Opens a menu and selects an action of it."""
        await self.press(re.compile(f"{re.escape(menu)}$"))
        await self.page.get_by_role("menu", name=menu).get_by_text(action, exact=True).click()

    async def says(self, text: str | re.Pattern[str]) -> None:
        """Waits until a message on the screen says this."""
        await expect(self.page.get_by_role("status").get_by_text(text).first).to_be_visible()

    async def sees(self, text: str | re.Pattern[str]) -> None:
        await expect(self.page.get_by_text(text).first).to_be_visible()

    async def read_to_end(self, place: Locator | None = None) -> None:
        """Reads all that is decided, half a screen at a time. Only then can it be approved."""
        await (place or self.page).locator(".subject").evaluate(READ)

    async def is_live(self) -> None:
        """Waits until the page receives events. It is about the inbox, which says so."""
        await expect(self.page.get_by_text("Live", exact=True)).to_be_visible()

    def asked_for(self, test: Callable[[str], bool]) -> list[Request]:
        """The requests whose path passes the test."""
        return [request for request in self.requests if test(urlsplit(request.url).path)]

    async def sign_out(self) -> None:
        await self.select("Account and settings", "Sign out")
        await expect(self.heading("Sign in to Rota")).to_be_visible()

    async def pay(self, card: str | None = None) -> None:
        """Pays on the hosted page."""
        await expect(self.page.get_by_label("Card number")).to_be_visible()
        if card is not None:
            await self.page.get_by_label("Card number").fill(card)
        await self.press("Pay")
