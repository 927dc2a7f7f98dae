"""Who can approve: the policies of an account, and standing rules."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

from rota_sdk import models
from rota_sdk._async.pages import AsyncPages
from rota_sdk._async.resource import AsyncResource
from rota_sdk._generated import operations
from rota_sdk._requests import creation, id_of

RuleRef: TypeAlias = str | models.Rule
Approvals: TypeAlias = models.PutApprovals | Mapping[str, Any]
Retention: TypeAlias = models.PutRetention | Mapping[str, Any]
Conditions: TypeAlias = Mapping[str, models.Condition | Mapping[str, Any]]
ReviewedCall: TypeAlias = models.ReviewedCall | Mapping[str, Any]


class Policies(AsyncResource):
    """The policies of the account. They need a session: pass its token as `api_key`."""

    async def get(self) -> models.PoliciesResponse:
        """Who can approve, and what waits for approval."""
        return await self._call(operations.get_policies)

    async def replace(
        self, *, approvals: Approvals, retention: Retention | None = None
    ) -> models.PoliciesResponse:
        """Replaces the policies. They apply to every decision from then on. Without `retention`,
        it stays as it is."""
        body = creation(models.PutPolicies, approvals=approvals, retention=retention)
        return await self._call(operations.put_policies, body=body)


class Rules(AsyncResource):
    """Standing rules. They need a session: pass its token as `api_key`."""

    async def create(
        self,
        *,
        expires_at: datetime,
        max_uses: int,
        server_id: str | None = None,
        tool: str | None = None,
        agent: str | None = None,
        arguments: Conditions | None = None,
        from_review: ReviewedCall | None = None,
        idempotency_key: str | None = None,
    ) -> models.Rule:
        """Lets an agent call a tool without a review, if the arguments match the conditions.

        `from_review` takes the server, the tool and the agent from a call in a review. Without
        `arguments`, the rule then covers calls with exactly the arguments of that one.
        """
        body = creation(
            models.CreateRule,
            expires_at=expires_at,
            max_uses=max_uses,
            server_id=server_id,
            tool=tool,
            agent=agent,
            arguments=arguments,
            from_review=from_review,
        )
        response = await self._call(
            operations.create_rule, body=body, idempotency_key=idempotency_key
        )
        return response.rule

    def list(self, *, page_size: int | None = None) -> AsyncPages[models.Rule]:
        """The rules, newest first, including those that no longer work."""
        return self._offset_list(
            operations.list_rules, lambda r: r.rules, page_size, lambda each: each.id
        )

    async def get(self, rule: RuleRef) -> models.Rule:
        """The rule, with how often it was used and whether it still works."""
        return (await self._call(operations.get_rule, {"id": id_of(rule)})).rule

    async def delete(self, rule: RuleRef) -> None:
        """Revokes the rule: no call starts under it any more. It stays in the list."""
        await self._end(operations.delete_rule, {"id": id_of(rule)})
