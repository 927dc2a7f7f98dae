"""What has to hold however often anything was killed. Each check says how many rows break it."""

import json
from collections import Counter
from collections.abc import Collection
from typing import Any

from rota.credits import verify
from rota.platform import ids
from rota.platform.db import Database
from tests.chaos.world import World

# Each statement finds what must not be there.
_MUST_BE_EMPTY = {
    "tasks that are not at their end": """
        SELECT id, status FROM tasks WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')
    """,
    "tasks whose cost is not that of their steps": """
        SELECT t.id FROM tasks t LEFT JOIN steps s ON s.account_id = t.account_id
            AND s.task_id = t.id
        GROUP BY t.account_id, t.id, t.cost_micros, t.steps, t.input_tokens, t.output_tokens
        HAVING t.cost_micros <> coalesce(sum(s.cost_micros), 0)
            OR t.input_tokens <> coalesce(sum(s.input_tokens), 0)
            OR t.output_tokens <> coalesce(sum(s.output_tokens), 0)
            OR t.steps <> count(*) FILTER (WHERE s.kind = 'model' AND NOT s.copied)
    """,
    "steps written down twice": """
        SELECT task_id FROM steps GROUP BY account_id, task_id, run, step, call HAVING count(*) > 1
    """,
    "steps without their result in completed tasks": """
        SELECT s.task_id FROM steps s JOIN tasks t ON t.account_id = s.account_id
            AND t.id = s.task_id
        WHERE t.status = 'COMPLETED' AND (s.state <> 'finished' OR s.result IS NULL)
    """,
    "reading tools without a good result in completed tasks": """
        SELECT s.task_id FROM steps s JOIN tasks t ON t.account_id = s.account_id
            AND t.id = s.task_id
        WHERE t.status = 'COMPLETED' AND s.kind = 'tool' AND s.read_only
          AND s.outcome IS DISTINCT FROM 'ok'
    """,
    "gaps in the numbers of events": """
        SELECT h.account_id FROM account_heads h
        LEFT JOIN events e ON e.account_id = h.account_id
        GROUP BY h.account_id, h.last_sequence
        HAVING count(e.sequence) <> h.last_sequence
            OR coalesce(max(e.sequence), 0) <> h.last_sequence
            OR coalesce(min(e.sequence), 1) <> 1
    """,
    "totals that are not the count": """
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
    # The instruction that looks after a run stays until its next look.
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


async def broken(world: World, acknowledged: Collection[str]) -> dict[str, int]:
    """How often each invariant is broken, by its name. All of them ought to be 0."""
    found = {name: len(await world.query(sql)) for name, sql in _MUST_BE_EMPTY.items()}
    rows = await world.query("SELECT id FROM tasks")
    kept = Counter(ids.to_wire("task", row[0]) for row in rows)
    found["acknowledged tasks that are lost"] = len(set(acknowledged) - set(kept))
    found["tasks that nobody was told of"] = len(set(kept) - set(acknowledged))
    found["things in the books that do not agree"] = await _unproven(world)
    return found | await _writes(world)


async def _unproven(world: World) -> int:
    """What `rota ledger verify` would find: charges missing or twice, holds left open."""
    db = Database(world.service.database_url, pool_size=1)
    await db.open()
    try:
        return sum([len(p) async for p in verify.verify(db, await verify.account_ids(db))])
    finally:
        await db.close()


async def _writes(world: World) -> dict[str, int]:
    """Calls of the writing tool, by the key of the call, beside what people approved."""
    answer = await world.scripted.http.get("/tool-calls")
    # The tool server may have other services to serve; a key begins with its task.
    ours = {row[0].hex for row in await world.query("SELECT id FROM tasks")}
    done = Counter(
        call["key"]
        for call in answer.json()
        if call["tool"] == "send" and call["key"].partition("-")[0] in ours
    )
    approved: Counter[str] = Counter()
    for task_id, items in await world.query("SELECT task_id, items::text FROM reviews"):
        for item in _items(items):
            if item["decision"] == "approved":
                approved[f"{task_id.hex}-{item['id']}"] += 1
    rows = await world.query(
        "SELECT task_id, run, step, call, outcome FROM steps WHERE name = 'send'"
    )
    said = {f"{row[0].hex}-call-{row[1]}-{row[2]}-{row[3]}": row[4] for row in rows}
    return {
        "writes made again that nobody approved": sum(
            count > 1 + approved[key] for key, count in done.items()
        ),
        "writes that nobody knows of": len(set(done) - set(said)),
        "writes said to be done that were not": sum(
            outcome == "ok" and done[key] == 0 for key, outcome in said.items()
        ),
    }


def _items(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text)
    return found


async def model_calls(world: World) -> tuple[int, int]:
    """How many model calls are on the books, and how many the provider answered."""
    [[billed]] = await world.query("SELECT count(*) FROM steps WHERE kind = 'model'")
    answer = (await world.scripted.http.get("/calls")).json()
    return billed, sum(sum(turns.values()) for turns in answer.values())
