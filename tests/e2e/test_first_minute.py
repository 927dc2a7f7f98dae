"""What a new person does: start `rota dev`, open what it prints, decide a first approval."""

import re
import time
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.e2e.browser import READ, chromium
from tests.e2e.test_readme import base_port, import_time_s, rota_dev, run_rota_dev

# From the start of `rota dev` to the decision. As in the test of the README, a slower or busier
# machine may take as much longer as its imports do.
LIMIT_S, LIMIT_IMPORTS = 90, 21


class Watch:
    """Measures the parts of the first minute."""

    def __init__(self) -> None:
        self._start = self._last = time.monotonic()
        self._parts: list[str] = []

    def note(self, part: str) -> None:
        now = time.monotonic()
        self._parts.append(f"{part} {now - self._last:.1f} s")
        self._last = now

    @property
    def total_s(self) -> float:
        return self._last - self._start

    def __str__(self) -> str:
        return f"first minute: {self.total_s:.1f} s ({', '.join(self._parts)})"


async def sign_in(page: Page, address: str) -> None:
    await page.goto(address)
    await page.get_by_role("button", name="Continue with").click()
    await page.get_by_role("button", name="Ada").click()
    await expect(page.get_by_role("heading", name="Welcome, Ada")).to_be_visible()


async def start_task(page: Page) -> None:
    await page.get_by_role("link", name="Describe a task").click()
    await page.get_by_label("What should be done?").fill("Reply to ticket T-4821")
    await expect(page.get_by_role("radio", name="Ticket Responder")).to_be_checked()
    start = page.get_by_role("button", name="Start task")
    await expect(start).to_be_enabled()
    await start.click()
    await expect(page.get_by_role("heading", name="Reply to ticket T-4821")).to_be_visible()


async def open_review(page: Page) -> None:
    """The task shows by itself that it waits."""
    await page.get_by_role("link", name="Review", exact=True).click(timeout=60_000)
    await expect(page.get_by_role("heading", name="What will be sent")).to_be_visible()


async def approve(page: Page) -> None:
    approve = page.get_by_role("button", name="Approve", exact=True)
    # Approving needs all that is decided on the screen.
    await page.locator(".subject").evaluate(READ)
    await expect(approve).to_be_enabled()
    await approve.click()
    await expect(page.get_by_text("Approved.")).to_be_visible()


@pytest.mark.timed
async def test_a_new_person_decides_a_first_approval_within_ninety_seconds(tmp_path: Path) -> None:
    import_s = await import_time_s()
    where = ("--data", str(tmp_path / "data"), "--port", str(base_port()))
    watch = Watch()
    try:
        printed = await run_rota_dev("--detach", *where)
        watch.note("rota dev")
        found = re.search(r"Open (http://\S+) and sign in as Ada", printed)
        assert found, printed
        async with chromium() as browser:
            page = await browser.new_page()
            await sign_in(page, found[1])
            watch.note("sign in")
            await start_task(page)
            watch.note("describe a task")
            await open_review(page)
            watch.note("wait for the approval")
            await approve(page)
            watch.note("decide")
    finally:
        await rota_dev("--stop", *where)
    import_s = max(import_s, await import_time_s())
    print(f"{watch}, imports {import_s:.1f} s")
    assert watch.total_s <= max(LIMIT_S, LIMIT_IMPORTS * import_s)
