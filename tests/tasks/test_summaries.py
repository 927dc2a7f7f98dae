"""Summaries: one sentence about what waits, made by rule, also from hostile arguments."""

import json
from typing import Any

import pytest

from rota.platform.canonical import canonical_json, digest
from tests.agents.conftest import counted_statements
from tests.service import Person, Service
from tests.tasks.world import AGENT, create, item, newcomer, place, uuid_of

REPLY = "Reply to ticket {ticketId} and mark it as {status}"


def call(arguments: dict[str, Any], number: int = 0, **fields: Any) -> dict[str, Any]:
    sealed = canonical_json({"arguments": arguments})
    return {
        **item(f"item-{number}", "tool"),
        "tool": "reply_to_ticket",
        "server": "helpdesk",
        "arguments": arguments,
        "argumentsSchema": None,
        "sealed": sealed,
        "digest": digest(sealed),
        **fields,
    }


async def waits(
    board: Service, person: Person, *items: dict[str, Any], gate: str = "tool", **task_fields: Any
) -> str:
    """The path of a task that waits for a decision about these items."""
    task = await create(person, agent=AGENT, **task_fields)
    async with board.owner() as connection:
        await place(connection, task, "WAITING_APPROVAL", gate)
        await connection.execute(
            "UPDATE reviews SET items = $2 WHERE task_id = $1", uuid_of(task), json.dumps(items)
        )
    return f"/api/tasks/{task['id']}"


async def review_of(person: Person, path: str) -> dict[str, Any]:
    response = await person.get(f"{path}/review")
    assert response.status_code == 200, response.text
    review: dict[str, Any] = response.json()["review"]
    return review


async def summary(board: Service, arguments: dict[str, Any], **fields: Any) -> str:
    person = await newcomer(board)
    review = await review_of(person, await waits(board, person, call(arguments, **fields)))
    [shown] = review["items"]
    assert review["summary"] == shown["summary"]
    assert "describe" not in shown
    text: str = shown["summary"]
    assert 0 < len(text) <= 200
    return text


TICKET = {"ticketId": "T-17", "status": "solved", "body": "x" * 2_340}

SENTENCES: list[tuple[dict[str, Any], str | None, str]] = [
    (TICKET, REPLY, "Reply to ticket T-17 and mark it as solved"),
    # Short values come before those that are counted.
    (TICKET, None, "Reply to ticket (status: solved, ticketId: T-17, body: 2,340 characters)"),
    # An argument that is absent or null.
    ({"ticketId": 5}, REPLY, "Reply to ticket (ticketId: 5)"),
    ({"ticketId": 5, "status": None}, REPLY, "Reply to ticket (status: none, ticketId: 5)"),
    ({"ticketId": 5}, "Reply to {ticketId.name}", "Reply to ticket (ticketId: 5)"),
    ({}, None, "Reply to ticket"),
    # Nested fields and lengths.
    (
        {"customer": {"name": "Ada Lovelace"}, "invoices": [{}] * 6, "text": "äöü"},
        "Send {invoices.length} invoices and {text.length} letters to {customer.name}",
        "Send 6 invoices and 3 letters to “Ada Lovelace”",
    ),
    ({"box": {"length": 30}}, "Ship {box.length} cm", "Ship 30 cm"),
    # Sums are exact. A list with anything else than numbers has none.
    (
        {"invoices": [{"amount": 1240.0}, {"amount": 860.5}, {"amount": 0.1}, {"amount": 0.2}]},
        "Pay ${invoices.amount.sum}",
        "Pay $2,100.80",
    ),
    ({"rows": [{"n": 900}, {"n": 900}]}, "Book {rows.n.sum}", "Book 1,800"),
    ({"rows": [{"n": 0.125}, {"n": 1}]}, "Book {rows.n.sum}", "Book 1.125"),
    ({"rows": []}, "Book {rows.n.sum}", "Book 0"),
    ({"rows": [{"n": "9"}]}, "Book {rows.n.sum}", "Reply to ticket (1 row)"),
    ({"rows": [{"n": True}, {}]}, "Book {rows.n.sum}", "Reply to ticket (2 rows)"),
    ({"rows": [{"n": 1e300}]}, "Book {rows.n.sum}", "Reply to ticket (1 row)"),
    ({"rows": {"sum": 5}}, "Book {rows.sum}", "Book 5"),
    ({"invoices": [{}], "box": {"a": 1}}, "Ship {invoices}, {box}", "Ship 1 invoice, 1 field"),
    ({"invoices": [{}] * 6}, None, "Reply to ticket (6 invoices)"),
    ({"customer": {"a": 1, "b": 2}}, None, "Reply to ticket (customer: 2 fields)"),
    ({"to": ["a@b.de", "c@d.de"]}, "Send to {to}", "Send to a@b.de and c@d.de"),
    ({"to": ["x"] * 4}, "Send to {to}", "Send to 4 to"),
    ({"ok": True, "amount": -1.5}, "{ok}: pay {amount}", "true: pay -1.5"),
    # Values are only values.
    (
        {"ticketId": "{status}", "status": "{ticketId} {x} {0} {status.__class__}"},
        REPLY,
        "Reply to ticket “{status}” and mark it as “{ticketId} {x} {0} {status.__class__}”",
    ),
    (
        {"ticketId": "7” and do nothing else. “", "status": "solved"},
        REPLY,
        'Reply to ticket “7" and do nothing else. "” and mark it as solved',
    ),
    (
        {"ticketId": "7\n\n\tand  \u2028 more", "status": "a\u202eb\u200bc\u00ad\U000e0041"},
        REPLY,
        "Reply to ticket “7 and more” and mark it as “a⟨U+202E⟩b⟨U+200B⟩c⟨U+00AD⟩⟨U+E0041⟩”",
    ),
    ({"status\u202e": "\u3164"}, None, "Reply to ticket (“status⟨U+202E⟩”: “⟨U+3164⟩”)"),
    ({"body": "y" * 50_000}, None, "Reply to ticket (body: 50,000 characters)"),
    ({"body": "y" * 50_000}, "Say {body}", "Say “" + "y" * 79 + "…”"),
]


@pytest.mark.parametrize(("arguments", "template", "sentence"), SENTENCES)
async def test_a_summary_is_made_by_rule_from_template_and_arguments(
    board: Service, arguments: dict[str, Any], template: str | None, sentence: str
) -> None:
    assert await summary(board, arguments, describe=template) == sentence


async def test_a_summary_never_has_more_than_200_characters(board: Service) -> None:
    long = {f"argument{number}": "\u202e" * 50_000 for number in range(5)}
    template = " and ".join("{" + name + "}" for name in long)
    text = await summary(board, long, describe=template)
    assert text.count("⟨U+202E⟩") >= 5
    many = {f"a{number}": number for number in range(5_000)}
    assert (await summary(board, many)).endswith("more)")
    nested = {"x" * 50_000: {"y": ["z"] * 10_000}}
    assert (await summary(board, nested)).endswith("…”: 1 field)")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"toolTitle": "Answer a customer"}, "Answer a customer (ticketId: 5)"),
        ({"toolTitle": "Read\u202e only"}, "Read⟨U+202E⟩ only (ticketId: 5)"),
        ({"toolTitle": " "}, "Reply to ticket (ticketId: 5)"),
        ({"tool": "createDraftBill"}, "Create draft bill (ticketId: 5)"),
        ({"tool": "send-PDF.now"}, "Send PDF now (ticketId: 5)"),
        ({"tool": "ask_person", "server": None}, "Answer a question"),
        ({"tool": "ask_person"}, "Ask person (ticketId: 5)"),
    ],
)
async def test_without_a_template_the_title_or_the_name_of_the_tool_is_shown(
    board: Service, fields: dict[str, Any], sentence: str
) -> None:
    assert await summary(board, {"ticketId": 5}, **fields) == sentence


async def test_edited_arguments_give_a_new_summary(board: Service) -> None:
    person = await newcomer(board)
    path = await waits(board, person, call(TICKET, describe=REPLY), call(TICKET, 1))
    edited = TICKET | {"status": "open"}
    body = {"decisions": [{"id": "item-0", "arguments": edited}]}
    response = (await person.post(f"{path}/approve", body)).json()
    sentence = "Reply to ticket T-17 and mark it as open"
    assert response["review"]["items"][0]["summary"] == sentence
    review = await review_of(person, path)
    assert review["items"][0]["summary"] == sentence
    assert review["summary"].startswith(f"2 calls: {sentence}; Reply to ticket (status: solved")


async def test_a_review_as_a_whole_has_a_summary_at_every_gate(board: Service) -> None:
    person = await newcomer(board)
    run = await create(person, agent=AGENT, status="WAITING_APPROVAL", name="Sort the\u202e bugs")
    review = await review_of(person, f"/api/tasks/{run['id']}")
    most = review["work"]["budgetCents"] / 100
    assert review["summary"] == (
        f"Start the task “Sort the⟨U+202E⟩ bugs”, which can cost at most ${most:.2f}"
    )
    external = await create(person, status="WAITING_APPROVAL", name="Import")
    review = await review_of(person, f"/api/tasks/{external['id']}")
    assert review["summary"] == "Approve the task Import"
    output = await waits(
        board, person, item("item-0", "output"), gate="output", name="Sort the bugs"
    )
    review = await review_of(person, output)
    assert review["summary"] == "Accept the result of “Sort the bugs”"
    assert review["items"][0]["summary"] == "Accept the result"
    none = await create(person)
    assert (await review_of(person, f"/api/tasks/{none['id']}"))["summary"] is None


async def test_a_page_of_approvals_takes_few_statements_however_many_wait(
    board: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await newcomer(board)
    path = await waits(board, person, call(TICKET, describe=REPLY))
    counts = []
    for copies in (0, 199):
        async with board.owner() as connection:
            await copy_waiting_task(connection, path, copies)
        with counted_statements(monkeypatch) as statements:
            response = await person.get("/api/approvals", params={"limit": 100})
        found = response.json()
        assert found["total"] == 1 + copies
        assert len(found["approvals"]) == min(100, 1 + copies)
        assert found["approvals"][-1]["review"]["summary"] == (
            "Reply to ticket T-17 and mark it as solved"
        )
        read = [text for text in statements if "review" in text or "FROM tasks" in text]
        counts.append((len(read), sum("mcp_tools" in text for text in statements)))
    # A page of ids, the tasks, the reviews and what is put off. These tools have no definitions.
    assert counts[0] == counts[1] == (4, 0)


async def copy_waiting_task(connection: Any, path: str, copies: int) -> None:
    task = uuid_of({"id": path.rpartition("/")[2]})
    for table, key in (("tasks", "id"), ("reviews", "task_id")):
        await connection.execute(
            f"""
            INSERT INTO {table} SELECT (jsonb_populate_record(t, jsonb_build_object(
                '{key}', (left(t.{key}::text, 24) || lpad(n::text, 12, '0'))::uuid))).*
            FROM {table} t, generate_series(1, $2) AS n WHERE t.{key} = $1
            """,
            task,
            copies,
        )
