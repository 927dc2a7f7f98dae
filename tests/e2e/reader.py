"""A person who reads texts of others, and what must hold on every page that shows them."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from playwright.async_api import Browser

from tests.e2e.browser import Tab
from tests.e2e.hostile import CONTENTS, OPENERS
from tests.plans.world import World
from tests.service import Person

WIDTHS = (1280, 390)
HEIGHT = 860
# A page that is laid out for longer than this has frozen.
FROZEN_S = 30

# Reports whatever runs. Errors of the console fail a test.
CANARY = """
for (const name of ['alert', 'confirm', 'prompt', 'print', 'open']) {
    window[name] = () => console.error('a content ran');
}
"""

# What must not be there, whatever the contents say.
FOUND = """() => {
    const bad = [];
    const origin = location.origin;
    const forbidden = 'img, picture, iframe, object, embed, base, video, audio, marquee, portal, '
        + 'template, math, foreignObject, image, use, animate, style, script:not([src]), '
        + 'meta[http-equiv], form[action], [formaction], [srcset], [srcdoc], [ping], [autofocus]';
    for (const each of document.querySelectorAll(forbidden)) bad.push(each.outerHTML.slice(0, 200));
    for (const each of document.querySelectorAll('*')) {
        for (const { name, value } of each.attributes) {
            if (name.startsWith('on')) bad.push(`${name}=${value}`);
            if (name === 'style' && /url|expression|position/.test(value)) bad.push(value);
            if (name === 'src' && !value.startsWith('/')) bad.push(value);
        }
    }
    for (const link of document.querySelectorAll('a[href]')) {
        const { protocol, origin: of } = new URL(link.href, origin);
        if (!['http:', 'https:', 'mailto:'].includes(protocol)) bad.push(link.href);
        if (of !== origin && !/noopener/.test(link.rel)) bad.push(`${link.href} without noopener`);
    }
    // Nothing that floats over the page leaves the screen.
    for (const each of document.querySelectorAll('.toast, dialog[open], [popover]:popover-open')) {
        const { left, right, width } = each.getBoundingClientRect();
        if (left < 0 || right > innerWidth) bad.push(`${each.className} is ${width} px wide`);
    }
    // Nothing is cut off at the edge of what it is in.
    const boxes = '.rail, .rail-foot, .topbar, .pane, .card:not(.list-card), dialog[open], '
        + '.toast, .notice, .menu:popover-open';
    for (const each of document.querySelectorAll(boxes)) {
        const over = each.clientWidth ? each.scrollWidth - each.clientWidth : 0;
        if (over > 1) bad.push(`${each.className} is ${over} px too narrow`);
    }
    // A name in the title cannot hide or turn around what stands beside it.
    if (!/^[^\\p{Cc}\\p{Bidi_Control}]*\\bRota$/u.test(document.title)) bad.push(document.title);
    if ({}.polluted !== undefined) bad.push('a prototype is polluted');
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth > clientWidth) bad.push(`${scrollWidth - clientWidth} px too wide`);
    return bad;
}"""

# An element that opens reports it in a task of its own, and then React renders what is in it.
OPEN = """async () => {
    for (const each of document.querySelectorAll('main details')) each.open = true;
    for (let frames = 0; frames < 3; frames++) await new Promise(requestAnimationFrame);
}"""


def chunks(size: int, texts: Sequence[str] = CONTENTS) -> list[list[str]]:
    return [list(texts[at : at + size]) for at in range(0, len(texts), size)]


def joined(texts: Sequence[str], number: int) -> str:
    """Many contents in one text, and one at its end that does not end."""
    plain = [text for text in texts if text not in OPENERS]
    return "\n\n".join([*plain, OPENERS[number % len(OPENERS)]])[:120_000]


@asynccontextmanager
async def reader(browser: Browser, world: World, person: Person) -> AsyncIterator[Tab]:
    async with Tab.open(browser, world.service) as tab:
        await tab.context.add_init_script(CANARY)
        await tab.enter(person.subject)
        yield tab


async def show_all(tab: Tab) -> None:
    """Opens everything that can be opened, and waits until it is there."""
    folded = tab.button(re.compile("^Show all"))
    while await folded.count():
        await folded.first.click()
    await tab.page.evaluate(OPEN)


async def check(tab: Tab, what: str, widths: Sequence[int] = WIDTHS) -> None:
    """Nothing ran, nothing was loaded from elsewhere, and the page is not too wide."""
    for width in widths:
        found = await _resized(tab, width)
        assert not found, (what, width, found[:5])
    assert not tab.unexpected, (what, tab.unexpected[:5])
    elsewhere = [each.url for each in tab.requests if not each.url.startswith(f"{tab.origin}/")]
    assert not elsewhere, (what, elsewhere[:5])
    assert tab.page.url.startswith(f"{tab.origin}/"), (what, tab.page.url)
    await _resized(tab, WIDTHS[0])


async def _resized(tab: Tab, width: int) -> list[str]:
    async with asyncio.timeout(FROZEN_S):
        await tab.page.set_viewport_size({"width": width, "height": HEIGHT})
        found: list[str] = await tab.page.evaluate(FOUND)
        return found
