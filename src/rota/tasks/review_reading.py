"""Reads the reviews of a task with everything that is needed to show them."""

from collections.abc import Sequence
from dataclasses import dataclass

from rota.mcp import queries as mcp
from rota.platform import ids
from rota.platform.db import AccountReader
from rota.tasks import review_queries, shaping
from rota.tasks.model import Definitions, Review, Task
from rota.tasks.shaping import SecondPerson


@dataclass(frozen=True, slots=True)
class TaskReviews:
    """A task and its newest reviews, newest first. Older ones are incomplete."""

    task: Task
    reviews: list[Review]
    definitions: Definitions
    # None: the newest review needs no second person.
    second_person: SecondPerson | None = None


async def read(tx: AccountReader, task: Task) -> TaskReviews:
    reviews = await review_queries.of_task(tx, task.id)
    definitions = await definitions_of(tx, reviews)
    second_persons = await shaping.second_persons(tx, {task.id: reviews[0]} if reviews else {})
    return TaskReviews(task, reviews, definitions, second_persons.get(task.id))


async def definitions_of(tx: AccountReader, reviews: Sequence[Review]) -> Definitions:
    """The accepted definitions of the tools in these reviews, in at most one statement."""
    shown = {
        (server, tool)
        for review in reviews
        for item in review.items
        if item.get("definitionHash")
        and (server := item.get("serverId"))
        and (tool := item["tool"])
    }
    parsed = [(ids.from_wire("mcp", server), tool) for server, tool in shown]
    wanted = [(server_id, tool) for server_id, tool in parsed if server_id is not None]
    found = await mcp.accepted_definitions(tx, wanted) if wanted else {}
    return {(ids.to_wire("mcp", server), tool): each for (server, tool), each in found.items()}
