"""Creates the task of a message, with the agent that the client names or that fits the work."""

from collections.abc import Sequence

import orjson
from starlette.types import Scope

from rota.a2a.errors import MessageIdReused
from rota.a2a.messages import NewWork
from rota.agents.access import AgentAccess
from rota.agents.catalog import Catalog, NoAgentMatches
from rota.agents.model import Agent, AgentVersion
from rota.auth.caller import Caller
from rota.auth.routing import allowed
from rota.limits.guard import charge_as_ai
from rota.platform import ids
from rota.platform.errors import FieldError, ValidationFailed
from rota.platform.idempotency import IdempotencyKeyReused
from rota.tasks.following import Following, Known
from rota.tasks.service import Tasks

AGENT_READER = allowed("agents:read")
MAX_AGENTS = 200
# The beginning of the text says what the work is. `GET /api/agents/resolve` takes as much.
WORDS_CHARACTERS = 2_000


class Creating:
    def __init__(
        self, tasks: Tasks, catalog: Catalog, access: AgentAccess, following: Following
    ) -> None:
        self._tasks = tasks
        self._catalog = catalog
        self._access = access
        self._following = following

    async def create(self, caller: Caller, scope: Scope, work: NewWork) -> Known:
        """The new task. The same message again gets the same task."""
        agent = work.agent or await self._chosen(caller, scope, work.text)
        try:
            created = await self._tasks.create(caller, work.body(agent), work.key)
        except IdempotencyKeyReused:
            raise MessageIdReused from None
        task_id = orjson.loads(created.body)["task"]["id"]
        return await self._following.known(caller, ids.from_wire("task", task_id))

    async def agent(self, caller: Caller, scope: Scope, name: str) -> AgentVersion:
        await _count(caller, scope)
        return await self._catalog.get(caller, name)

    async def open_agents(self, caller: Caller, scope: Scope) -> Sequence[Agent]:
        """The agents that the account can give a task to."""
        await _count(caller, scope)
        return await self._catalog.open_agents(caller, self._access, MAX_AGENTS)

    async def _chosen(self, caller: Caller, scope: Scope, text: str) -> str:
        await _count(caller, scope)
        levels = self._access.open_levels(caller.tier)
        try:
            found, _ = await self._catalog.resolve(caller, None, text[:WORDS_CHARACTERS], levels)
        except NoAgentMatches:
            raise ValidationFailed.of(
                FieldError(
                    "agent",
                    "No agent fits the text. Name one in metadata.rota.agent. The extended agent "
                    "card lists them.",
                )
            ) from None
        return found.name


async def _count(caller: Caller, scope: Scope) -> None:
    """Reading the catalog counts as it does in the REST API."""
    AGENT_READER.check(caller)
    await charge_as_ai(scope)
