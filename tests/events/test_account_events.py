"""Changes of API keys and sessions append events in the same transaction."""

from typing import Any

from rota.platform import ids
from tests.auth.key_requests import company_of
from tests.events.reader import Reader
from tests.service import Person, Service
from tests.tasks.world import picture


async def events_of(board: Service, account_id: Any) -> list[tuple[str, Any]]:
    async with board.owner() as connection:
        rows = await connection.fetch(
            "SELECT type, data FROM events WHERE account_id = $1 ORDER BY sequence", account_id
        )
    return [(row["type"], row["data"]) for row in rows]


async def test_sessions_and_keys_append_events_when_they_are_created_and_revoked(
    board: Service,
) -> None:
    person = await board.sign_in()
    key = (await person.post("/api/keys", {"name": "robot"})).json()
    key_id = key["key"]["id"]
    assert (await person.delete(f"/api/keys/{key_id}")).status_code == 200
    assert (await person.delete(f"/api/keys/{key_id}")).status_code == 404
    await board.sign_in(person.subject)
    assert (await person.post("/api/auth/logout")).status_code == 200
    events = await events_of(board, person.user_id)
    assert [kind for kind, _ in events] == [
        "session.created",
        "key.created",
        "key.revoked",
        "session.created",
        "session.revoked",
    ]
    assert key_id in events[1][1]
    assert key_id in events[2][1]
    assert key["secret"] not in repr(events)
    # The session that ended is the first one, not the second.
    assert events[4][1] == events[0][1] != events[3][1]


async def test_a_refused_key_appends_no_event(board: Service) -> None:
    person = await board.sign_in()
    response = await person.post("/api/keys", {"name": "x", "expiresAt": "2001-01-01T00:00:00Z"})
    assert response.status_code == 400
    async with board.owner() as connection:
        seen = await picture(connection, person.user_id)
    assert [event["type"] for event in seen["events"]] == ["session.created"]


KINDS = (
    *("task.created", "credits.topped_up", "subscription.updated", "mcp.connected"),
    *("key.created", "session.created", "another.kind", "task.completed"),
)


async def seen_by(board: Service, token: str, account: str, last: int) -> set[str]:
    """The types of the events that a stream shows, up to the last one."""
    port = board.settings.port
    async with Reader.open(port, token, "/api/events", 0, account=account) as reader:
        await reader.until(last)
    return {message.type for message in reader.messages}


async def test_a_stream_shows_only_events_that_the_scopes_allow(board: Service) -> None:
    owner, member = await board.sign_in(), await board.sign_in()
    company = await company_of(board, owner, member=member)
    selected = {"X-Service-Account": company}

    async def key(person: Person, *scopes: str) -> str:
        body = {"name": "x", "scopes": ["tasks:read", *scopes]}
        secret: str = (await person.post("/api/keys", body, headers=selected)).json()["secret"]
        return secret

    keys = {
        await key(owner): {"task"},
        await key(owner, "mcp:read"): {"task", "mcp"},
        await key(owner, "billing:read"): {"task", "credits", "subscription"},
        await key(owner, "tasks:write", "tasks:approve", "mcp:invoke"): {"task"},
    }
    async with board.owner() as connection:
        account_id = ids.from_wire("acct", company)
        last = await connection.fetchval(
            "SELECT last_sequence FROM account_heads WHERE account_id = $1", account_id
        )
        for kind in KINDS:
            last += 1
            await connection.execute(
                "INSERT INTO events VALUES ($1, $2, $3, $4, NULL, '{}', now())",
                account_id,
                last,
                ids.new_uuid(),
                kind,
            )
    everything = {kind for kind in KINDS if kind != "another.kind"} | {"another.kind"}
    for token, families in keys.items():
        shown = await seen_by(board, token, company, last)
        assert {kind.partition(".")[0] for kind in shown} == families
    assert await seen_by(board, owner.token, company, last) == everything
    shown = await seen_by(board, member.token, company, last)
    assert shown == everything - {"key.created"}
