"""What the built dashboard loads, measured on a cold visit to the inbox."""

import asyncio
import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Request, Response, Route, expect

from tests.e2e import scenes
from tests.e2e.browser import DESKTOP, PHONE, Tab
from tests.plans.world import World

INITIAL_KB = 140
# Where the parts of the frame are that every screen has.
PLACE = """
() => {
  const of = (name) => {
    const it = [...document.querySelectorAll(name)].find((each) => each.checkVisibility());
    const { x, y, height } = it?.getBoundingClientRect() ?? {};
    return { x, y, height };
  };
  const scheme = getComputedStyle(document.documentElement).colorScheme;
  return { bar: of('.topbar'), rail: of('.rail'), tabs: of('.tabbar'), scheme };
}
"""


async def test_the_inbox_needs_little_javascript_from_our_origin_only(
    browser: Browser, shop_a: World
) -> None:
    person = await shop_a.service.sign_in()
    waiting = scenes.Task(
        "WAITING_APPROVAL", gate="tool", items=[scenes.call(0, {"ticketId": "T-4821"})]
    )
    await scenes.write(person, waiting)
    async with Tab.open(browser, shop_a.service, **PHONE) as tab:
        await tab.enter(person.subject)
        session = await tab.context.new_cdp_session(tab.page)
        await session.send("Network.setCacheDisabled", {"cacheDisabled": True})
        loaded: list[Response] = []
        tab.page.on("response", lambda response: loaded.append(response))
        await tab.go("")
        await expect(tab.page.get_by_role("link", name=re.compile("T-4821"))).to_be_visible()
        http, gzip = shop_a.service.http, {"Accept-Encoding": "gzip"}
        scripts = {
            response.url: int(
                (await http.get(response.url, headers=gzip)).headers["content-length"]
            )
            for response in loaded
            if response.request.resource_type == "script"
        }
        for url, size in sorted(scripts.items(), key=lambda each: -each[1]):
            print(f"{size / 1000:7.1f} KB  {urlsplit(url).path}")
        total = sum(scripts.values()) / 1000
        print(f"{total:7.1f} KB of JavaScript in {len(scripts)} files")
        assert scripts
        assert total <= INITIAL_KB
        assert {urlsplit(response.url).netloc for response in loaded} == {
            urlsplit(tab.origin).netloc
        }


async def test_a_review_is_asked_for_once_and_before_the_dashboard_is_loaded(
    browser: Browser, shop_a: World
) -> None:
    person = await shop_a.service.sign_in()
    waiting = scenes.Task(
        "WAITING_APPROVAL", gate="tool", items=[scenes.call(0, {"ticketId": "T-4821"})]
    )
    await scenes.write(person, waiting)
    task = f"/api/tasks/{waiting.wire}"
    needed = {"/api/me", "/api/agents/catalog", task, f"{task}/review"}
    async with Tab.open(browser, shop_a.service, **PHONE) as tab:
        await tab.enter(person.subject)
        await tab.is_live()
        asked: list[str] = []
        all_asked = asyncio.Event()

        def note(request: Request) -> None:
            asked.append(urlsplit(request.url).path)
            if needed <= set(asked):
                all_asked.set()

        async def after_the_questions(route: Route) -> None:
            await all_asked.wait()
            await route.continue_()

        tab.page.on("request", note)
        await tab.page.route(re.compile(r"/assets/index-[^/]+\.js"), after_the_questions)
        async with tab.page.expect_request("**/api/events"):
            await tab.go(f"/reviews/{waiting.wire}")
        await expect(tab.page.get_by_role("heading", level=1)).to_be_visible()
        before_events = asked[: asked.index("/api/events")]
        assert {path: before_events.count(path) for path in needed} == dict.fromkeys(needed, 1)


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
async def test_the_frame_of_a_screen_stands_in_its_place_before_the_dashboard_is_loaded(
    browser: Browser, shop_a: World, size: dict[str, Any]
) -> None:
    person = await shop_a.service.sign_in()
    await scenes.write(person, scenes.Task("COMPLETED"))
    async with Tab.open(browser, shop_a.service, color_scheme="light", **size) as tab:
        await tab.enter(person.subject)
        await tab.page.evaluate("localStorage.setItem('rota.theme', 'dark')")
        load = asyncio.Event()

        async def wait(route: Route) -> None:
            await load.wait()
            await route.continue_()

        await tab.page.route(re.compile(r"/assets/index-[^/]+\.js"), wait)
        # The inbox, where a person arrives.
        await tab.page.goto(tab.page.url, wait_until="commit")
        bar = tab.page.locator(".topbar").first
        await expect(bar).to_be_visible()
        # Without its styles the frame is visible too, but not in its place.
        await expect(tab.page.locator("html")).to_have_css("color-scheme", "dark")
        place = await tab.page.evaluate(PLACE)
        load.set()
        await expect(tab.page.get_by_role("heading", name="Inbox")).to_be_visible()
        assert await tab.page.evaluate(PLACE) == place
        # The theme that the person chose, from the start.
        assert place["scheme"] == "dark"


async def test_nobody_who_is_signed_out_sees_the_frame(browser: Browser, shop_a: World) -> None:
    async with Tab.open(browser, shop_a.service) as tab:
        await tab.page.route(re.compile(r"/assets/index-[^/]+\.js"), lambda route: route.abort())
        tab.expect_error("ERR_FAILED")
        await tab.page.goto(f"{tab.origin}/signin")
        await expect(tab.page.locator(".starting")).to_be_visible()
        await expect(tab.page.locator(".topbar")).to_be_hidden()


async def test_the_build_has_no_source_maps_and_no_inline_scripts(shop_a: World) -> None:
    http = shop_a.service.http
    page = (await http.get("/")).text
    assert not re.search(r"<script(?![^>]*\bsrc=\"/assets/)", page)
    assert not re.search(r"\s(style|on\w+)=", page)
    seen: set[str] = set()
    ahead = set(re.findall(r"/(assets/[\w.-]+)", page))
    while ahead:
        name = ahead.pop()
        seen.add(name)
        response = await http.get(f"/{name}")
        assert response.status_code == 200, name
        assert "sourceMappingURL" not in response.text, name
        assert (await http.get(f"/{name}.map")).status_code == 404
        named = re.findall(r"[\"'`](?:\./|/?assets/)([\w.-]+\.(?:js|css))[\"'`]", response.text)
        ahead |= {f"assets/{each}" for each in named} - seen
    assert len(seen) > 20
