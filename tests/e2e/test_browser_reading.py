"""The dashboard with large text, without motion, on a slow network and with the keyboard alone."""

import asyncio
import re
from contextlib import AbstractAsyncContextManager

import pytest
from playwright.async_api import Browser, Route, expect

from tests.e2e import scenes
from tests.e2e.browser import Tab
from tests.e2e.scenes import Task
from tests.e2e.test_browser_accessibility import CALLS, GATE, QUESTION, TOO_WIDE, TOOL
from tests.plans.world import World
from tests.service import Person


def calm(browser: Browser, world: World) -> AbstractAsyncContextManager[Tab]:
    return Tab.open(browser, world.service, reduced_motion="reduce")


@pytest.fixture(scope="module")
async def decider(shop_a: World) -> Person:
    person = await shop_a.service.sign_in()
    await scenes.write(
        person,
        *[
            Task("WAITING_APPROVAL", gate="tool", items=TOOL.items, calls=CALLS),
            Task("WAITING_APPROVAL", gate="tool", items=TOOL.items),
            Task("WAITING_APPROVAL", gate="output", items=GATE.items),
        ],
    )
    return person


CUT = """() => [...document.querySelectorAll('main *')].filter((each) => {
    const { overflowX, overflowY } = getComputedStyle(each);
    const hidden = (value) => value === 'hidden' || value === 'clip';
    return each.checkVisibility() && each.textContent.trim() && !each.closest('.sr') && (
        (hidden(overflowX) && each.scrollWidth > each.clientWidth + 1) ||
        (hidden(overflowY) && each.scrollHeight > each.clientHeight + 1));
}).map((each) => each.outerHTML.slice(0, 200))"""


async def test_text_of_twice_the_size_needs_no_sideways_scrolling_and_is_not_cut(
    browser: Browser, shop_a: World, decider: Person
) -> None:
    async with calm(browser, shop_a) as tab:
        await tab.enter(decider.subject)
        await tab.context.add_init_script(
            "addEventListener('DOMContentLoaded', "
            "() => document.documentElement.style.setProperty('font-size', '200%'))"
        )
        await tab.go("")
        first = tab.page.locator("[data-task]").first
        await expect(first).to_be_visible()
        task = await first.get_attribute("data-task")
        for path in ("", f"/reviews/{task}", "/tasks", "/agents", "/servers", "/money"):
            await tab.go(path)
            await expect(tab.page.locator("main h1, main h2").first).to_be_visible()
            assert await tab.page.evaluate(TOO_WIDE) == [], path
        await tab.go(f"/reviews/{task}")
        await expect(tab.button("Reject")).to_be_visible()
        assert await tab.page.evaluate(CUT) == []


async def test_nothing_moves_for_people_who_asked_for_that(
    browser: Browser, shop_a: World, decider: Person
) -> None:
    async with calm(browser, shop_a) as tab:
        await tab.enter(decider.subject)
        for path in ("", "/tasks", "/money"):
            await tab.go(path)
            await expect(tab.page.locator("main h1").first).to_be_visible()
            moving = await tab.page.evaluate(
                """() => [...document.querySelectorAll('*')].filter((each) => {
                    const style = getComputedStyle(each);
                    const long = (times) => times.split(',').some((s) => parseFloat(s) > 0.01);
                    return (style.animationName !== 'none' && long(style.animationDuration))
                        || long(style.transitionDuration);
                }).map((each) => each.outerHTML.slice(0, 120))"""
            )
            assert moving == [], path


async def test_a_card_shows_the_question_and_what_happens_without_an_answer(
    browser: Browser, shop_a: World
) -> None:
    person = await shop_a.service.sign_in()
    await scenes.write(person, Task("WAITING_APPROVAL", gate="tool", items=QUESTION.items))
    async with calm(browser, shop_a) as tab:
        await tab.enter(person.subject)
        card = tab.page.locator("[data-task]")
        await expect(card).to_contain_text("Asks: “Which tags fit?”")
        await expect(card).to_contain_text(re.compile(r"Waiting \d+ min"))
        await expect(card).to_contain_text("Cancelled in 6 d")


async def test_a_result_is_not_shown_as_source_and_not_accepted_before_it_can_be_read(
    browser: Browser, shop_a: World
) -> None:
    person = await shop_a.service.sign_in()
    result = Task("WAITING_APPROVAL", gate="output", items=GATE.items)
    await scenes.write(person, result)
    async with calm(browser, shop_a) as tab:
        parser = asyncio.Event()

        async def wait(route: Route) -> None:
            await parser.wait()
            await route.continue_()

        await tab.page.route(re.compile(r"/assets/Markdown-"), wait)
        await tab.enter(person.subject)
        await tab.go(f"/reviews/{result.wire}")
        accept = tab.button("Accept the result")
        await expect(accept).to_be_visible()
        await expect(tab.page.get_by_text("**answered**")).to_be_hidden()
        # A text that is on screen for so long counts as read.
        await tab.page.wait_for_timeout(1_000)
        await expect(accept).to_be_disabled()
        parser.set()
        await expect(tab.page.get_by_text("answered", exact=True)).to_be_visible()
        await tab.read_to_end()
        await expect(accept).to_be_enabled()


# Marks what can be used with a pointer, and returns how many there are.
MARK = """() => {
    const usable = 'a[href], button, input, select, textarea, summary, [tabindex]';
    const radios = new Set();
    let marked = 0;
    for (const each of document.querySelectorAll(usable)) {
        if (each.disabled || each.tabIndex < 0 || !each.checkVisibility()) continue;
        if (each.type === 'radio') {
            if (radios.has(each.name)) continue;
            radios.add(each.name);
        }
        each.dataset.wanted = String(marked++);
    }
    return marked;
}"""
FOCUSED = """() => {
    const each = document.activeElement;
    if (!each || each === document.body) return null;
    const box = each.getBoundingClientRect();
    const shows = (element) => {
        const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
        return (outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1) || boxShadow !== 'none';
    };
    return {
        wanted: each.dataset.wanted ?? null,
        html: each.outerHTML.slice(0, 160),
        visible: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight,
        focus: shows(each) || (each.parentElement !== null && shows(each.parentElement)),
    };
}"""


@pytest.mark.parametrize("screen", ["inbox", "review"])
async def test_everything_is_reached_by_tab_with_visible_focus(
    browser: Browser, shop_a: World, decider: Person, screen: str
) -> None:
    async with calm(browser, shop_a) as tab:
        await tab.enter(decider.subject)
        first = tab.page.locator("[data-task]").first
        await expect(first).to_be_visible()
        if screen == "review":
            await tab.go(f"/reviews/{await first.get_attribute('data-task')}")
        await expect(tab.button("Reject")).to_be_visible()
        # The button that scrolls on is there until everything has been on screen.
        await tab.read_to_end()
        wanted = await tab.page.evaluate(MARK)
        reached: set[str] = set()
        for _ in range(wanted * 2):
            await tab.page.keyboard.press("Tab")
            focused = await tab.page.evaluate(FOCUSED)
            if focused is None:
                break
            assert focused["visible"], focused
            assert focused["focus"], focused
            reached |= {focused["wanted"]} - {None}
        missing = [
            await tab.page.locator(f'[data-wanted="{n}"]').evaluate("(e) => e.outerHTML")
            for n in range(wanted)
            if str(n) not in reached
        ]
        assert missing == []
        assert wanted > 15
