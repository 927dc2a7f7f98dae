"""Changes of API keys and sessions append events in the same transaction."""

from typing import Any

from tests.service import Service
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
