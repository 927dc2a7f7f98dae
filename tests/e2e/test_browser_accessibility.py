"""Every screen with axe, at both widths and in both themes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, expect

from tests.companies.world import Company
from tests.e2e import scenes
from tests.e2e.browser import PHONE, Tab
from tests.e2e.scenes import Task
from tests.mcp.conftest import connect
from tests.mcp.peers import Peer, definition
from tests.plans.world import World
from tests.service import Person

AXE = Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
HEIGHT = 860

RUN_AXE = """async (rules) => {
    const options = { runOnly: rules, resultTypes: ['violations'], preload: false };
    const { violations } = await axe.run(document, options);
    return violations.flatMap(({ id, nodes }) =>
        nodes.map((node) => `${id}: ${node.html.slice(0, 160)} ${node.failureSummary}`));
}"""

TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? []
    : [...document.querySelectorAll('body *')]
        .filter((each) => each.getBoundingClientRect().right > innerWidth)
        .map((each) => each.outerHTML.slice(0, 120))"""

SCHEMA = {
    "type": "object",
    "properties": {
        "ticketId": {"type": "string", "title": "Ticket", "description": "Which ticket."},
        "message": {"type": "string", "maxLength": 2_000},
        "status": {"type": "string", "enum": ["open", "pending", "solved"]},
        "refundCents": {"type": "integer", "minimum": 0},
        "notify": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"item": {"type": "string"}, "amount": {"type": "number"}},
            },
        },
    },
    "required": ["ticketId", "message"],
}
ARGUMENTS = {
    "ticketId": "T-4821",
    "message": "Hello Mina,\n\nyour parcel is on its way. I am sorry for the wait.",
    "status": "solved",
    "refundCents": 450,
    "notify": True,
    "tags": ["late", "parcel"],
    "lines": [{"item": "Lamp", "amount": 12.5}, {"item": "Shade", "amount": 4}],
}
OUTPUT = (
    "# Reply\n\nI **answered** Mina and closed the [ticket](https://helpdesk.example/T-4821).\n\n"
    "| step | result |\n|---|---|\n| read | ok |\n| reply | sent |\n\n- one\n- two\n\n> Thanks!\n\n"
    "```\ncurl https://helpdesk.example\n```"
)
CALLS = [
    ("get_ticket", "helpdesk", {"ticketId": "T-4821"}, {"subject": "Where is my order?"}),
    ("search_articles", "helpcenter", {"query": "late parcel"}, {"articles": 3}),
]


def waiting(gate: str, **more: Any) -> Task:
    return Task("WAITING_APPROVAL", name=f"Waits at the {gate} gate", gate=gate, **more)


TOOL = waiting("tool", items=[scenes.call(0, ARGUMENTS, schema=SCHEMA)], calls=CALLS)
ALIKE = [waiting("tool", items=[scenes.call(0, ARGUMENTS, schema=SCHEMA)]) for _ in range(2)]
SEVERAL = waiting(
    "tool", items=[scenes.call(n, {"ticketId": f"T-{n}", "message": "Hello"}) for n in range(3)]
)
QUESTION = waiting(
    "tool",
    items=[
        scenes.call(
            0, {"question": "Which tags fit?"}, tool="ask_person", server=None, serverUrl=None
        )
    ],
)
RUN = waiting("run", description="For Monday.")
GATE = waiting("output", items=[scenes.output_item(OUTPUT)], rejected=["Shorter, please."])
EXTERNAL = waiting("external", agent=None, output="Done by a client.")
COMPLETED = Task("COMPLETED", output=OUTPUT, calls=CALLS, actions=["Read the ticket"])
FAILED = Task(
    "FAILED",
    error={"code": "MODEL_ERROR", "message": "The model did not respond.", "retryable": True},
    calls=CALLS,
)
RUNNING = Task("RUNNING", calls=CALLS[:1])
TASKS = [TOOL, *ALIKE, SEVERAL, QUESTION, RUN, GATE, EXTERNAL, COMPLETED, FAILED, RUNNING]
TASKS += [Task("PENDING"), Task("CANCELLED")]


SCHEDULE = {
    "name": "Weekly minutes",
    "cron": "0 9 * * MON",
    "timeZone": "Europe/Berlin",
    "task": {"name": "Minutes", "agent": "meeting-scribe", "input": "Hi"},
}


@asynccontextmanager
async def busy(world: World) -> AsyncIterator[tuple[Person, str]]:
    """A person with tasks in every state, a server that changed and money that moved."""
    person = await world.service.sign_in()
    await world.buy(person, "advanced")
    await person.post("/api/tasks", {"name": "Minutes", "agent": "meeting-scribe", "input": "Hi"})
    await person.post("/api/schedules", SCHEDULE)
    await person.post("/api/keys", {"name": "Nightly", "scopes": ["tasks:read", "tasks:approve"]})
    async with Peer().serve() as peer:
        server = await connect(person, peer.url, "notes")
        peer.tools["note"] = definition("note", "Writes a note and sends it to others.")
        peer.tools["burn"] = definition("burn", "Deletes notes.", properties={"id": {}})
        await person.post(f"/api/mcp/{server['id']}/ping")
        await scenes.write(person, *TASKS)
        yield person, server["id"]


async def screens_of_the_busy(tab: Tab, server: str) -> AsyncIterator[str]:
    page = tab.page
    await expect(tab.button("Approve")).to_be_visible()
    yield "inbox"
    for box in (await page.get_by_role("checkbox", name="Select:").all())[:3]:
        await box.check()
    await tab.button("Approve 3", exact=False).first.click()
    await expect(tab.dialog).to_be_visible()
    yield "bulk dialog"
    for task in (TOOL, SEVERAL, QUESTION, RUN, GATE, EXTERNAL):
        await tab.go(f"/reviews/{task.wire}")
        await expect(tab.button("Reject")).to_be_visible()
        yield f"{task.name}, {len(task.items)}"
    await tab.press("Reject")
    await expect(tab.dialog).to_be_visible()
    yield "reject dialog"
    for path, text in {
        "/new": "New task",
        "/new/many": "Preview",
        "/tasks": "Tasks",
        f"/tasks/{COMPLETED.wire}": "Output",
        f"/tasks/{COMPLETED.wire}?tab=input": "Input",
        f"/tasks/{COMPLETED.wire}?tab=raw": "Raw steps",
        f"/tasks/{GATE.wire}?tab=reviews": "Reviews",
        f"/tasks/{FAILED.wire}": "The task failed",
        f"/tasks/{RUNNING.wire}": "Timeline",
        f"/tasks/{TOOL.wire}": "Timeline",
        "/schedules": "Weekly minutes",
        "/agents": "Agents",
        "/agents?q=ticket": "Agents",
        "/agents/ticket-responder": "Instructions",
        "/agents/ticket-responder?tab=versions": "Versions",
        "/agents/ticket-responder?tab=runs": "Recent tasks",
        "/agents/sales-director": "Overview",
        "/servers": "notes",
        f"/servers/{server}": "are new or changed",
        "/money": "Transactions",
        "/settings/profile": "Joined",
        "/settings/appearance": "Theme",
        "/settings/sessions": "Active sessions",
        "/settings/keys": "Nightly",
        "/settings/webhooks": "Endpoints",
        "/settings/audit": "Signed head",
        "/settings/data": "Export all data",
        "/nowhere": "This page does not exist",
    }.items():
        await tab.go(path)
        await expect(page.locator("main").get_by_text(text).first).to_be_visible()
        await expect(page.get_by_role("status").filter(has_text="Loading")).to_have_count(0)
        yield path
    await tab.go("/new/many?agent=meeting-scribe")
    await page.get_by_role("textbox").fill("name,priority,owner\nFirst,1,Mina\nSecond,soon,Mina")
    await expect(page.get_by_text("must be a number from 0 to 10")).to_be_visible()
    yield "many tasks"
    await tab.button("Create 1 task", exact=False).click()
    await expect(tab.link("See the tasks of this agent")).to_be_visible()
    yield "results of many tasks"
    await tab.go("/schedules")
    await tab.link("Weekly minutes").click()
    await expect(tab.heading("Next times")).to_be_visible()
    yield "a schedule"
    for path, button in {
        "/schedules": "New schedule",
        "/servers": "Connect a server",
        "/money": "Top up",
        "/settings/keys": "Create key",
        "/settings/webhooks": "Create webhook",
        "/settings/audit?action=account": "Details 1",
    }.items():
        await tab.go(path)
        await tab.press(button)
        await expect(tab.dialog).to_be_visible()
        yield f"dialog: {button}"


async def screens_of_others(tab: Tab, world: World) -> AsyncIterator[str]:
    await tab.page.goto("/signin")
    await expect(tab.button("Continue with", exact=False)).to_be_visible()
    yield "sign-in"
    newcomer = await world.service.sign_in()
    await tab.enter(newcomer.subject)
    await expect(tab.heading("Start your first task")).to_be_visible()
    yield "first use"
    await tab.press("Open the example")
    yield "the example of an approval"
    await tab.go("/servers")
    await expect(tab.page.get_by_text("No tool server is connected yet")).to_be_visible()
    yield "no servers"
    await scenes.write(newcomer, Task("COMPLETED"))
    await tab.go("")
    await expect(tab.page.get_by_text("You’re all caught up")).to_be_visible()
    yield "an empty inbox"


async def screens_of_a_company(tab: Tab, company: str, link: str) -> AsyncIterator[str]:
    await tab.page.goto(f"/{company}/settings/members")
    await expect(tab.heading("Open invitations")).to_be_visible()
    await expect(tab.page.get_by_role("button", name="Manage grace@example.com")).to_be_visible()
    yield "members"
    await tab.press("Invite")
    await expect(tab.dialog).to_be_visible()
    yield "dialog: Invite"
    await tab.dialog.get_by_label("Email address").fill("mina@example.com")
    await tab.press("Create invitation", inside=tab.dialog)
    await expect(tab.button("Copy link")).to_be_visible()
    yield "a new invitation"
    for action in ("Change role", "Remove"):
        member = tab.page.get_by_role("table", name="Members").get_by_role("row").nth(2)
        await member.get_by_role("button", name="Manage").click()
        await member.get_by_role("menuitem", name=action).click()
        await expect(tab.dialog).to_be_visible()
        yield f"dialog: {action}"
        await tab.press("Cancel", inside=tab.dialog)
    await tab.page.goto(f"/{company}/settings/policies")
    await tab.page.get_by_label("A second person approves").check()
    await tab.page.get_by_label("Runs with a high budget").check()
    yield "policies"
    await tab.page.goto(f"/{company}/settings/rules")
    await expect(tab.page.get_by_text("No rules yet.")).to_be_visible()
    yield "no rules"
    await tab.press("New rule")
    await tab.press("Create rule", inside=tab.dialog)
    await expect(tab.dialog).to_contain_text("Choose one.")
    yield "dialog: New rule"
    await tab.press("Cancel", inside=tab.dialog)
    await tab.select("Account and settings", "New company")
    await expect(tab.dialog).to_be_visible()
    yield "dialog: New company"
    await tab.page.goto(link)
    await expect(tab.button("Accept invitation")).to_be_visible()
    yield "an invitation"


async def violations(tab: Tab, screen: str) -> list[str]:
    """What axe finds. A theme changes nothing but colours."""
    found = []
    rules: dict[str, Any] = {"type": "tag", "values": TAGS}
    colours = {"type": "rule", "values": ["color-contrast"]}
    for width in (1280, 390):
        await tab.page.set_viewport_size({"width": width, "height": HEIGHT})
        for scheme in ("light", "dark"):
            await tab.page.emulate_media(color_scheme=scheme)
            ran = await tab.page.evaluate(RUN_AXE, rules if scheme == "light" else colours)
            found += [f"{screen}, {width} px, {scheme}: {each}" for each in ran]
        wide = await tab.page.evaluate(TOO_WIDE)
        found += [f"{screen}, {width} px: too wide: {each}" for each in wide[-2:]]
    await tab.page.set_viewport_size({"width": 1280, "height": HEIGHT})
    await tab.page.emulate_media(color_scheme="light")
    return found


@asynccontextmanager
async def reader(browser: Browser, world: World, **options: Any) -> AsyncIterator[Tab]:
    async with Tab.open(browser, world.service, reduced_motion="reduce", **options) as tab:
        # As the browser's own script: the policy of the page allows no other ones.
        await tab.context.add_init_script(path=AXE)
        yield tab


async def test_axe_finds_nothing_on_any_screen(browser: Browser, shop_a: World) -> None:
    found: list[str] = []
    async with busy(shop_a) as (person, server), reader(browser, shop_a) as tab:
        await tab.enter(person.subject)
        async for screen in screens_of_the_busy(tab, server):
            found += await violations(tab, screen)
    assert not found, "\n".join(found)


async def test_axe_finds_nothing_before_there_is_anything(browser: Browser, shop_b: World) -> None:
    found: list[str] = []
    async with reader(browser, shop_b) as tab:
        async for screen in screens_of_others(tab, shop_b):
            found += await violations(tab, screen)
        # The pass is only here.
        await tab.go("/money")
        await expect(tab.heading("Connect pass")).to_be_visible()
        found += await violations(tab, "money with the pass")
    assert not found, "\n".join(found)


async def test_axe_finds_nothing_in_the_list_of_settings_on_a_phone(
    browser: Browser, shop_a: World
) -> None:
    person = await shop_a.service.sign_in()
    async with reader(browser, shop_a, **PHONE) as tab:
        await tab.enter(person.subject)
        await tab.go("/settings")
        await expect(tab.link("Sessions")).to_be_visible()
        found = await tab.page.evaluate(RUN_AXE, {"type": "tag", "values": TAGS})
        found += await tab.page.evaluate(TOO_WIDE)
    assert not found, "\n".join(found)


async def test_axe_finds_nothing_on_the_screens_of_a_company(
    browser: Browser, shop_a: World
) -> None:
    found: list[str] = []
    mine, theirs = await Company.create(shop_a.service), await Company.create(shop_a.service)
    await mine.join(approver=True)
    await mine.invite("grace@example.com")
    link = (await theirs.invite(f"{mine.owner.subject}@example.test")).json()["url"]
    async with reader(browser, shop_a) as tab:
        await tab.enter(mine.owner.subject)
        async for screen in screens_of_a_company(tab, mine.id, link):
            found += await violations(tab, screen)
    assert not found, "\n".join(found)
