"""What an account's tasks hold, and how the tasks of an agent went."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from rota.agents import queries as agents
from rota.agents.catalog import AgentNotFound
from rota.auth.caller import Caller
from rota.credits import queries as credits_
from rota.credits.queries import OpenHold
from rota.platform import clock
from rota.platform.db import Database
from rota.tasks import overview_queries as queries
from rota.tasks.overview_queries import Label, Statistics

STATISTICS_TIME = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Holds:
    """A page of open holds with their tasks, their number and what all of them hold."""

    page: list[tuple[OpenHold, Label]]
    total: int
    held_micros: int


@dataclass(frozen=True, slots=True)
class AgentStatistics:
    start: datetime
    end: datetime
    counts: Statistics


class Overview:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def holds(self, caller: Caller, limit: int, offset: int) -> Holds:
        async with self._db.snapshot(caller.account_id) as tx:
            found, total, held_micros = await credits_.open_holds(tx, limit, offset)
            labels = await queries.labels(tx, [hold.task_id for hold in found])
        return Holds([(hold, labels[hold.task_id]) for hold in found], total, held_micros)

    async def statistics(self, caller: Caller, agent: str) -> AgentStatistics:
        end = clock.now()
        start = end - STATISTICS_TIME
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            if await agents.find(tx, agent) is None:
                raise AgentNotFound(agent)
            counts = await queries.statistics(tx, agent, start, end)
        return AgentStatistics(start, end, counts)
