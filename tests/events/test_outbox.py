"""The outbox: instructions are written with a change, and only their account sees them."""

import json
from uuid import uuid4

import structlog

from rota.platform.db import Database
from tests.events.relaying import put
from tests.service import Service
from tests.tasks.world import AGENT, create, newcomer, picture, uuid_of


async def test_creating_a_hosted_task_writes_one_instruction_and_an_external_one_none(
    board: Service,
) -> None:
    person = await newcomer(board)
    await create(person)
    await create(person, agent=AGENT, status="COMPLETED")
    await create(person, agent=AGENT, status="WAITING_APPROVAL")
    hosted = await create(person, agent=AGENT)
    async with board.owner() as connection:
        seen = await picture(connection, person.user_id)
    [row] = seen["outbox"]
    assert (row["kind"], row["task_id"]) == ("run.start", uuid_of(hosted))
    assert json.loads(row["payload"])["run"] == 1


async def test_a_creation_that_is_rolled_back_leaves_no_instruction(board: Service) -> None:
    person = await newcomer(board)
    async with board.owner() as connection:
        # The last statement of the transaction fails.
        await connection.execute(
            f"""
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF NEW.account_id = '{person.user_id}' THEN RAISE 'refused'; END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER refuse AFTER INSERT ON idempotency_keys
                FOR EACH ROW EXECUTE FUNCTION refuse()
            """
        )
        headers = {"Idempotency-Key": "k"}
        with structlog.testing.capture_logs():
            response = await person.post(
                "/api/tasks", {"name": "x", "agent": AGENT}, headers=headers
            )
        await connection.execute("DROP TRIGGER refuse ON idempotency_keys; DROP FUNCTION refuse")
        assert response.status_code == 500
        assert response.json()["error"]["code"] == "DATABASE_ERROR"
        seen = await picture(connection, person.user_id)
    assert not any(seen[table] for table in ("tasks", "events", "outbox", "idempotency_keys"))


async def test_requests_see_only_their_own_account_in_the_outbox(
    board: Service, db: Database, kind: str
) -> None:
    account_id = await put(db, kind)
    count = "SELECT count(*) FROM outbox WHERE kind = $1"
    async with db.read(uuid4()) as tx:
        assert await tx.fetchval(count, kind) == 0
    async with db.read(account_id) as tx:
        assert await tx.fetchval(count, kind) == 1
