"""Endpoints: standing rules."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from rota.auth.caller import Caller
from rota.auth.routing import allowed, secured_router
from rota.auth.schemas import DeletedResponse
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.description import documented
from rota.platform.http.responses import respond
from rota.platform.http.schemas import Limit, Offset, Text, path_id
from rota.platform.idempotency import IdempotencyKey
from rota.rules.schemas import CreateRule, RuleResponse, RulesResponse
from rota.rules.service import Rules

RuleId = Annotated[Text, path_id("rule", examples.RULE_ID)]
Reader = Annotated[Caller, Depends(allowed(session=True))]
Approver = Annotated[Caller, Depends(allowed(right="approve", session=True))]


def rule_routes(rules: Rules) -> APIRouter:
    router = secured_router("Rules")

    @router.post(
        "/api/rules",
        status_code=201,
        response_model=RuleResponse,
        summary="Create a rule",
        responses=documented(404, 409),
    )
    async def create_rule(
        caller: Approver, body: CreateRule, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Makes a standing rule: calls of one tool by one agent that match its conditions need no
        review. It is bound to the revision of the server, the accepted definition of the tool and
        the version of the agent, and void when one of them changes.

        A use is counted when a call starts. An account has at most 1,000 rules in force, and their
        conditions have at most 256 KiB together (409).
        """
        return respond(await rules.create(caller, body, idempotency_key))

    @router.get("/api/rules", summary="List rules")
    async def list_rules(caller: Reader, limit: Limit = 50, offset: Offset = 0) -> RulesResponse:
        """Returns a page of rules, newest first, including those that no longer work."""
        found, total = await rules.page(caller, limit, offset)
        return RulesResponse(rules=list(found), total=total)

    @router.get("/api/rules/{id}", summary="Get a rule", responses=documented(404))
    async def get_rule(caller: Reader, id: RuleId) -> RuleResponse:  # noqa: A002
        """Returns a rule."""
        return RuleResponse(rule=await rules.get(caller, ids.from_wire("rule", id)))

    @router.delete("/api/rules/{id}", summary="Delete a rule", responses=documented(404))
    async def delete_rule(caller: Approver, id: RuleId) -> DeletedResponse:  # noqa: A002
        """Revokes the rule. No call starts under it after the response. It stays in the list."""
        await rules.revoke(caller, ids.from_wire("rule", id))
        return DeletedResponse(id=id)

    return router
