"""Endpoints: the policies of an account."""

from typing import Annotated

from fastapi import APIRouter, Depends

from rota.auth.caller import Caller
from rota.auth.routing import allowed, secured_router
from rota.platform.http.description import documented
from rota.policies.schemas import PoliciesResponse, PutPolicies
from rota.policies.service import Policies

Reader = Annotated[Caller, Depends(allowed(session=True))]
Manager = Annotated[Caller, Depends(allowed(right="policies", session=True))]


def policy_routes(policies: Policies) -> APIRouter:
    router = secured_router("Policies")

    @router.get("/api/policies", summary="Get the policies")
    async def get_policies(caller: Reader) -> PoliciesResponse:
        """Returns who can decide in the account, what waits for a decision, and how many days the
        account keeps what is finished."""
        return policies.show(await policies.get(caller))

    @router.put("/api/policies", summary="Change the policies", responses=documented(409))
    async def put_policies(caller: Manager, body: PutPolicies) -> PoliciesResponse:
        """Replaces the policies. They apply to every decision from then on, also about what already
        waits, except that turning `secondPerson` off releases nothing that waits.

        With `secondPerson`, nobody can approve what they shaped (403 `SECOND_PERSON_REQUIRED`), and
        arguments that an approver changes wait for another approver. It needs two approvers (409).

        With `retention`, older data is deleted for good, within a day.
        """
        return policies.show(await policies.put(caller, body))

    return router
