"""The documentation site in a browser that reaches no other server."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.async_api import Browser, Page, Route, expect
from playwright.async_api import TimeoutError as NotYet

from tools.site.build import build

DEADLINE_S = 30


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    built = build(tmp_path_factory.mktemp("site"))
    assert built.code == 0, built.printed
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(built.folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
async def page(browser: Browser, address: str) -> AsyncIterator[Page]:
    context = await browser.new_context()
    opened = await context.new_page()
    elsewhere: list[str] = []

    async def only_the_site(route: Route) -> None:
        url = route.request.url
        if url.startswith((address, "data:", "blob:")):
            await route.continue_()
        else:
            elsewhere.append(url)
            await route.abort()

    await context.route("**/*", only_the_site)
    try:
        yield opened
        assert elsewhere == []
    finally:
        await context.close()


async def test_the_search_finds_pages_without_a_network(page: Page, address: str) -> None:
    await page.goto(f"{address}/index.html")
    await expect(page.get_by_role("heading", name="Tutorials")).to_be_visible()
    await page.keyboard.press("/")
    await page.keyboard.type("dead letters")
    # The results are in a closed part of the page, which tests cannot read. Enter opens the first.
    async with asyncio.timeout(DEADLINE_S):
        while "operating.html" not in page.url:
            await page.keyboard.press("Enter")
            with suppress(NotYet):
                await page.wait_for_url("**/operating.html*", timeout=1_000)
    await expect(page.get_by_role("heading", name="Dead letters")).to_be_visible()


async def test_a_link_to_a_heading_of_github_leads_to_the_same_heading(
    page: Page, address: str
) -> None:
    await page.goto(f"{address}/guarantees.html#how-this-is-tested")
    heading = page.locator("#how-this-is-tested")
    await expect(heading).to_contain_text("How this is tested")
    await expect(heading).to_be_in_viewport()
