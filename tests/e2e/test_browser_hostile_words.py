"""Texts of others in the catalog, in links, in messages of errors and in what is copied."""

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, Error, Route, expect

from tests.e2e import scenes
from tests.e2e.hostile import CONTENTS, HTML
from tests.e2e.reader import check, chunks, joined, reader, show_all
from tests.e2e.scenes import Task
from tests.plans.world import World

# Elements that contents could become, and their attributes.
PLANTED: tuple[tuple[str, dict[str, str]], ...] = (
    ("img", {"src": "https://evil.example/x.png"}),
    ("iframe", {"src": "https://evil.example/"}),
    ("link", {"rel": "stylesheet", "href": "https://evil.example/x.css"}),
    ("a", {"href": "javascript:alert(1)"}),
    ("p", {"style": "position: fixed"}),
    ("style", {}),
)
PLANT = """([name, attributes]) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    document.body.append(element);
}"""
WIDE = """() => {
    const wide = document.createElement('p');
    wide.style.whiteSpace = 'nowrap';
    wide.append('A'.repeat(5000));
    document.body.append(wide);
}"""


async def test_the_contents_are_many_and_a_page_that_used_one_would_be_found(
    browser: Browser, shop_a: World
) -> None:
    assert len(set(CONTENTS)) == len(CONTENTS) >= 150
    person = await shop_a.service.sign_in()
    async with reader(browser, shop_a, person) as tab:
        await expect(tab.heading(re.compile("Nothing needs your decision yet"))).to_be_visible()
        await check(tab, "a page without contents")
        for planted in PLANTED:
            await tab.page.evaluate(PLANT, planted)
            with pytest.raises(AssertionError):
                await check(tab, planted[0])
            await tab.page.evaluate("document.body.lastElementChild.remove()")
            tab.errors.clear()
        await tab.page.evaluate(WIDE)
        with pytest.raises(AssertionError, match="too wide"):
            await check(tab, "a long word")
        await tab.page.evaluate("document.body.lastElementChild.remove()")
        await tab.page.evaluate("alert(1)")
        with pytest.raises(AssertionError, match="a content ran"):
            await check(tab, "a script")
        # The policy of the page refuses text as HTML, wherever it comes from.
        refused = "document.body.insertAdjacentHTML('beforeend', '<b>x</b>')"
        with pytest.raises(Error, match="TrustedHTML"):
            await tab.page.evaluate(refused)
        tab.errors.clear()
        tab.requests.clear()


INSERT_VERSIONS = """
    INSERT INTO agent_versions
        (name, version, display_name, description, department, tier, tags, aliases, premium,
         required_tier, model, tools, approval, budget_cents, max_steps, instructions,
         content_hash, use_for, initials)
    SELECT 'hostile-' || number, version, left(text, 300), text, left(text, 100), 1,
           ARRAY[left(text, 60)], ARRAY[left(text, 60)], false, required_tier, model,
           ARRAY['helpdesk/' || left(text, 60), left(text, 60) || '/x'], approval, 10, 5,
           text || version, '', ARRAY[left(text, 300)], left(text, 2)
    FROM unnest($1::text[]) WITH ORDINALITY AS given (text, number),
         generate_series(1, 2) AS version,
         (SELECT required_tier, model, approval FROM current_agents ORDER BY name LIMIT 1) AS known
"""
INSERT_AGENTS = """
    INSERT INTO agents (name, version)
    SELECT 'hostile-' || number, 2 FROM generate_series(1, $1::int) AS number
"""
INSERT_TERMS = """
    INSERT INTO agent_terms (term, name, strength)
    SELECT 'hostile', name, 1 FROM agents WHERE name LIKE 'hostile-%'
"""


@asynccontextmanager
async def catalog(world: World, texts: list[str]) -> AsyncIterator[None]:
    """The catalog with one more agent for each text."""
    async with world.service.owner() as connection:
        await connection.execute(INSERT_VERSIONS, texts)
        await connection.execute(INSERT_AGENTS, len(texts))
        await connection.execute(INSERT_TERMS)
        try:
            yield
        finally:
            for table in ("agent_terms", "agents", "agent_versions"):
                await connection.execute(f"DELETE FROM {table} WHERE name LIKE 'hostile-%'")


async def test_texts_of_agents_run_nothing(browser: Browser, shop_a: World) -> None:
    person = await shop_a.service.sign_in()
    whole = [joined(texts, number) for number, texts in enumerate(chunks(100))]
    texts = [text[:2_000] for text in CONTENTS]
    async with catalog(shop_a, [*whole, *texts]), reader(browser, shop_a, person) as tab:
        for path in ("/agents", "/agents?q=hostile", "/new?agent=hostile-5"):
            await tab.go(path)
            await expect(tab.page.get_by_text("<script>").first).to_be_visible()
            await check(tab, path)
        for number in (1, 2):
            await tab.go(f"/agents/hostile-{number}")
            await expect(tab.page.locator(".agent-grid div.prose")).to_be_visible()
            await show_all(tab)
            await check(tab, "an agent")
            await tab.page.get_by_role("tab", name="Versions").click()
            await expect(tab.page.locator(".line-diff").first).to_be_visible()
            await check(tab, "versions of an agent")


# What a link can put in a search.
ASKED = [text[:120] for text in CONTENTS[::16] if text.strip()]
SEARCHES = (
    '{"__proto__": {"polluted": true}}',
    '["<script>alert(1)</script>"]',
    "a&__proto__[polluted]=1&__proto__.polluted=1",
    "null",
)


async def test_searches_in_links_run_nothing(browser: Browser, shop_a: World) -> None:
    person = await shop_a.service.sign_in()
    await scenes.write(person, *[Task("COMPLETED", name=text[:1_000]) for text in HTML])
    asked = [quote(text, safe="") for text in (*ASKED, "\x00" + "A" * 100)] + [
        quote(text, safe="&=[]") for text in SEARCHES
    ]
    screens = [("tasks", "Search tasks"), ("agents", "Search by name or work")]
    async with reader(browser, shop_a, person) as tab:
        tab.expect_error("status of 400")
        for number, q in enumerate(asked):
            screen, label = screens[number % 2]
            await tab.go(f"/{screen}?q={q}")
            await expect(tab.page.get_by_label(label)).to_be_visible()
            busy = tab.page.locator("main :is(.empty[role=status], [aria-busy=true])")
            await expect(busy).to_have_count(0)
            await check(tab, f"{screen}?q={q}")
        work = joined(CONTENTS[:60], 0)
        await tab.go(f"/new?text={quote(work, safe='')}")
        await expect(tab.page.get_by_role("textbox").first).to_have_value(work)
        await check(tab, "a new task")
        await tab.go("/new/many")
        await tab.page.get_by_role("textbox").fill("\n".join(CONTENTS[:40]))
        await expect(tab.page.get_by_role("table").get_by_role("row").nth(10)).to_be_visible()
        await check(tab, "many tasks")


async def test_messages_of_errors_run_nothing(browser: Browser, shop_a: World) -> None:
    person = await shop_a.service.sign_in()
    waiting = Task("WAITING_APPROVAL", gate="run")
    await scenes.write(person, waiting)
    message = "\u202e" + joined([text[:1_000] for text in CONTENTS], 0)

    async def refuse(route: Route) -> None:
        fields = [{"field": text[:100], "message": text[:300]} for text in CONTENTS[::9]]
        error = {"code": "INVALID", "message": message, "details": fields}
        await route.fulfill(
            status=400,
            headers={"X-Request-Id": "<img src=x onerror=alert(1)>" + "A" * 300},
            json={"error": error},
        )

    async with reader(browser, shop_a, person) as tab:
        tab.expect_error("status of 4")
        # The service's own words about a link that leads nowhere.
        for place in ("tasks", "reviews", "agents", "servers", "settings"):
            for text in ("\u202e<img src=x onerror=alert(1)>%", "A" * 200):
                await tab.go(f"/{place}/{quote(text, safe='')}")
                await expect(tab.page.locator("main :is(h1, [role=alert])").first).to_be_visible()
                await check(tab, f"/{place}/{text[:40]}")
        # A toast.
        await tab.go(f"/reviews/{waiting.wire}")
        await tab.page.route("**/snooze", refuse)
        await tab.press("Not now")
        await tab.page.get_by_role("menu", name="Not now").get_by_role("menuitem").first.click()
        await expect(tab.page.locator(".toast .hidden-mark").first).to_be_attached()
        await check(tab, "a toast")
        # The message of a whole page, of a part of it, and of the service as a whole.
        # A build shortens the names of classes.
        tab.expect_error("^\\w+: \u202e")
        for pattern, path in (
            ("**/api/agents/catalog*", "/agents"),
            (f"**/api/tasks/{waiting.wire}", f"/tasks/{waiting.wire}"),
            ("**/api/me", "/money"),
        ):
            await tab.page.route(pattern, refuse)
            await tab.go(path)
            await expect(
                tab.page.get_by_role("alert").locator(".hidden-mark").first
            ).to_be_visible()
            await expect(tab.page.get_by_role("alert").get_by_text("Request")).to_be_visible()
            await check(tab, f"the error of {path}")
            await tab.page.unroute(pattern)


# Prints the body that curl would send. Everything else in the command is left to the shell.
CURL = """
curl() { while [ "$1" != -d ]; do shift; done; printf %s "$2"; }
uuidgen() { echo 1; }
"""
HTTPX = """
import json
class Response:
    def raise_for_status(self): pass
    def json(self): return {"task": {"id": ""}}
def post(url, headers, json):
    print(globals()["json"].dumps(json))
    return Response()
"""
SHELL = (
    """it's "x" $(touch ran) `touch ran` ${HOME} $HOME !! \\ \\' ' ; touch ran # \n$(touch ran)\\"""
)


async def test_what_is_copied_runs_nothing_in_a_shell_or_in_python(
    browser: Browser, shop_a: World, tmp_path: Path
) -> None:
    person = await shop_a.service.sign_in()
    texts = [SHELL, *[text for text in CONTENTS if text.strip()][:60], joined(CONTENTS[130:], 1)]
    name = " ".join(texts)[:1_000]
    task = Task("COMPLETED", name=SHELL + name, input="\n".join(texts), description=name)
    await scenes.write(person, task)
    (tmp_path / "httpx.py").write_text(HTTPX)
    environment = {**os.environ, "ROTA_TOKEN": "x", "PYTHONPATH": str(tmp_path)}

    def output_of(*command: str) -> dict[str, str]:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, check=True, timeout=60
        )
        assert not done.stderr, done.stderr
        sent: dict[str, str] = json.JSONDecoder().raw_decode(done.stdout.decode())[0]
        return sent

    wanted = {
        "name": task.name,
        "agent": task.agent,
        "input": task.input,
        "description": task.description,
    }
    async with reader(browser, shop_a, person) as tab:
        await tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await tab.go(f"/tasks/{task.wire}")
        for kind in ("curl", "Python (httpx)"):
            await tab.select("Copy as", kind)
            await tab.says(f"Copied as {kind.split()[0]}")
            text = await tab.page.evaluate("navigator.clipboard.readText()")
            # Nothing in it is invisible, and nothing turns the direction of the rest.
            assert all(each.isprintable() or each == "\n" for each in text)
            if kind == "curl":
                assert output_of("bash", "-c", CURL + text) == wanted
            else:
                assert output_of(sys.executable, "-c", text) == wanted
            assert [each.name for each in tmp_path.iterdir() if each.name == "ran"] == []
