"""Takes the pictures in docs/images: every screen, on a desktop and a phone, in light and dark.

    make screenshots

It runs `rota dev --demo` with data and ports of its own, does what is needed to fill each screen,
and signs in as Ada in Chromium. Names of screens as arguments limit what is taken.
"""

import argparse
import io
import math
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image, ImageColor
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tools.demo import Api, rota_dev, sign_in, webhook

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
TOKENS = ROOT / "dashboard" / "src" / "ui" / "tokens.css"
SIZES = {"desktop": (1280, 860), "phone": (390, 844)}
THEMES = ("light", "dark")
# Colours that differ by less look the same. Screens have few colours, so a picture without loss is
# smaller and sharper than one with it.
NEAR = 4
# How to write a picture without loss: these only say how much time to spend on a small file.
LOSSLESS: dict[str, Any] = {"lossless": True, "quality": 100, "method": 4}
MOST_BYTES, MOST_ANIMATION_BYTES = 2_000_000, 500_000
ANIMATION = "first-minute.webp"
ANIMATION_SIZE = {"width": 1120, "height": 740}
# The font stack ends in sans-serif. Without this font, pictures differ from machine to machine.
FONT = "Liberation Sans"
PORT, PORT_B = 27_400, 27_440


@dataclass(frozen=True)
class Screen:
    name: str
    path: str
    # Visible when the screen has its content.
    shows: str
    act: Callable[[Page], None] = lambda page: None
    account: str = ""
    signed_in: bool = True
    sizes: tuple[str, ...] = tuple(SIZES)


def is_phone(page: Page) -> bool:
    return bool(page.viewport_size and page.viewport_size["width"] < 720)


def choose_reply(page: Page) -> None:
    """Beside the list, where there is room for it."""
    if not is_phone(page):
        page.get_by_role("link", name="Reply to ticket T-4822 and mark").click()
        expect(page.get_by_role("textbox", name="Message").first).to_be_visible()
        read_to_the_end(page)
        expect(page.get_by_role("button", name="Approve", exact=True)).to_be_enabled()
        page.get_by_role("region", name="Selected review").evaluate("pane => pane.scrollTo(0, 0)")


def edit(page: Page) -> None:
    """An edit and its difference. On a phone, what a link in a message opens: the first screen."""
    if is_phone(page):
        read_to_the_end(page)
        expect(page.get_by_role("button", name="Approve", exact=True)).to_be_enabled()
        page.evaluate("scrollTo(0, 0)")
        return
    message = page.get_by_role("textbox", name="Message").first
    message.fill(message.input_value().replace("Every invoice", "Thank you. Every invoice"))
    read_to_the_end(page)
    expect(page.get_by_role("button", name="Approve with 1 edit")).to_be_enabled()
    message.evaluate("field => scrollBy(0, field.getBoundingClientRect().bottom - innerHeight / 2)")


def decide_together(page: Page) -> None:
    page.get_by_role("button", name="Decide together").click()
    page.get_by_role("button", name="Approve 3", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("Reply to ticket T-4822")


def read_to_the_end(page: Page) -> None:
    """Only what has been on the screen can be approved."""
    more = page.locator(".read-on")
    while more.count():
        more.click()
        page.wait_for_timeout(400)


def show_plan(page: Page) -> None:
    page.locator("#plan").scroll_into_view_if_needed()
    page.locator("#plan").evaluate("plan => scrollBy(0, plan.getBoundingClientRect().top - 80)")


def show_timeline(page: Page) -> None:
    page.get_by_role("tab", name="Timeline").evaluate(
        "tab => scrollBy(0, tab.getBoundingClientRect().top - 80)"
    )


def prepare(api: Api) -> list[Screen]:
    """Creates a webhook and keys, finishes a task with a subtask, and lists the screens."""
    hook = webhook(api)
    parent, subtask = api.task("Clear the backlog")["id"], api.task("Reply to ticket T-4825.")["id"]
    api.approve_to_the_end(subtask)
    api.approve_to_the_end(parent)
    for name, scopes in (
        ("Nightly report", ["tasks:read"]),
        ("Helpdesk bridge", ["tasks:read", "tasks:write"]),
    ):
        api.post("/api/keys", {"name": name, "scopes": scopes})
    failed = api.task("Follow up with Aiko")["id"]
    jonas = api.task("Answer Jonas about his invoice")["id"]
    [changed] = [each for each in api.get("/api/mcp")["servers"] if each["status"] == "CHANGED"]
    work = "Answer+the+customer+who+asks+for+the+October+invoice"
    return [
        Screen("sign-in", "/signin", "Sign in to Rota", signed_in=False),
        Screen("inbox", "", "Reply to ticket T-4822", choose_reply),
        Screen("review", f"/reviews/{jonas}", "What will be sent", edit),
        Screen("bulk", "", "Decide together", decide_together),
        Screen("new-task", f"/new?text={work}", "This task can cost at most"),
        Screen("tasks", "/tasks", "Clear the backlog"),
        Screen("task", f"/tasks/{parent}", "Delegate to", show_timeline),
        Screen("task-failed", f"/tasks/{failed}", "Retry from the failed step"),
        Screen("agents", "/agents", "Engineering Director"),
        Screen("agent", "/agents/ticket-responder", "What it is for"),
        Screen("tool-servers", "/servers", "Tools to accept"),
        Screen("tool-server-changed", f"/servers/{changed['id']}", "Offered now"),
        Screen("money", "/money", "Spent in 30 days"),
        Screen("plan", "/money", "Enterprise", show_plan),
        Screen("api-keys", "/settings/keys", "Nightly report"),
        Screen("sessions", "/settings/sessions", "This device"),
        Screen("webhooks", f"/settings/webhooks?webhook={hook}", "Delivered", sizes=("desktop",)),
        Screen("notifications", "/settings/notifications", "By email", sizes=("desktop",)),
        Screen("data", "/settings/data", "Retention", sizes=("desktop",)),
        Screen("first-use", "", "Start your first task", account=api.personal),
    ]


def settled(page: Page) -> None:
    """Everything that is loading has arrived."""
    expect(page.get_by_text("Loading…")).to_have_count(0)
    # Markdown whose parser is still on its way.
    expect(page.locator("[data-loading]")).to_have_count(0)
    page.evaluate("document.fonts.ready")


def picture(page: Page) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def own_colours() -> list[tuple[int, ...]]:
    """The colours of the dashboard, in both themes."""
    named = re.findall(r"#[0-9a-f]{6}\b", TOKENS.read_text())
    return [ImageColor.getrgb(each) for each in dict.fromkeys(named)]


def few_colours(images: list[Image.Image]) -> list[Image.Image]:
    """The same colours in all images, at most 256, and for every other one the nearest of them.

    The dashboard's own colours stay as they are, also where two of them are near each other. The
    rest, at the edges of letters, are frequent ones that differ.
    """
    found: Counter[Any] = Counter()
    for image in images:
        for number, colour in image.getcolors(image.width * image.height) or []:
            found[colour] += number
    kept = [colour for colour in own_colours() if colour in found]
    for colour, _ in found.most_common():
        if len(kept) == 256:
            break
        if not any(near(colour, other) for other in kept):
            kept.append(colour)
    nearest = {colour: min(kept, key=partial(math.dist, colour)) for colour in found}
    return [painted(image, nearest) for image in images]


def painted(image: Image.Image, colours: dict[Any, tuple[int, ...]]) -> Image.Image:
    result = Image.new("RGB", image.size)
    result.putdata([colours[each] for each in image.get_flattened_data()])
    return result


def near(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    (red, green, blue), (red2, green2, blue2) = one, other
    return abs(red - red2) <= NEAR and abs(green - green2) <= NEAR and abs(blue - blue2) <= NEAR


def write(page: Page, name: str) -> None:
    path = IMAGES / f"{name}.webp"
    [image] = few_colours([picture(page)])
    image.save(path, **LOSSLESS)
    print(f"{path.name} {path.stat().st_size / 1000:.0f} KB", flush=True)


@dataclass
class Recording:
    """Frames of one page, with the time that each of them is shown."""

    page: Page
    frames: list[Image.Image] = field(default_factory=list)
    shown_ms: list[int] = field(default_factory=list)

    def frame(self, shown_ms: int) -> None:
        self.frames.append(picture(self.page))
        self.shown_ms.append(shown_ms)

    def write(self, path: Path) -> None:
        first, *rest = few_colours(self.frames)
        first.save(
            path,
            save_all=True,
            append_images=rest,
            duration=self.shown_ms,
            loop=0,
            minimize_size=True,
            **LOSSLESS,
        )


def take(browser: Browser, base: str, screens: list[Screen], account: str) -> None:
    """Every screen, in each size and theme."""
    first = browser.new_context()
    sign_in(first.new_page(), base)
    state = first.storage_state()
    first.close()
    for theme in THEMES:
        for size, (width, height) in SIZES.items():
            for screen in screens:
                if size not in screen.sizes:
                    continue
                context = browser.new_context(
                    viewport={"width": width, "height": height},
                    color_scheme="dark" if theme == "dark" else "light",
                    reduced_motion="reduce",
                    storage_state=state if screen.signed_in else None,
                )
                page = context.new_page()
                place = f"/{screen.account or account}" if screen.signed_in else ""
                page.goto(f"{base}{place}{screen.path}")
                expect(page.get_by_text(screen.shows).locator("visible=true").first).to_be_visible()
                if screen.signed_in and size == "desktop":
                    # The last that arrives.
                    expect(page.locator(".rail-money")).to_be_visible()
                settled(page)
                screen.act(page)
                settled(page)
                write(page, f"{screen.name}-{size}-{theme}")
                context.close()


def record(browser: Browser, api: Api, base: str) -> None:
    """The first minute: describe a task, see what waits, edit, approve, see what it cost."""
    context = browser.new_context(
        viewport=ANIMATION_SIZE,  # type: ignore[arg-type]
        color_scheme="light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    sign_in(page, base)
    film = Recording(page)
    page.goto(f"{base}/{api.account}/new")
    work = page.get_by_label("What should be done?")
    expect(work).to_be_visible()
    settled(page)
    film.frame(700)
    text = "Reply to ticket T-4822: Jonas asks for his invoice"
    for end in range(8, len(text) + 8, 8):
        work.fill(text[:end])
        film.frame(140)
    expect(page.get_by_text("This task can cost at most")).to_be_visible()
    film.frame(1900)
    page.get_by_role("button", name="Start task").click()
    page.wait_for_url("**/tasks/*")
    task = page.url.rsplit("/", 1)[1]
    expect(page.get_by_text("Running").first).to_be_visible()
    film.frame(1100)
    page.get_by_role("link", name="Inbox").first.click()
    expect(page.get_by_text("You’re all caught up").first).to_be_visible()
    film.frame(900)
    api.post(
        "/api/tasks",
        {"name": "Answer Mina", "agent": "ticket-responder", "input": "Reply to ticket T-4821."},
    )
    waiting = page.get_by_role("region", name="Inbox", exact=True)
    for ticket in ("T-4822", "T-4821"):
        card = waiting.get_by_role("link", name=f"Reply to ticket {ticket}")
        expect(card).to_be_visible(timeout=60_000)
        film.frame(900)
    waiting.get_by_role("link", name="Reply to ticket T-4822").click()
    message = page.get_by_role("textbox", name="Message").first
    expect(message).to_be_visible()
    settled(page)
    film.frame(1800)
    message.scroll_into_view_if_needed()
    message.focus()
    film.frame(700)
    old = message.input_value()
    greeting = "Hello Jonas,\n\nthank you for your order."
    for end in range(14, len(greeting) + 9, 9):
        message.fill(old.replace("Hello Jonas,", greeting[:end], 1))
        film.frame(160)
    approve = page.get_by_role("button", name="Approve with 1 edit")
    film.frame(900)
    read_to_the_end(page)
    expect(approve).to_be_enabled()
    film.frame(1700)
    approve.click()
    expect(page.get_by_text("Approved.")).to_be_visible()
    film.frame(900)
    accept = waiting.get_by_role("link", name="Accept the result")
    expect(accept.first).to_be_visible(timeout=60_000)
    accept.first.click()
    confirm = page.get_by_role("button", name="Accept the result")
    expect(confirm).to_be_visible()
    settled(page)
    film.frame(1300)
    read_to_the_end(page)
    expect(confirm).to_be_enabled()
    film.frame(600)
    confirm.click()
    api.until(task, "COMPLETED")
    page.goto(f"{base}/{api.account}/tasks/{task}")
    expect(page.get_by_text("Completed").first).to_be_visible()
    expect(page.get_by_text("Total", exact=True).first).to_be_visible()
    settled(page)
    film.frame(1500)
    show_timeline(page)
    film.frame(3500)
    film.write(IMAGES / ANIMATION)
    context.close()


def check_sizes() -> None:
    total = sum(each.stat().st_size for each in IMAGES.iterdir())
    animation = (IMAGES / ANIMATION).stat().st_size
    print(f"docs/images: {total / 1000:.0f} KB, of these {ANIMATION}: {animation / 1000:.0f} KB")
    assert total <= MOST_BYTES, "docs/images is too large. Raise NEAR."
    assert animation <= MOST_ANIMATION_BYTES, f"{ANIMATION} is too large. Record fewer frames."


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the pictures in docs/images.")
    parser.add_argument("names", nargs="*", help="screens, or 'animation'; without names, all")
    names = set(parser.parse_args().names)
    chromium = shutil.which("chromium")
    assert chromium, "The pictures need Chromium. Install it: apt-get install chromium"
    fonts = subprocess.run(["fc-list"], check=True, capture_output=True, text=True).stdout  # noqa: S607
    assert FONT in fonts, f"The pictures need {FONT}. Install it: apt-get install fonts-liberation"
    IMAGES.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=20_000)

    def wanted(name: str) -> bool:
        return not names or name in names

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        if not names or names != {"pass"}:
            with rota_dev(PORT, "--demo") as base:
                api = Api(base)
                screens = [each for each in prepare(api) if wanted(each.name)]
                take(browser, base, screens, api.company)
                if wanted("animation"):
                    record(browser, Api(base, api.personal), base)
        if wanted("pass"):
            with rota_dev(PORT_B, "--variant", "b") as base:
                screen = Screen("pass", "/money", "Connect pass", show_plan)
                take(browser, base, [screen], Api(base).personal)
        browser.close()
    check_sizes()


if __name__ == "__main__":
    main()
