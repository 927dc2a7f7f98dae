"""Texts of others are shown as text. They run nothing, load nothing and do not break the page.

Each place shows many of the contents of tests/e2e/hostile.py at once. The policy of the page would
block a script as well, but a blocked script is an error here too: nothing is even tried.
"""

import re
from itertools import count
from typing import Any

import mcp_types
from playwright.async_api import Browser, expect

from rota.platform import ids
from tests.e2e import scenes
from tests.e2e.hostile import CONTENTS
from tests.e2e.reader import HEIGHT, WIDTHS, check, chunks, joined, reader, show_all
from tests.e2e.scenes import Task
from tests.mcp.conftest import connect
from tests.mcp.peers import Peer, definition
from tests.plans.world import World

MAX_TEXT = 50_000


def call(number: int, text: str) -> dict[str, Any]:
    """A call with the text in every place that a model or a tool server can write to."""
    arguments = {
        "text": text,
        text[:200]: text[:2_000],
        "nested": {"__proto__": {"polluted": text}, text[:80]: [text[:500], {text[:40]: 1}]},
        "rows": [{"a": text[:300], text[:60]: "b"}, {"a": "c", text[:60]: text[:300]}],
        "choice": text[:300],
    }
    properties: dict[str, Any] = {
        name: {"title": text[:300], "description": text[:1_000]} for name in arguments
    }
    properties["choice"] |= {"type": "string", "enum": [text[:300], "other"]}
    return scenes.call(
        number,
        arguments,
        schema={"type": "object", "properties": properties, "required": ["text"]},
        tool=text[:120],
        toolTitle=text[:300],
        toolDescription=text[:5_000],
        server=text[:100],
        serverUrl=f"https://evil.example/{text}"[:2_000],
        agentSays=text[:2_000],
        reason=text[:500],
        annotations={"title": text[:300], "readOnlyHint": text[:20]},
    )


async def test_texts_of_tasks_run_nothing_on_any_screen_of_tasks(
    browser: Browser, shop_a: World
) -> None:
    person = await shop_a.service.sign_in()
    ended = [
        Task(
            "COMPLETED",
            name=texts[0][:1_000],
            description=joined(texts, number),
            input=joined(texts, number),
            output=joined(texts, number),
            actions=[text[:2_000] for text in texts],
            rejected=[text[:2_000] for text in texts],
            calls=[(text[:200], text[:100], {text[:200]: text}, {"text": text}) for text in texts],
        )
        for number, texts in enumerate(chunks(100))
    ]
    ended += [
        Task(
            "FAILED",
            name=texts[0][:1_000],
            input=joined(texts, number),
            output=joined(texts, number),
            error={"code": texts[1][:100], "message": joined(texts, number), "retryable": True},
        )
        for number, texts in enumerate(chunks(100))
    ]
    named = [Task("CANCELLED", name=text[:1_000], agent=text[:255]) for text in CONTENTS]
    await scenes.write(person, *named, *ended)
    async with reader(browser, shop_a, person) as tab:
        await tab.go("/tasks")
        await expect(tab.page.get_by_role("row").nth(5)).to_be_visible()
        for width in WIDTHS:
            await tab.page.set_viewport_size({"width": width, "height": HEIGHT})
            height = await tab.page.evaluate("document.documentElement.scrollHeight")
            for top in range(0, height, HEIGHT):
                await tab.page.evaluate("(top) => scrollTo(0, top)", top)
                await check(tab, f"the list of tasks at {top}", [width])
        for task in ended:
            await tab.go(f"/tasks/{task.wire}")
            await expect(tab.page.get_by_role("tab", name="Timeline")).to_be_visible()
            await expect(tab.page.locator(".output div.prose")).to_be_visible()
            await show_all(tab)
            await check(tab, f"task {task.name[:40]}")
            for name in ("Input", "Reviews", "Raw steps") if task.calls else ():
                await tab.page.get_by_role("tab", name=name).click()
                await expect(tab.page.get_by_role("tab", name=name, selected=True)).to_be_visible()
                await show_all(tab)
                await check(tab, f"{name} of task {task.name[:40]}")


async def test_texts_in_reviews_run_nothing_in_the_inbox_and_on_any_gate(
    browser: Browser, shop_a: World
) -> None:
    person = await shop_a.service.sign_in()
    numbers = count()
    tools = [
        Task(
            "WAITING_APPROVAL",
            name=texts[0][:1_000],
            gate="tool",
            items=[call(next(numbers), text) for text in texts],
        )
        for texts in chunks(40)
    ]
    others = [
        Task(
            "WAITING_APPROVAL",
            name=text[:1_000],
            agent=None if gate == "external" else scenes.AGENT,
            description=joined(texts, number),
            input=joined(texts, number),
            output=joined(texts, number),
            gate=gate,
            rejected=[text[:2_000] for text in texts] if gate == "run" else [],
            items=[scenes.output_item(joined(texts, number))] if gate == "output" else [],
        )
        for gate in ("run", "output", "external")
        for number, texts in enumerate(chunks(100))
        for text in texts[:1]
    ]
    cards = [Task("WAITING_APPROVAL", name=text[:1_000], gate="run") for text in CONTENTS]
    await scenes.write(person, *others, *tools, *cards)
    async with reader(browser, shop_a, person) as tab:
        await expect(tab.page.get_by_role("checkbox").nth(len(CONTENTS))).to_be_attached()
        await expect(tab.button("Reject")).to_be_visible()
        await check(tab, "the inbox")
        for task in (*tools, *others):
            await tab.go(f"/reviews/{task.wire}")
            await expect(tab.button("Reject")).to_be_visible()
            await show_all(tab)
            await check(tab, f"the {task.gate} gate of {task.name[:40]}")
        [turned] = [
            task for task in tools if any("\u202e" in i["arguments"]["text"] for i in task.items)
        ]
        await tab.go(f"/reviews/{turned.wire}")
        marks = tab.page.locator(".hidden-mark", has_text="U+202E")
        await expect(marks.first).to_be_attached()


async def test_texts_of_tool_servers_run_nothing(browser: Browser, shop_a: World) -> None:
    person = await shop_a.service.sign_in()
    groups = chunks(10)

    def offered(last: str) -> dict[str, mcp_types.Tool]:
        return {
            f"tool_{number}": definition(
                f"tool_{number}",
                joined(texts, number)[:8_000] + last,
                properties={
                    f"field_{at}": {
                        "type": "string",
                        "title": text[:200],
                        "description": text[:800],
                    }
                    for at, text in enumerate(texts)
                },
            )
            for number, texts in enumerate(groups)
        }

    async with Peer().serve() as peer, reader(browser, shop_a, person) as tab:
        peer.tools = offered("")
        server = await connect(person, peer.url, "peer")
        await tab.go(f"/servers/{server['id']}")
        await expect(tab.page.locator("summary").first).to_be_visible()
        await show_all(tab)
        await check(tab, "the tools of a server")
        peer.tools = offered("\n\nchanged")
        await person.post(f"/api/mcp/{server['id']}/ping")
        async with shop_a.service.owner() as connection:
            await connection.execute(
                "UPDATE mcp_servers SET last_error = $2, url = $3 WHERE account_id = $1",
                person.user_id,
                joined(groups[1], 1)[:2_000],
                "https://evil.example/" + "<script>alert(1)</script>" * 20,
            )
        await tab.go(f"/servers/{server['id']}")
        await expect(tab.heading(re.compile("tools changed"))).to_be_visible()
        await check(tab, "changed tools of a server")
        await tab.go("/servers")
        await expect(tab.page.get_by_role("row").nth(1)).to_be_visible()
        await check(tab, "the list of servers")


INSERT_KEYS = """
    INSERT INTO api_keys
        (account_id, id, user_id, name, prefix, secret_hash, scopes, created_by_name)
    SELECT $1, gen_random_uuid(), $1, name, 'rota_', decode(md5(name), 'hex'), '{tasks:read}', name
    FROM unnest($2::text[]) AS given (name)
"""
INSERT_SESSIONS = """
    UPDATE sessions SET device = $2, address = $3 WHERE user_id = $1
"""
INSERT_COMPANIES = """
    WITH company AS (
        INSERT INTO accounts (id, kind, name)
        SELECT gen_random_uuid(), 'company', name FROM unnest($2::text[]) AS given (name)
        RETURNING id
    )
    INSERT INTO members (account_id, user_id, role) SELECT id, $1, 'owner' FROM company
"""


async def test_names_of_people_accounts_keys_and_devices_run_nothing(
    browser: Browser, shop_a: World
) -> None:
    person = await shop_a.service.sign_in()
    for text in CONTENTS[::12]:
        response = await person.post("/api/keys", {"name": text[:100], "scopes": ["tasks:read"]})
        assert response.status_code in (201, 400)
    await shop_a.service.sign_in(person.subject)
    async with shop_a.service.owner() as connection:
        await connection.execute(INSERT_KEYS, person.user_id, [t[:1_000] for t in CONTENTS])
        await connection.execute(
            INSERT_COMPANIES, person.user_id, [t[:1_000] for t in CONTENTS[::4]]
        )
    own = ids.to_wire("acct", person.user_id)
    async with reader(browser, shop_a, person) as tab:
        for number, texts in enumerate(chunks(100)):
            async with shop_a.service.owner() as connection:
                await connection.execute(
                    INSERT_SESSIONS, person.user_id, joined(texts, number)[:2_000], texts[0][:60]
                )
                for table in ("users", "accounts"):
                    await connection.execute(
                        f"UPDATE {table} SET name = $2 WHERE id = $1",
                        person.user_id,
                        texts[-1][:1_000],
                    )
            for section in ("profile", "sessions", "keys"):
                await tab.page.goto(f"/{own}/settings/{section}")
                await expect(tab.page.get_by_role("heading", level=2).first).to_be_visible()
                await expect(tab.page.locator("main .card").first).to_be_visible()
                await check(tab, f"{section} with {texts[-1][:40]}")
            await tab.page.goto(f"/{own}/agents")
            await tab.press(re.compile("Account and settings$"))
            await check(tab, f"the menu with {texts[-1][:40]}")


async def test_names_of_tasks_run_nothing_where_money_moves(
    browser: Browser, shop_a: World
) -> None:
    person = await shop_a.service.sign_in()
    await shop_a.buy(person, "advanced")
    refused = 0
    for texts in chunks(4, [text for text in CONTENTS if text.strip()]):
        body = {
            "name": " ".join(texts)[:1_000],
            "description": "\n".join(texts)[:MAX_TEXT],
            "input": "\n".join(texts)[:MAX_TEXT],
            "agent": "meeting-scribe",
        }
        status = (await person.post("/api/tasks", body)).status_code
        assert status in (201, 400, 402), status
        refused += status == 400
    assert refused <= 1
    async with reader(browser, shop_a, person) as tab:
        await tab.go("/money")
        await expect(tab.page.get_by_role("table", name="Transactions")).to_be_visible()
        await tab.button(re.compile("^Show all")).first.click()
        await check(tab, "money")
