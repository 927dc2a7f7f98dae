"""Tasks in a real browser: retries that do what they say, and a list of ten thousand."""

import os
from typing import Any
from uuid import uuid4

import pytest
from playwright.async_api import Route, expect

from rota.platform import ids
from tests.e2e.browser import Tab
from tests.e2e.office import Colleague, Office

ROWS = 10_000
MAX_NODES = 2_000
# The long form looks at every row. The short one looks at the start, the end and between.
EVERY_ROW = bool(os.environ.get("ROTA_TEST_BROWSER_LONG"))


async def failed_after_its_call(office: Office, person: Colleague) -> tuple[dict[str, Any], str]:
    """A task whose approved call was made and whose model fails after it."""
    mark = f"M{uuid4().hex}"
    task = await office.ticket(person, input=f"Reply to ticket T-4821. {mark}")
    office.demo.refuses.add(mark)
    await office.runner.approve(person, task)
    await office.runner.until(person, task, "FAILED")
    return task, mark


async def test_a_fork_shows_what_it_took_and_stands_beside_its_original(
    tab: Tab, office: Office
) -> None:
    [person] = await office.company()
    mark = f"M{uuid4().hex}"
    text = f"Reply to ticket T-4821. {mark}"
    task = await office.begin(person, input=text, status="WAITING_APPROVAL")
    for gate in ("run", "tool"):
        await office.runner.waiting(person, task, gate)
        await office.runner.approve(person, task)
        await office.runner.until(person, task, "WAITING_APPROVAL", "RUNNING")
    await office.runner.waiting(person, task, "output")
    await tab.enter(person.subject, f"/{person.account}/tasks/{task['id']}")
    await tab.page.get_by_role("button", name="Fork from here").first.click()
    await expect(tab.dialog).to_contain_text("A person must approve each call that writes")
    await expect(tab.dialog).to_contain_text("will be held")
    await expect(tab.dialog.get_by_label("Agent version")).to_be_visible()
    await tab.press("Create fork", inside=tab.dialog)
    await expect(tab.link("Forked from another task")).to_be_visible()
    await expect(tab.page.get_by_text("copied", exact=True).first).to_be_visible()
    [fork] = [
        each
        for each in (await person.get("/api/tasks")).json()["tasks"]
        if each["forkedFrom"] is not None
    ]
    assert fork["forkedFrom"]["taskId"] == task["id"]
    # Who approves the run sees where it comes from.
    await tab.go(f"/reviews/{fork['id']}")
    await tab.sees(f"Another task after step {fork['forkedFrom']['step']} of run 1")
    await expect(tab.link("Another task")).to_have_attribute(
        "href", f"/{person.account}/tasks/{task['id']}"
    )
    office.demo.refuses.add(mark)
    await office.runner.approve(person, fork)
    await office.runner.until(person, fork, "FAILED")
    await tab.go(f"/tasks/{fork['id']}")
    await tab.link("Compare with original").click()
    columns = {
        name: tab.page.get_by_role("region", name=name, exact=True) for name in ("Original", "Fork")
    }
    await expect(columns["Original"]).to_contain_text("No output yet")
    await expect(columns["Fork"]).to_contain_text("The task failed")
    await expect(columns["Fork"]).to_contain_text("refused the request")
    await tab.sees(f"did after step {fork['forkedFrom']['step']}, including subtasks")
    # The original is counted from there on, and not from its start.
    steps, _ = await office.runner.timeline(person, task)
    after = [
        step
        for step in steps
        if step["kind"] == "model" and step["step"] > fork["forkedFrom"]["step"]
    ]
    assert 0 < len(after) < sum(step["kind"] == "model" for step in steps)
    calls = columns["Original"].locator(".fact").filter(has_text="Model calls")
    await expect(calls).to_contain_text(str(len(after)))
    office.demo.refuses.discard(mark)
    await office.runner.cancel(person, task)


async def test_a_fork_that_cannot_be_made_says_why(tab: Tab, office: Office) -> None:
    [person] = await office.company()
    task = await office.ticket(person)
    await tab.enter(person.subject, f"/{person.account}/tasks/{task['id']}")
    tab.expect_error("status of 40[0-9]")

    async def refuse(route: Route) -> None:
        error = {"code": "VALIDATION_ERROR", "message": "Not now, says the service."}
        await route.fulfill(status=400, json={"error": error})

    await tab.sees("Waits for you")
    await tab.page.route("**/fork", refuse)
    await tab.page.reload()
    await tab.press("Fork")
    await expect(tab.dialog).to_contain_text("Not now, says the service.")
    await expect(tab.dialog.get_by_role("button", name="Create fork")).to_be_disabled()
    await tab.page.unroute("**/fork")
    async with office.service.owner() as connection:
        await connection.execute(
            "UPDATE balances SET allowance = 0, topup = 0 WHERE account_id = $1",
            ids.from_wire("acct", person.account),
        )
    await tab.page.reload()
    await tab.press("Fork")
    await expect(tab.dialog).to_contain_text("$0.00 is available")
    await tab.press("Create fork", inside=tab.dialog)
    # This service takes no payments, so it does not offer a top-up.
    refusal = tab.dialog.get_by_role("alert")
    await expect(refusal.get_by_role("link", name="See the balance")).to_be_visible()
    # A comparison whose steps cannot be read says so.
    await tab.page.route("**/timeline**", refuse)
    await tab.go(f"/compare/{task['id']}/{task['id']}")
    column = tab.page.get_by_role("region", name="Fork", exact=True)
    await expect(column.get_by_role("alert")).to_contain_text("Not now, says the service.")
    await office.runner.cancel(person, task)


@pytest.mark.parametrize("start", ["failure", "start"])
async def test_a_retry_does_what_its_quote_says(tab: Tab, office: Office, start: str) -> None:
    [person] = await office.company()
    task, mark = await failed_after_its_call(office, person)
    options = (await person.get(f"/api/tasks/{task['id']}/retry")).json()["retry"]["options"]
    [quoted] = [option for option in options if option["from"] == start]
    before, _ = await office.runner.timeline(person, task)
    await tab.enter(person.subject, f"/{person.account}/tasks/{task['id']}")
    await expect(tab.heading("The task failed")).to_be_visible()
    words = {"failure": "Retry from the failed step", "start": "Retry from the start"}[start]
    choice = tab.page.get_by_role("radio", name=words)
    await choice.check()
    shown = tab.page.locator("label").filter(has=choice)
    await expect(shown).to_contain_text(f"at most ${float(quoted['maximumCostUsd']):.2f} more")
    if start == "failure":
        await expect(shown).to_contain_text(f"Keeps {quoted['keptSteps']} finished steps")
        await expect(shown).to_contain_text("Repeats nothing")
    else:
        await expect(shown).to_contain_text(f"Repeats {quoted['repeatedSteps']} steps")
        await expect(shown).to_contain_text("before tool calls that need approval")
    await expect(shown).to_contain_text("before the result is final")
    office.demo.refuses.discard(mark)
    await tab.press(words)

    # The page follows the new run up to its first gate.
    await tab.sees("Run 2")
    await tab.sees("Waits for you")
    gate = {"failure": "output", "start": "tool"}[start]
    await office.runner.waiting(person, task, gate)
    if start == "start":
        await office.runner.approve(person, task)
        await office.runner.waiting(person, task, "output")
    await office.runner.approve(person, task)
    done = await office.runner.until(person, task, "COMPLETED")
    await expect(tab.page.locator("main").get_by_text("Completed").first).to_be_visible()
    after, _ = await office.runner.timeline(person, task)
    work = [step for step in after if step["kind"] in ("model", "tool")]
    kept = [step for step in before if step["kind"] in ("model", "tool") and ok(step)]
    new = [step for step in work if step.get("run", 2) == 2]
    assert len(kept) == quoted["keptSteps"] + quoted["repeatedSteps"]
    repeated = {step["name"] for step in new if step["kind"] == "tool"}
    assert repeated == (set() if start == "failure" else {"get_ticket", "reply_to_ticket"})
    assert float(done["usage"]["costUsd"]) <= float(quoted["maximumCostUsd"])


def ok(step: dict[str, Any]) -> bool:
    return step.get("outcome") == "ok"


INSERT = """
WITH made AS (
    INSERT INTO tasks (account_id, id, status, hosted, name, created_at, updated_at, started_at,
        finished_at, created_by, input)
    SELECT $1, (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint - $3 + n), 12, '0')
        || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid,
        'COMPLETED', false, 'Row ' || lpad(($3 - n)::text, 5, '0'), at, at, at, at, $2, ''
    FROM (
        SELECT n, now() - ($3 - n) * interval '1 second' AS at FROM generate_series(0, $3 - 1) AS n
    ) AS numbered
)
UPDATE account_heads SET completed = completed + $3 WHERE account_id = $1
"""

# Scrolls and waits for the rows. Returns what was in each row, and the most nodes at any time.
SCROLL = """
async ({ rows, every }) => {
  const names = {};
  let most = 0;
  const frame = () => new Promise(requestAnimationFrame);
  const body = document.querySelector('tbody');
  const height = body.getBoundingClientRect().height / rows;
  const top = body.getBoundingClientRect().top + scrollY;
  const step = Math.floor((innerHeight - 200) / height);
  const firsts = [];
  for (let row = 0; row < rows; row += step) {
    const index = firsts.length;
    firsts.push(row);
    if (!every && index >= 12 && row < rows - 6 * step) row += 39 * step;
  }
  firsts.push(rows - step);
  for (const first of firsts) {
    scrollTo(0, top + first * height - 120);
    const wanted = Array.from({ length: step }, (_, at) => Math.min(rows - 1, first + at));
    const deadline = performance.now() + 20_000;
    for (;;) {
      await frame();
      most = Math.max(most, document.querySelectorAll('*').length);
      const shown = new Map([...document.querySelectorAll('tr[data-index]')]
        .map((row) => [Number(row.dataset.index), row.querySelector('a').textContent]));
      if (wanted.every((row) => shown.has(row))) {
        for (const row of wanted) names[row] = shown.get(row);
        break;
      }
      if (performance.now() > deadline) throw new Error(`row ${first} did not appear`);
    }
  }
  return { names, most, screens: firsts.length };
}
"""


async def test_ten_thousand_tasks_scroll_from_top_to_bottom(
    tab: Tab, office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    [person] = await office.company(helpdesk="")
    account_id = ids.from_wire("acct", person.account)
    async with office.service.owner() as connection:
        # Nothing here searches, so the triggers that write the words of each task stay quiet.
        await connection.execute("SET session_replication_role = replica")
        await connection.execute(INSERT, account_id, person.user_id, ROWS)
    await tab.enter(person.subject, f"/{person.account}/tasks")
    await tab.sees("10,000 tasks")
    await expect(tab.link("Row 00001")).to_be_visible()
    result = await tab.page.evaluate(SCROLL, {"rows": ROWS, "every": EVERY_ROW})
    names = {int(row): name for row, name in result["names"].items()}
    with capsys.disabled():
        print(
            f"\n{len(names)} of {ROWS} rows looked at on {result['screens']} screens, "
            f"at most {result['most']} nodes"
        )
    wrong = {row: name for row, name in names.items() if name != f"Row {row + 1:05}"}
    assert not wrong
    assert {0, ROWS - 1} <= names.keys()
    assert len(names) == ROWS if EVERY_ROW else len(names) > 300
    assert result["most"] < MAX_NODES
