"""Finishes a restore, before any process serves from the restored database."""

from collections.abc import Callable
from datetime import datetime, timedelta

from redis.exceptions import RedisError
from temporalio.service import RPCError

from rota.audit import queries as audit_queries
from rota.audit.verify import verify as verify_audit
from rota.auth import rotation
from rota.composition import Composition
from rota.credits.verify import account_ids
from rota.credits.verify import verify as verify_ledger
from rota.plans.reconcile import Difference
from rota.platform.errors import ApiError, Conflict
from rota.platform.ids import to_wire
from rota.restore import engines, queries
from rota.restore.applying import Applying, Report
from rota.restore.file import Survivors, moment
from rota.restore.processes import check_stopped
from rota.runs.agent_loop import AgentLoop
from rota.runs.deadlines import Deadlines
from rota.runs.run_context import RunContext

# A payment can be recorded a while after it was made.
PAYMENTS_MARGIN = timedelta(days=1)
# How many numbers of events are skipped in each account if nobody knows how many were used.
UNKNOWN_EVENTS = 1_000_000

Say = Callable[[str], None]


class TooLate(Conflict):
    def __init__(self, read_from: str, alive_at: str) -> None:
        super().__init__(
            f"The file has changes since {read_from} only, and the restored database is from "
            f"{alive_at}. Collect again with --since {alive_at}, or add an earlier file."
        )


class Gap(Conflict):
    def __init__(self, begin: str, end: str) -> None:
        super().__init__(
            f"No file has the changes between {begin} and {end}. Add a file that was collected "
            "in between, with --since before its beginning."
        )


class AlreadyUsed(Conflict):
    def __init__(self, collected_at: str, alive_at: str) -> None:
        super().__init__(
            f"The newest file was collected at {collected_at}, and the database was in use at "
            f"{alive_at}. If the file was applied already, there is nothing to do. To apply it "
            "again, and undo what people have changed since, use --again. If the database was "
            "restored to a later moment than the file, use --without-file."
        )


class Finishing:
    """Every step can be repeated, so a command that failed can run again."""

    def __init__(self, parts: Composition, owner_url: str, say: Say) -> None:
        self._parts = parts
        self._owner_url = owner_url
        self._say = say
        self.report = Report()

    async def check(
        self, survivors: Survivors | None, *, ignore_connections: bool, again: bool
    ) -> Survivors | None:
        """Refuses to start if processes are running, or if changes are missing in the files.
        Returns the files that say something about the time after the moment."""
        await self._parts.db.check_relay()
        await self._parts.db.check_version()
        if not ignore_connections:
            await check_stopped(self._parts.db)
        row = await self._parts.continuity.read()
        if survivors is None:
            return None
        newest = survivors.newest.collected_at
        used = survivors if again else survivors.after(row.beat_at)
        if not used.files:
            raise AlreadyUsed(moment(newest), moment(row.beat_at))
        if used.read_from > row.beat_at:
            raise TooLate(moment(used.read_from), moment(row.beat_at))
        if found := used.gap():
            raise Gap(*map(moment, found))
        return used

    async def run(self, survivors: Survivors | None) -> None:
        row = await self._parts.continuity.read()
        await self._apply(survivors, row.beat_at)
        await self._end_runs()
        await self._clear_redis()
        since = min(row.beat_at, survivors.since if survivors else row.beat_at)
        await self._reconcile_payments(since - PAYMENTS_MARGIN)
        await self._verify()

    async def accept(self, *, lost: bool) -> None:
        """From now on, processes start."""
        await self._parts.continuity.finish(lost=lost)

    async def _apply(self, survivors: Survivors | None, alive_at: datetime) -> None:
        parts = self._parts
        is_complete = survivors is not None and survivors.newest.final
        applying = Applying(
            parts.db,
            parts.members,
            parts.erasures,
            Deadlines(RunContext(parts.db), AgentLoop(gate_time=parts.gate_time)),
            self.report,
            survivors.since if survivors else alive_at,
            0 if is_complete else UNKNOWN_EVENTS,
        )
        if survivors is None:
            # Nobody knows which sessions have ended, so all of them end.
            await rotation.rotate(self._owner_url, parts.vault, overlap_s=0)
            self._say("All sessions were ended, because no file says which ones had ended before.")
        else:
            await self._apply_files(survivors, applying)
        if not is_complete:
            async with parts.db.relay() as connection:
                everyone = await queries.all_accounts(connection)
            runs = await applying.skip_unknown(everyone)
            self._say(
                f"Skipped {UNKNOWN_EVENTS} event numbers in each account, because the database "
                f"was in use after the last file. {runs} open tasks continue, and can repeat calls "
                "of tools that they have made since then."
            )

    async def _apply_files(self, survivors: Survivors, applying: Applying) -> None:
        parts = self._parts
        await applying.apply(survivors.accounts())
        newest = survivors.newest
        retired = await rotation.retire_others(
            self._owner_url, parts.vault, newest.signing_keys, newest.collected_at
        )
        self.report.count("signing keys", len(retired))
        async with parts.db.directory() as connection:
            await queries.add_used_tokens(connection, newest.used_tokens)
        done = ", ".join(f"{name}: {number}" for name, number in self.report.counts.items())
        self._say(f"Applied the collected changes. {done or 'Nothing had changed'}.")

    async def _end_runs(self) -> None:
        try:
            ended = await engines.end_runs(await self._parts.temporal.connect())
        except (RPCError, RuntimeError) as error:
            self.report.problems.append(
                f"Temporal does not respond ({error}). Start it, or correct ROTA_TEMPORAL_ADDRESS."
            )
            return
        async with self._parts.db.relay() as connection:
            checks = await queries.make_checks_due_now(connection)
        self._say(f"Ended {ended} runs in Temporal. Workers start {checks} runs from their rows.")

    async def _clear_redis(self) -> None:
        try:
            gone = await engines.forget(self._parts.redis)
        except (RedisError, OSError) as error:
            # It may remember a later number of the database, and processes would refuse to start.
            self.report.problems.append(
                f"Redis does not respond ({error}). Start it, or correct ROTA_REDIS_URL."
            )
            return
        self._say(f"Deleted {gone} keys from Redis.")

    async def _reconcile_payments(self, since: datetime) -> None:
        if self._parts.settings.stripe_secret_key is None:
            self._say("Payments are not configured.")
            return
        try:
            found = [each async for each in self._parts.reconciliation.differences(since)]
            for difference in found:
                await self._repair(difference)
            left = [each async for each in self._parts.reconciliation.differences(since)]
        except ApiError as error:
            self.report.problems.append(f"Payments: {error.message}")
            return
        self._say(f"Repaired {len(found) - len(left)} of {len(found)} differences with Stripe.")
        for each in left:
            account = to_wire("acct", each.account_id)
            self.report.problems.append(
                f"{account}: {each.kind} {each.id} is {each.theirs} at Stripe and {each.ours} "
                "here. Correct or refund it at Stripe."
            )

    async def _repair(self, difference: Difference) -> None:
        if difference.repair is None:
            return
        try:
            await difference.repair()
        except ApiError as error:
            account = to_wire("acct", difference.account_id)
            self.report.problems.append(f"{account}: {difference.id}: {error.message}")

    async def _verify(self) -> None:
        db, keys = self._parts.db, list(self._parts.signer.public_keys())
        chosen = await account_ids(db)
        async for problems in verify_ledger(db, chosen):
            for each in problems:
                account = to_wire("acct", each.account_id)
                self.report.problems.append(
                    f"{account}: ledger: {each.description}, {each.location}"
                )
        async with db.relay(by_index=True) as connection:
            trails = await audit_queries.account_ids(connection)
        async for _, found in verify_audit(db, sorted(trails), {}, keys):
            for trail in found:
                account = to_wire("acct", trail.account_id)
                self.report.problems.append(
                    f"{account}: audit entry {trail.sequence}: {trail.description}"
                )
        self._say(f"Verified the ledgers of {len(chosen)} accounts and {len(trails)} trails.")
