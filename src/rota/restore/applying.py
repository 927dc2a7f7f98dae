"""Applies the state of an account to the restored database: what had ended ends again."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from rota.accounts import queries as account_queries
from rota.accounts.service import UserNotFound
from rota.auth import queries as auth_queries
from rota.companies.errors import LastOwner
from rota.companies.members import Members
from rota.credits import alerts, ledger
from rota.data import queries as data_queries
from rota.data.erasure import Erasures
from rota.events import journal
from rota.platform.db import NO_USER, AccountTransaction, Database
from rota.platform.errors import ApiError
from rota.platform.ids import to_wire
from rota.restore import queries
from rota.restore.file import Known, moment
from rota.runs import restored
from rota.runs.deadlines import Deadlines
from rota.tasks import cancellation
from rota.tasks import queries as task_queries
from rota.tasks.states import TERMINAL, Trigger
from rota.tasks.withdrawal import withdraw_approvals
from rota.webhooks import events as webhooks

CANCELLED = "The task was cancelled before the service was restored."
# Tables whose rows are deleted when something ends, by the name in the state.
DELETED = {
    "invitations": "invitations",
    "servers": "mcp_servers",
    "webhooks": "webhooks",
    "schedules": "schedules",
}
# Prefixes of the IDs in the audit entry.
_PREFIXES = {
    "sessions": "sess",
    "keys": "key",
    "invitations": "inv",
    "servers": "mcp",
    "webhooks": "wh",
    "schedules": "sched",
    "rules": "rule",
    "notifications": "user",
    "cancelled": "task",
    "failed": "task",
}


@dataclass(slots=True)
class Report:
    """What was done, by kind, and what a person has to look at."""

    counts: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def count(self, name: str, number: int = 1) -> None:
        if number:
            self.counts[name] = self.counts.get(name, 0) + number


class Applying:
    def __init__(
        self,
        db: Database,
        members: Members,
        erasures: Erasures,
        deadlines: Deadlines,
        report: Report,
        since: datetime,
        margin: int = 0,
    ) -> None:
        """`margin`: how many numbers of events may have been used that nobody knows of."""
        self._db = db
        self._members = members
        self._erasures = erasures
        self._deadlines = deadlines
        self._report = report
        self._since = since
        self._margin = margin
        # Accounts that use no number of a lost event any more.
        self._skipped: set[UUID] = set()

    async def apply(self, accounts: Sequence[Known]) -> None:
        """The numbers of lost events first, because what follows appends events. Then members: an
        erasure needs to know who owns a company. Companies are erased before the people who may
        own them."""
        changed = [each for each in accounts if await self._differs(each)]
        for each in changed:
            if not each.state["erased"]:
                await self._skip_lost(each)
        for each in changed:
            if each.is_company and not each.state["erased"]:
                await self._try(each, self._set_members)
        for each in changed:
            if not each.state["erased"]:
                await self._try(each, self._end)
        for each in sorted(changed, key=lambda known: not known.is_company):
            if each.state["erased"]:
                await self._try(each, self._erase)
        self._report.count("accounts", len(changed))

    async def skip_unknown(self, account_ids: Sequence[UUID]) -> int:
        """Skips numbers in the other accounts, too. Returns how many runs of all accounts can make
        calls again that nobody knows of."""
        runs = 0
        for account_id in account_ids:
            async with self._db.write(account_id) as tx:
                await journal.lock_account(tx)
                if not await account_queries.is_open(tx):
                    continue
                runs += await queries.open_runs(tx)
                if account_id in self._skipped:
                    continue
                # A command that failed is repeated, and nothing was lost since.
                if await journal.restored_to(tx) != moment(self._since):
                    await self._skip(tx, await journal.last_sequence(tx))
        return runs

    async def _differs(self, known: Known) -> bool:
        """Whether the account exists and has changed since the moment."""
        async with self._db.read(known.account_id) as tx:
            head = await queries.audit_head(tx)
        theirs = known.state["audit"]
        return head is not None and head != (theirs["sequence"], theirs["hash"])

    async def _try(self, known: Known, work: Callable[[Known], Awaitable[None]]) -> None:
        try:
            await work(known)
        except ApiError as error:
            self._problem(known, error.message)

    async def _erase(self, known: Known) -> None:
        if await self._erasures.find(known.account_id) is None:
            await self._erasures.erase(known.account_id)
            self._report.count("erased")

    async def _set_members(self, known: Known) -> None:
        """Owners first, so that no company loses its last one. Then those who left, so that the
        others find seats."""
        wanted = known.state["members"]
        for member in wanted:
            if member["role"] == "owner":
                await self._put(known, member)
        kept = {UUID(member["user"]) for member in wanted}
        async with self._db.read(known.account_id) as tx:
            found = await queries.members_before(tx, known.read_at)
        for user_id in found:
            if user_id not in kept:
                await self._remove(known, user_id)
        for member in wanted:
            if member["role"] != "owner":
                await self._put(known, member)

    async def _put(self, known: Known, member: dict[str, Any]) -> None:
        role, approver = member["role"], member["approver"] if member["role"] == "member" else None
        try:
            await self._members.put(known.account_id, UUID(member["user"]), role, approver)
        except UserNotFound:
            # Signed in for the first time after the moment.
            self._report.count("unknown members")
        except ApiError as error:
            user = to_wire("user", UUID(member["user"]))
            self._problem(known, f"{user} cannot be {role}. {error.message}")

    async def _remove(self, known: Known, user_id: UUID) -> None:
        try:
            await self._members.remove(known.account_id, user_id, by=None)
            self._report.count("members")
        except LastOwner:
            user, account = to_wire("user", user_id), to_wire("acct", known.account_id)
            self._problem(
                known,
                f"{user} was removed, and the new owner does not exist here. Add an owner, then: "
                f"rota admin companies remove-member {account} {user}",
            )

    def _problem(self, known: Known, text: str) -> None:
        self._report.problems.append(f"{to_wire('acct', known.account_id)}: {text}")

    async def _end(self, known: Known) -> None:
        user_id = NO_USER if known.is_company else known.account_id
        async with self._db.write(known.account_id, user_id) as tx:
            await journal.lock_account(tx)
            ended = await self._end_credentials(tx, known)
            ended |= await self._end_settings(tx, known)
            ended |= await self._end_tasks(tx, known)
            await self._grant(tx, known)
            policy = await queries.set_policy(tx, known.state["policy"])
            if policy:
                await data_queries.make_due_now(tx)
                # The policy can allow fewer users to approve.
                await withdraw_approvals(tx)
            ended = {name: ids for name, ids in ended.items() if ids}
            details: dict[str, Any] = {
                name: [to_wire(_PREFIXES[name], each) for each in ids]
                for name, ids in ended.items()
            }
            # The trail that an auditor may have a head of, and that this one does not continue.
            details |= {"lostHead": known.state["audit"], "policySet": policy}
            tx.record("account.restore_applied", details)
        for name, ids in ended.items():
            self._report.count(name, len(ids))
        self._report.count("policies", int(policy))

    async def _end_credentials(self, tx: AccountTransaction, known: Known) -> dict[str, list[UUID]]:
        ended = {"keys": await queries.extra_keys(tx, known.ids("keys"), known.read_at)}
        if not known.is_company:
            kept = known.ids("sessions")
            ended["sessions"] = await queries.end_sessions(tx, kept, known.read_at)
        for key_id in ended["keys"]:
            await auth_queries.delete_key(tx, key_id)
        return ended

    async def _end_settings(self, tx: AccountTransaction, known: Known) -> dict[str, list[UUID]]:
        state, before = known.state, known.read_at
        ended = {
            name: await queries.delete_others(tx, table, known.ids(name), before)
            for name, table in DELETED.items()
        }
        hooks, rules = state["enabledWebhooks"], state["rules"]
        disabled = await queries.disable_webhooks(
            tx, [UUID(hook) for hook in hooks], [*hooks.values()], before
        )
        for webhook_id in disabled:
            # Nobody in the account did it, also if the account is the user's own.
            await webhooks.record(
                tx, "webhook.disabled", webhook_id, reason="restored", error=None, by=None
            )
        ended["webhooks"] += disabled
        ended["schedules"] += await queries.pause_schedules(
            tx, known.ids("activeSchedules"), before
        )
        ended["servers"] += await queries.narrow_servers(tx, state["servers"], before)
        ended["rules"] = await queries.revoke_rules(
            tx, [UUID(rule) for rule in rules], [*rules.values()], before
        )
        ended["notifications"] = await queries.limit_notifications(
            tx, state["notifications"], before
        )
        return ended

    async def _end_tasks(self, tx: AccountTransaction, known: Known) -> dict[str, list[UUID]]:
        cancelled = []
        for task_id in known.ids("cancelled"):
            task = await task_queries.find(tx, task_id)
            if task is not None and task.status not in TERMINAL:
                await cancellation.cancel(tx, task, task, Trigger.CANCEL, reason=CANCELLED)
                cancelled.append(task_id)
        writes = [(UUID(task), run, step, call) for task, run, step, call in known.state["writes"]]
        unknown = await queries.unknown_writes(tx, writes) if writes else set()
        failed = [
            task_id
            for task_id in sorted(unknown)
            if await restored.stop(self._deadlines, tx, task_id)
        ]
        return {"cancelled": cancelled, "failed": failed}

    async def _grant(self, tx: AccountTransaction, known: Known) -> None:
        for key, amount_micros in known.state["grants"]:
            if await ledger.grant(tx, amount_micros, key.removeprefix("grant/")):
                details = {"key": key, "reason": "The grant was made before a restore."}
                await alerts.report(tx)
                tx.record("credits.grant_entered", details)
                self._report.count("grants")

    async def _skip_lost(self, known: Known) -> None:
        """In a transaction of its own, so that the account's next event comes after it."""
        async with self._db.write(known.account_id) as tx:
            await journal.lock_account(tx)
            await self._skip(tx, known.state["sequence"])
        self._skipped.add(known.account_id)

    async def _skip(self, tx: AccountTransaction, last: int) -> None:
        """Numbers of lost events are not used again: clients continue after them."""
        through = last + self._margin
        first = await queries.skip_numbers(tx, through)
        if first is not None:
            data = {"restoredTo": moment(self._since), "lostFrom": first, "lostThrough": through}
            await journal.append(tx, "account.restored", data)
