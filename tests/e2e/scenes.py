"""Accounts in states that only a run reaches: tasks in every state, and reviews at every gate.

The rows are written directly, so that a test of a screen does not wait for a model.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from rota.platform import ids
from rota.platform.canonical import canonical_json, digest
from tests.service import Person
from tests.tasks.world import STATUSES

AGENT = "ticket-responder"
TEXTS = ("name", "description", "input", "output")


@dataclass
class Task:
    status: str
    name: str = "Answer Mina about her late order"
    agent: str | None = AGENT
    description: str | None = None
    input: str = "Reply to ticket T-4821."
    output: str | None = None
    actions: Sequence[str] = ()
    error: dict[str, Any] | None = None
    # Where it waits: run, tool, output, or external for a task that a client runs.
    gate: str | None = None
    items: Sequence[dict[str, Any]] = ()
    # Ended reviews: the reasons of rejections.
    rejected: Sequence[str] = ()
    # Tool calls that are done: name, server, arguments and result.
    calls: Sequence[tuple[str, str, Any, Any]] = ()
    id: UUID = field(default_factory=ids.new_uuid)

    @property
    def wire(self) -> str:
        return ids.to_wire("task", self.id)


def call(
    number: int,
    arguments: dict[str, Any],
    *,
    schema: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """An item of a review: a tool call that waits."""
    sealed = canonical_json({"arguments": arguments})
    properties: dict[str, Any] = {name: {} for name in arguments}
    return {
        "id": f"call-1-1-{number}",
        "tool": "reply_to_ticket",
        "server": "helpdesk",
        "serverUrl": "https://helpdesk.example/mcp",
        "toolDescription": "Sends a reply to the customer.",
        "annotations": {"readOnlyHint": False, "destructiveHint": False},
        "arguments": arguments,
        "argumentsSchema": schema or {"type": "object", "properties": properties},
        "agentSays": "I answer kindly.",
        "reason": "The agent's policy requires approval of this call.",
        "decision": None,
        "decidedBy": None,
        "decidedAt": None,
        "sealed": sealed,
        "digest": digest(sealed),
        **more,
    }


def output_item(text: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"output": {"type": "string"}}}
    return call(0, {"output": text}, schema=schema, tool=None, server=None, serverUrl=None)


async def write(person: Person, *tasks: Task) -> None:
    """Adds the tasks to the person's own account."""
    account = person.user_id
    async with person.service.owner() as connection, connection.transaction():
        for task in tasks:
            await _write_task(connection, account, task)
            for number, reason in enumerate(task.rejected, 1):
                await _write_review(connection, account, task, number, reason)
            if task.gate:
                await _write_review(connection, account, task, len(task.rejected) + 1, None)
            await _write_steps(connection, account, task)
        counted = ", ".join(
            f"{name} = (SELECT count(*) FROM tasks WHERE account_id = $1 AND status = '{name}')"
            for name in STATUSES
        )
        await connection.execute(
            f"UPDATE account_heads SET {counted} WHERE account_id = $1", account
        )


async def _write_task(connection: Any, account: UUID, task: Task) -> None:
    ended = task.status in ("COMPLETED", "FAILED", "CANCELLED")
    await connection.execute(
        """
        INSERT INTO tasks (account_id, id, status, hosted, agent, agent_version, name, created_at,
                           updated_at, started_at, finished_at, created_by, description, input,
                           output, actions, error, steps, input_tokens, output_tokens,
                           cost_micros, budget_cents)
        VALUES ($1::uuid, $2, $3, $4, $5, $6, $7, now(), now(), now() - interval '2 minutes',
                CASE WHEN $8 THEN now() END, $1, $9, $10, $11, $12, $13, 2, 2400, 310, 12300, $14)
        """,
        account,
        task.id,
        task.status,
        task.agent is not None,
        task.agent,
        1 if task.agent else None,
        task.name,
        ended,
        task.description,
        task.input,
        task.output,
        list(task.actions),
        json.dumps(task.error) if task.error else None,
        100 if task.agent else None,
    )


async def _write_review(
    connection: Any, account: UUID, task: Task, number: int, rejected: str | None
) -> None:
    sealed = canonical_json(_subject(task))
    await connection.execute(
        """
        INSERT INTO reviews (account_id, task_id, number, run, state, gate, requested_at,
                             expires_at, items, sealed, digest, reason, decided_by, decided_at)
        VALUES ($1::uuid, $2, $3, 1, $4::text, $5, now() - interval '1 minute',
                now() + interval '7 days', $6, $7, $8, $9,
                CASE WHEN $4 = 'rejected' THEN $1::uuid END,
                CASE WHEN $4 = 'rejected' THEN now() END)
        """,
        account,
        task.id,
        number,
        "pending" if rejected is None else "rejected",
        None if task.gate == "external" else task.gate or "output",
        json.dumps(list(task.items) if rejected is None else []),
        sealed,
        digest(sealed),
        rejected,
    )


def _subject(task: Task) -> dict[str, Any]:
    if task.gate == "run":
        texts = {name: getattr(task, name) for name in TEXTS[:3]}
        more = {"agent": task.agent, "version": 1, "model": "default", "budgetCents": 100}
        return {"from": "start", "work": texts | more}
    if task.gate == "external":
        return {"texts": {name: getattr(task, name) for name in TEXTS}}
    return {"items": [{"id": item["id"]} for item in task.items]}


async def _write_steps(connection: Any, account: UUID, task: Task) -> None:
    for number, (name, server, arguments, result) in enumerate(task.calls, 1):
        wanted = {"part_kind": "tool-call", "tool_name": f"{server}__{name}"}
        rows = [
            ("model", 0, "small-1", None, None, json.dumps({"parts": [wanted]})),
            ("tool", 1, name, server, json.dumps(arguments), json.dumps(result)),
        ]
        for kind, at, called, of, given, answer in rows:
            await connection.execute(
                """
                INSERT INTO steps (account_id, task_id, run, step, call, kind, state, name, server,
                                   arguments, result, outcome, input_tokens, output_tokens,
                                   cost_micros, planned_at, started_at, finished_at)
                VALUES ($1, $2, 1, $3, $4, $5, 'finished', $6, $7, $8, $9, 'ok', 1200, 150, 6100,
                        now() - interval '90 s', now() - interval '90 s', now() - interval '80 s')
                """,
                account,
                task.id,
                number,
                at,
                kind,
                called,
                of,
                given,
                answer,
            )
