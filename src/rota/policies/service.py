"""Reads and changes the policies of an account."""

from collections.abc import Awaitable, Callable

from rota.accounts import members, queries
from rota.accounts.model import Policy
from rota.auth.caller import Caller
from rota.events import journal
from rota.platform.db import AccountTransaction, Database
from rota.platform.ids import to_wire
from rota.policies.errors import TooFewApprovers
from rota.policies.retention import RetentionRules
from rota.policies.schemas import PoliciesResponse, PutPolicies

# What other packages do in the transaction of a change.
Effect = Callable[[AccountTransaction], Awaitable[None]]


class Policies:
    def __init__(
        self, db: Database, rules: RetentionRules, make_due_now: Effect, withdraw_approvals: Effect
    ) -> None:
        self._db = db
        self._rules = rules
        # Makes retention look at the account soon.
        self._make_due_now = make_due_now
        # Takes back the open approvals of users who can no longer approve.
        self._withdraw_approvals = withdraw_approvals

    def show(self, policy: Policy) -> PoliciesResponse:
        return PoliciesResponse.of(policy, self._rules.in_effect(policy.retention))

    async def get(self, caller: Caller) -> Policy:
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            return await queries.policy(tx)

    async def put(self, caller: Caller, body: PutPolicies) -> Policy:
        """Replaces the policies. Decisions and calls that start later are made under them."""
        async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:
            # Members change under the first lock, and decisions read the policy under the second.
            await queries.lock(tx)
            await journal.lock_account(tx)
            before = await queries.policy(tx)
            policy = body.policy(before.retention)
            if policy == before:
                return policy
            if policy.retention != before.retention:
                self._rules.check(policy.retention)
                await self._make_due_now(tx)
            turned_on = policy.second_person and not before.second_person
            narrowed = before.anyone_approves and not policy.anyone_approves
            if policy.second_person and (turned_on or narrowed):
                approvers = await members.approvers(tx, anyone=policy.anyone_approves)
                if approvers < 2:
                    raise TooFewApprovers(approvers)
            await queries.set_policy(tx, policy)
            if narrowed:
                await self._withdraw_approvals(tx)
            shown = self.show(policy).model_dump(mode="json", by_alias=True)
            del shown["retentionInEffect"]
            data = shown | {"by": to_wire("user", caller.user_id)}
            await journal.append(tx, "policy.updated", data)
        return policy
