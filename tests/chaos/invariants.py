"""What must hold after any number of kills. Each check counts the rows that violate it."""

import json
from collections import Counter
from collections.abc import Collection

from rota.credits import verify
from rota.platform import ids
from rota.platform.db import Database
from tests.chaos.world import World

# Each query finds rows that must not exist.
MUST_BE_EMPTY = {
    "tasks that have not ended": """
        SELECT id, status FROM tasks WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')
    """,
    "tasks whose usage differs from their steps or charges": """
        SELECT t.id FROM tasks t LEFT JOIN steps s ON s.account_id = t.account_id
            AND s.task_id = t.id
        GROUP BY t.account_id, t.id, t.cost_micros, t.steps, t.input_tokens, t.output_tokens
        HAVING t.cost_micros <> coalesce((SELECT sum(e.spent) FROM entries e
                WHERE e.account_id = t.account_id AND e.task_id = t.id AND e.kind = 'charge'), 0)
            OR t.input_tokens <> coalesce(sum(s.input_tokens), 0)
            OR t.output_tokens <> coalesce(sum(s.output_tokens), 0)
            OR t.steps <> count(*) FILTER (
                WHERE s.kind = 'model' AND NOT s.copied AND s.state <> 'planned')
    """,
    "steps stored twice": """
        SELECT task_id FROM steps GROUP BY account_id, task_id, run, step, call HAVING count(*) > 1
    """,
    "steps without a result in completed tasks": """
        SELECT s.task_id FROM steps s JOIN tasks t ON t.account_id = s.account_id
            AND t.id = s.task_id
        WHERE t.status = 'COMPLETED' AND (s.state <> 'finished' OR s.result IS NULL)
    """,
    "failed reads in completed tasks": """
        SELECT s.task_id FROM steps s JOIN tasks t ON t.account_id = s.account_id
            AND t.id = s.task_id
        WHERE t.status = 'COMPLETED' AND s.kind = 'tool' AND s.read_only
          AND s.outcome IS DISTINCT FROM 'ok'
    """,
    "gaps in the sequence of events": """
        SELECT h.account_id FROM account_heads h
        LEFT JOIN events e ON e.account_id = h.account_id
        GROUP BY h.account_id, h.last_sequence
        HAVING count(e.sequence) <> h.last_sequence
            OR coalesce(max(e.sequence), 0) <> h.last_sequence
            OR coalesce(min(e.sequence), 1) <> 1
    """,
    "task totals that are wrong": """
        SELECT h.account_id FROM account_heads h
        LEFT JOIN tasks t ON t.account_id = h.account_id
        GROUP BY h.account_id
        HAVING (h.pending, h.running, h.completed, h.failed, h.cancelled, h.waiting_approval)
            IS DISTINCT FROM (
                count(t.id) FILTER (WHERE t.status = 'PENDING'),
                count(t.id) FILTER (WHERE t.status = 'RUNNING'),
                count(t.id) FILTER (WHERE t.status = 'COMPLETED'),
                count(t.id) FILTER (WHERE t.status = 'FAILED'),
                count(t.id) FILTER (WHERE t.status = 'CANCELLED'),
                count(t.id) FILTER (WHERE t.status = 'WAITING_APPROVAL'))
    """,
    # The periodic check of a run stays in the outbox until its next turn.
    "instructions still in the outbox": """
        SELECT kind, attempts FROM outbox WHERE kind <> 'run.check'
    """,
    "reviews still pending": "SELECT task_id FROM reviews WHERE state = 'pending'",
    "tasks that ended twice": """
        SELECT task_id FROM events
        WHERE type IN ('task.completed', 'task.failed', 'task.cancelled')
        GROUP BY account_id, task_id HAVING count(*) > 1
    """,
}


async def violations(world: World, acknowledged: Collection[str]) -> dict[str, int]:
    """How often each invariant is violated, by name. All must be 0."""
    found = {name: len(await world.query(sql)) for name, sql in MUST_BE_EMPTY.items()}
    rows = await world.query("SELECT id FROM tasks")
    stored = Counter(ids.to_wire("task", row["id"]) for row in rows)
    found["lost acknowledged tasks"] = len(set(acknowledged) - set(stored))
    found["tasks that were not acknowledged"] = len(set(stored) - set(acknowledged))
    found["problems in the ledger"] = await ledger_problems(world)
    return found | await _writes(world)


async def ledger_problems(world: World) -> int:
    """What the ledger check finds: missing or double charges, holds that stay open."""
    db = Database(world.service.database_url, pool_size=1)
    await db.open()
    try:
        return sum([len(p) async for p in verify.verify(db, await verify.account_ids(db))])
    finally:
        await db.close()


async def _writes(world: World) -> dict[str, int]:
    """Compares the calls of the write tool with the stored steps and the approvals."""
    answer = await world.scripted.http.get("/tool-calls")
    # The tool server can serve several services. A key starts with the task's ID.
    ours = {row["id"].hex for row in await world.query("SELECT id FROM tasks")}
    done = Counter(
        call["key"]
        for call in answer.json()
        if call["tool"] == "send" and call["key"].partition("-")[0] in ours
    )
    approved: Counter[str] = Counter()
    for row in await world.query("SELECT task_id, items::text FROM reviews"):
        for item in json.loads(row["items"]):
            if item["decision"] == "approved":
                approved[f"{row['task_id'].hex}-{item['id']}"] += 1
    rows = await world.query(
        """
        SELECT task_id, format('call-%s-%s-%s', run, step, call) AS item_id, outcome
        FROM steps WHERE name = 'send'
        """
    )
    stored = {f"{row['task_id'].hex}-{row['item_id']}": row["outcome"] for row in rows}
    return {
        "writes repeated without approval": sum(
            count > 1 + approved[key] for key, count in done.items()
        ),
        "writes without a step": len(set(done) - set(stored)),
        "steps of writes that did not happen": sum(
            outcome == "ok" and done[key] == 0 for key, outcome in stored.items()
        ),
    }


async def model_calls(world: World) -> tuple[int, int]:
    """How many model calls are stored, and how many reached the provider."""
    [row] = await world.query(
        "SELECT count(*) AS calls FROM steps WHERE kind = 'model' AND state <> 'planned'"
    )
    answer = (await world.scripted.http.get("/calls")).json()
    return row["calls"], sum(sum(turns.values()) for turns in answer.values())
