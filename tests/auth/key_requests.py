"""Requests about API keys that several tests share, and routes that need each scope."""

from typing import Annotated, Any

import httpx
from fastapi import APIRouter, Depends

from rota.accounts import service as accounts
from rota.accounts.model import Role
from rota.auth.caller import ALL_SCOPES, Caller, Scope
from rota.auth.routing import allowed, secured_router
from rota.platform.db import Database
from rota.platform.ids import to_wire
from tests.service import Person, Service


def scoped_routes() -> APIRouter:
    """One route for each scope. The route needs only that scope."""
    router = secured_router("Tests")

    def add(scope: Scope) -> None:
        @router.get(f"/api/needs/{scope}", name=scope)
        async def needs(caller: Annotated[Caller, Depends(allowed(scope))]) -> dict[str, str]:
            return {"account": to_wire("acct", caller.account_id)}

    for scope in ALL_SCOPES:
        add(scope)
    return router


async def create_key(person: Person, /, **body: Any) -> dict[str, Any]:
    response = await person.post("/api/keys", {"name": "ci"} | body)
    assert response.status_code == 201, response.text
    created: dict[str, Any] = response.json()
    return created


async def with_key(service: Service, secret: str, path: str = "/api/me") -> httpx.Response:
    return await service.http.get(path, headers={"Authorization": f"Bearer {secret}"})


async def company_of(service: Service, owner: Person, **members: Person) -> str:
    """Creates a company with members in the roles that the keywords name. Returns its ID."""
    db = Database(service.database_url, pool_size=1)
    await db.open()
    try:
        account_id = await accounts.create_company(db, "Acme", owner.user_id, tier="basic")
        roles: dict[str, Role] = {"admin": "admin", "member": "member"}
        for role, person in members.items():
            await accounts.put_member(db, account_id, person.user_id, roles[role])
    finally:
        await db.close()
    return to_wire("acct", account_id)
