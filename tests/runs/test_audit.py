"""What runs do is in the audit trail: every transaction that changes something has an entry."""

from tests.audit import watch
from tests.audit.world import problems_of
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted, calls, delegates, says
from tests.service import WATCHED, Person
from tests.tasks.world import expire_reviews

REFUSED = {"status": 401, "error": {"message": "No such key.", "code": "invalid_api_key"}}


async def test_nothing_that_a_run_changes_is_missing(
    runner: Runner, scripted: Scripted, person: Person
) -> None:
    async with runner.service.owner() as connection:
        await watch.install(connection)
        script = await scripted.script(
            calls(("desk__send", {"ref": "watched-1"}), ("desk__lookup", {"ref": "watched-2"})),
            says("Done."),
        )
        gated = await runner.begin(person, "careful", script)
        await runner.waiting(person, gated, "tool")
        await runner.approve(person, gated)
        await runner.until(person, gated, "COMPLETED")
        failing = await scripted.script(REFUSED, says("Done."))
        failed = await runner.finish(person, "writer", failing, "FAILED")
        await runner.retry(person, failed, "failure")
        expiring = await runner.begin(person, "starter", script)
        await expire_reviews(connection, expiring)
        await runner.until(person, expiring, "CANCELLED")
        cancelled = await runner.begin(person, "starter", script)
        await runner.cancel(person, cancelled)
        child = await scripted.script(says("The part."))
        parent = await scripted.script(calls(delegates("writer", child)), says("Whole."))
        await runner.finish(person, "lead", parent)
        assert await watch.forgotten(connection) == []
        assert await problems_of(connection, person.user_id) == []
        rows = await connection.fetch(
            "SELECT DISTINCT actor, via FROM audit_entries WHERE account_id = $1", person.user_id
        )
        if not WATCHED:
            await watch.remove(connection)
    assert {row["actor"] for row in rows} == {"key", "agent", "service"}
    agents = {row["via"] for row in rows if row["actor"] == "agent"}
    assert gated["id"] in agents
