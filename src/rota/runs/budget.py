"""What a run may still spend: its own agent's budget, and that of every task above it."""

from dataclasses import dataclass
from uuid import UUID

from rota.platform.db import ReadConnection
from rota.runs.models import GiveUp, Price

MICROS_PER_CENT = 10_000
# An answer shorter than this is not worth asking for.
LEAST_OUTPUT_TOKENS = 64
# A cautious guess: text has at least three characters to a token.
CHARACTERS_PER_TOKEN = 3


@dataclass(frozen=True, slots=True)
class Spent:
    budget_cents: int
    micros: int


async def spent_up_the_tree(
    connection: ReadConnection, account_id: UUID, task_id: UUID
) -> list[Spent]:
    """For the task and each hosted task above it: its budget, and what it and all below it cost."""
    rows = await connection.fetch(
        """
        WITH RECURSIVE above (id, parent_task_id) AS (
            SELECT id, parent_task_id FROM tasks WHERE account_id = $1 AND id = $2
            UNION ALL
            SELECT t.id, t.parent_task_id FROM above a
            JOIN tasks t ON t.account_id = $1 AND t.id = a.parent_task_id
        ), below (root, id) AS (
            SELECT id, id FROM above
            UNION ALL
            SELECT b.root, t.id FROM below b
            JOIN tasks t ON t.account_id = $1 AND t.parent_task_id = b.id
        )
        SELECT v.budget_cents, coalesce(
            sum(s.cost_micros) FILTER (WHERE s.planned_at >= root.started_at), 0)::bigint
        FROM below b
        JOIN tasks root ON root.account_id = $1 AND root.id = b.root AND root.hosted
        JOIN agent_versions v ON v.name = root.agent AND v.version = root.agent_version
        LEFT JOIN steps s ON s.account_id = $1 AND s.task_id = b.id
        GROUP BY root.id, v.budget_cents
        """,
        account_id,
        task_id,
    )
    return [Spent(row[0], row[1]) for row in rows]


def affordable_output_tokens(
    spent: list[Spent], price: Price, input_characters: int, most: int
) -> int:
    """How long an answer may be, at most `most`, so that the call cannot cost more than is left."""
    left = min(s.budget_cents * MICROS_PER_CENT - s.micros for s in spent)
    if price.output_micros == 0 and price.input_micros == 0:
        return most
    for_input = price.cost_micros(input_characters // CHARACTERS_PER_TOKEN + 1, 0)
    tokens = (left - for_input) * 1_000_000 // max(1, price.output_micros)
    if tokens < LEAST_OUTPUT_TOKENS:
        raise GiveUp(
            "BUDGET_EXCEEDED",
            "The next model call could cost more than is left of the budget. Retried from "
            "failure, the task goes on with a new one.",
            retryable=True,
        )
    return min(tokens, most)
