"""Makes, lists and deletes rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from prometheus_client import Counter

from rota.accounts import queries as accounts
from rota.agents import queries as agents
from rota.auth.caller import Caller
from rota.events import journal
from rota.mcp import queries as mcp
from rota.mcp.errors import ServerNotFound, ToolNotAccepted, ToolNotAllowed, ToolNotFound
from rota.mcp.model import Server, ServerTool, shapers_of
from rota.platform import clock, ids, json
from rota.platform.canonical import canonical_json
from rota.platform.db import AccountReader, AccountTransaction, Database
from rota.platform.idempotency import Idempotency, Outcome
from rota.rules import conditions, queries, schemas
from rota.rules.errors import (
    AcceptedToolOfRule,
    InvalidRule,
    ReviewOutdated,
    RuleNotFound,
    RulesTooLarge,
    TooManyRules,
)
from rota.rules.model import MAX_BYTES_IN_FORCE, Rule
from rota.rules.schemas import CreateRule, ReviewedCall, RuleResponse
from rota.rules.use import dependencies_of
from rota.tasks import queries as tasks
from rota.tasks import review_checks, review_queries
from rota.tasks.errors import AgentNotInCatalog

MAX_RULES = 1_000
MAX_CONDITIONS_BYTES = 64 * 1024

CREATED = Counter("rota_rules_created_total", "Standing rules that were made.")


@dataclass(frozen=True, slots=True)
class _Reviewed:
    """A call in a review: what it was bound to. None: unknown, in an item of an earlier version."""

    server_revision: int | None
    definition_hash: str | None
    agent_version: int | None


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a new rule is about, and the review that it is made from."""

    server_id: str
    tool: str
    agent: str
    arguments: dict[str, Any]
    reviewed: _Reviewed | None = None


class Rules:
    def __init__(self, db: Database, idempotency: Idempotency) -> None:
        self._db = db
        self._idempotency = idempotency

    async def create(self, caller: Caller, body: CreateRule, key: str | None) -> Outcome:
        async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:

            async def work() -> RuleResponse:
                # The lock makes the counts exact, and the right to approve that of now.
                await journal.lock_account(tx)
                await review_checks.check_approver(tx)
                rule = await self._create(tx, caller, body)
                return RuleResponse(rule=await _shown(tx, rule))

            outcome = await self._idempotency.once(tx, key, ("POST /api/rules", body), 201, work)
        if not outcome.replayed:
            CREATED.inc()
        return outcome

    async def _create(self, tx: AccountTransaction, caller: Caller, body: CreateRule) -> Rule:
        if body.expires_at <= clock.now():
            raise InvalidRule("expiresAt", "must be in the future")
        subject = await _subject(tx, body)
        server, tool = await _find_tool(tx, subject)
        agent = await agents.find(tx, subject.agent)
        if agent is None:
            raise AgentNotInCatalog(subject.agent)
        if not agent.may_use(f"{server.name}/{tool.name}"):
            raise InvalidRule("agent", f"{agent.name} cannot use {server.name}/{tool.name}")
        if subject.reviewed is not None:
            _check_current(subject.reviewed, server, tool, agent.version)
        shapers = shapers_of(tool.acceptance, server.shaped_by)
        if caller.user_id in shapers and (await accounts.policy(tx)).second_person:
            raise AcceptedToolOfRule
        number, size = await queries.size_in_force(tx)
        if number >= MAX_RULES:
            raise TooManyRules(MAX_RULES)
        schema = (tool.accepted or {}).get("inputSchema") or {}
        if (wrong := conditions.never_hold(subject.arguments, schema)) is not None:
            raise InvalidRule(f"arguments.{wrong[0]}", wrong[1])
        arguments = canonical_json(subject.arguments)
        own_size = len(arguments.encode())
        if own_size > MAX_CONDITIONS_BYTES:
            raise InvalidRule("arguments", f"must be at most {MAX_CONDITIONS_BYTES} bytes as JSON")
        if size + own_size > MAX_BYTES_IN_FORCE:
            raise RulesTooLarge(size + own_size, MAX_BYTES_IN_FORCE)
        assert tool.accepted_hash is not None
        rule = Rule(
            id=ids.new_uuid(),
            server_id=server.id,
            tool=tool.name,
            agent=agent.name,
            server_revision=server.revision,
            definition_hash=tool.accepted_hash,
            agent_version=agent.version,
            arguments=arguments,
            expires_at=body.expires_at,
            max_uses=body.max_uses,
            uses=0,
            created_by=caller.user_id,
            created_by_name=await accounts.own_name(tx),
            created_at=clock.now(),
        )
        await queries.insert(tx, rule)
        await _record(tx, "rule.created", rule.id)
        return rule

    async def page(
        self, caller: Caller, limit: int, offset: int
    ) -> tuple[Sequence[schemas.Rule], int]:
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            found, total = await queries.page(tx, limit, offset), await queries.count(tx)
            around, now = await dependencies_of(tx, found), clock.now()
        return [schemas.Rule.of(rule, around, now) for rule in found], total

    async def get(self, caller: Caller, rule_id: UUID | None) -> schemas.Rule:
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            return await _shown(tx, await _get(tx, rule_id))

    async def revoke(self, caller: Caller, rule_id: UUID | None) -> None:
        """No call starts under the rule after this. The rule stays in the list."""
        async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:
            # A run locks the account before it uses a rule.
            await journal.lock_account(tx)
            await review_checks.check_approver(tx)
            rule = await _get(tx, rule_id)
            if await queries.revoke(tx, rule.id, caller.user_id, clock.now()):
                await _record(tx, "rule.revoked", rule.id)


async def _subject(tx: AccountReader, body: CreateRule) -> _Subject:
    sent = {"serverId": body.server_id, "tool": body.tool, "agent": body.agent}
    given = None
    if body.arguments is not None:
        given = {
            name: condition.model_dump(exclude_unset=True)
            for name, condition in body.arguments.items()
        }
    if body.from_review is None:
        missing = [name for name, value in (sent | {"arguments": given}).items() if value is None]
        if missing:
            raise InvalidRule(missing[0], "is required without fromReview")
        assert body.server_id is not None
        assert body.tool is not None
        assert body.agent is not None
        assert given is not None
        return _Subject(body.server_id, body.tool, body.agent, given)
    if named := [name for name, value in sent.items() if value is not None]:
        raise InvalidRule(named[0], "must be absent with fromReview, which names it")
    return await _reviewed_subject(tx, body.from_review, given)


async def _reviewed_subject(
    tx: AccountReader, call: ReviewedCall, given: dict[str, Any] | None
) -> _Subject:
    """What the newest item with this ID in the reviews of the task is about."""
    task = await tasks.get(tx, ids.from_wire("task", call.task_id))
    reviews = await review_queries.newest_of_items(tx, task.id, [call.item_id])
    review = reviews.get(call.item_id)
    if review is None:
        raise InvalidRule("fromReview.itemId", "is not an item of a review of the task")
    item = next(item for item in review.items if item["id"] == call.item_id)
    server_id, sealed = item.get("serverId"), item.get("sealed")
    if task.agent is None or item["tool"] is None or server_id is None or sealed is None:
        raise InvalidRule(
            "fromReview.itemId", "is not a call of a tool server. Rules cover only such calls"
        )
    if given is None:
        given = conditions.exactly(json.exact(sealed)["arguments"])
    # Items of earlier versions do not name it. Then only that of the current run is known.
    current = task.agent_version if review.run == task.run else None
    version = item.get("agentVersion", current)
    reviewed = _Reviewed(item.get("serverRevision"), item.get("definitionHash"), version)
    return _Subject(server_id, item["tool"], task.agent, given, reviewed)


async def _find_tool(tx: AccountReader, subject: _Subject) -> tuple[Server, ServerTool]:
    server_id = ids.from_wire("mcp", subject.server_id)
    found = await mcp.find_with_tool(tx, server_id, subject.tool) if server_id else None
    if found is None:
        raise ServerNotFound
    server, tool = found
    if tool is None or tool.live_hash is None:
        raise ToolNotFound(subject.tool)
    if not server.allows(tool.name):
        raise ToolNotAllowed(server, tool.name)
    if not tool.usable:
        raise ToolNotAccepted(server, tool)
    return server, tool


def _check_current(reviewed: _Reviewed, server: Server, tool: ServerTool, version: int) -> None:
    """Refuses a rule about something else than the review shows."""
    if reviewed.server_revision != server.revision:
        raise ReviewOutdated("tool server")
    if reviewed.definition_hash != tool.accepted_hash:
        raise ReviewOutdated("definition of the tool")
    if reviewed.agent_version != version:
        raise ReviewOutdated("agent")


async def _get(tx: AccountReader, rule_id: UUID | None) -> Rule:
    rule = await queries.find(tx, rule_id) if rule_id else None
    if rule is None:
        raise RuleNotFound
    return rule


async def _shown(tx: AccountReader, rule: Rule) -> schemas.Rule:
    return schemas.Rule.of(rule, await dependencies_of(tx, [rule]), clock.now())


async def _record(tx: AccountTransaction, kind: str, rule_id: UUID) -> None:
    data = {"ruleId": ids.to_wire("rule", rule_id), "by": ids.to_wire("user", tx.user_id)}
    await journal.append(tx, kind, data)
