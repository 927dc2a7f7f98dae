"""The table of operations and roles: the page is current, and the service does what it says."""

import asyncio
import re
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from rota import access_table
from rota.access_table import CREDENTIALS, STANDINGS, Credential, Operation, Undecided
from rota.app import create_app
from rota.auth.caller import ALL_SCOPES
from rota.auth.routing import SecuredRoute, secured_router
from rota.platform.ids import to_wire
from rota.platform.settings import Settings
from tests.companies.world import Company, busy_company
from tests.service import Person, Service

PAGE = Path(__file__).parents[2] / "docs" / "access.md"
# Everything below /api needs a credential, except signing in, and unsubscribing with the link in an
# email.
PUBLIC = {
    *("/api/auth/config", "/api/auth/session", "/api/auth/code", "/api/auth/refresh"),
    "/api/unsubscribe/{token}",
}
UNKNOWN = "01a19b981dc0709986b0d5496f03675a"
REFUSED = (401, 403)


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == access_table.page(), "Run: make openapi"


@pytest.mark.parametrize("variant", ["a", "b"])
def test_every_route_of_the_api_says_who_can_use_it(variant: str) -> None:
    app = create_app(Settings(env="test", variant=variant))
    found = list(access_table.operations(app))
    assert len(found) > 60
    open_to_all = {each.path for each in found if each.needs is None}
    assert {path for path in open_to_all if path.startswith("/api/")} == PUBLIC
    hidden = [
        route.path_format
        for route in app.routes
        if isinstance(route, APIRoute) and isinstance(route, SecuredRoute)
        if not route.include_in_schema
    ]
    assert hidden == []


def test_a_route_that_does_not_say_it_is_found() -> None:
    router = secured_router("Tests")

    @router.get("/api/forgotten")
    async def forgotten() -> None: ...

    app = FastAPI()
    app.router.routes.extend(router.routes)
    with pytest.raises(Undecided, match="/api/forgotten"):
        list(access_table.operations(app))


class Walk:
    """A company, and somebody of each standing with both kinds of credentials."""

    def __init__(self, service: Service, company: Company) -> None:
        self.service = service
        self.company = company
        self.people: dict[str, Person] = {}
        self.keys: dict[str, str] = {}

    @classmethod
    async def start(cls, service: Service) -> "Walk":
        company = await busy_company(service)
        walk = cls(service, company)
        walk.people["owner"] = company.owner
        for standing in STANDINGS[1:-1]:
            # A member cannot create keys. The keys of an admin stay when the role changes.
            walk.people[standing.name] = await company.join(role="admin")
        walk.people["stranger"] = await service.sign_in()
        for name, person in walk.people.items():
            selected = {} if name == "stranger" else company.selected
            key = await person.post(
                "/api/keys", {"name": "k", "scopes": list(ALL_SCOPES)}, headers=selected
            )
            walk.keys[name] = key.json()["secret"]
        for standing in STANDINGS[1:-1]:
            changed = await company.change(
                walk.people[standing.name],
                role=standing.role,
                approver=standing.approver or standing.role != "member",
            )
            assert changed.status_code == 200, changed.text
        return walk

    async def status(
        self, operation: Operation, name: str, credential: Credential, *, own: bool = False
    ) -> int:
        """The status of a request that is allowed or not, but changes nothing: IDs that do not
        exist, and no body. With `own`, the path names the person."""
        path = operation.path
        if own:
            path = path.replace("{userId}", to_wire("user", self.people[name].user_id))
        if path.startswith("/api/companies/{id}"):
            path = path.replace("{id}", self.company.id)
        path = re.sub(r"\{[a-zA-Z]+\}", UNKNOWN, path)
        person = self.people[name]
        if path == "/api/auth/logout":
            # It ends the session, so it gets one of its own.
            person = await self.service.sign_in(person.subject)
        token = person.token if credential == "session" else self.keys[name]
        headers = {"Authorization": f"Bearer {token}"}
        if name != "stranger" or operation.needs is None or operation.needs.account:
            headers |= self.company.selected
        body: dict[str, str] | None = None if operation.method in ("GET", "DELETE") else {}
        request = self.service.http.build_request(
            operation.method, path, headers=headers, json=body
        )
        response = await self.service.http.send(request, stream=True)
        await response.aclose()
        return response.status_code


async def test_the_service_does_what_the_table_says(service: Service) -> None:
    app = create_app(Settings(env="test", variant=service.variant))
    walk = await Walk.start(service)
    secured = [each for each in access_table.operations(app) if each.needs is not None]
    wrong, checked = [], 0
    for operation in secured:
        cases = [(s, c) for s in STANDINGS for c in CREDENTIALS]
        found = await asyncio.gather(*[walk.status(operation, s.name, c) for s, c in cases])
        for (standing, credential), status in zip(cases, found, strict=True):
            checked += 1
            assert status != 429
            assert status < 500, (operation, status)
            admitted = status not in REFUSED
            if standing.role is None and operation.path.startswith("/api/companies/{id}"):
                # To a stranger, the company does not exist. A key is refused first.
                admitted = status != 404 and admitted
            if admitted != operation.admits(standing, credential):
                where = f"{operation.method} {operation.path}"
                wrong.append((where, standing.name, credential, status))
    assert wrong == []
    assert checked == len(secured) * 10
    # Last, because the members leave. The keys first, because they stop working then.
    [leaving] = [each for each in secured if each.needs is not None and each.needs.own]
    for credential in reversed(CREDENTIALS):
        for standing in STANDINGS:
            status = await walk.status(leaving, standing.name, credential, own=True)
            admitted = status in (200, 409)
            assert admitted == leaving.admits(standing, credential, own=True), standing
    assert len(await walk.company.members()) == 1


async def test_a_key_without_the_scopes_of_a_route_is_refused(service_a: Service) -> None:
    person = await service_a.sign_in()
    key = await person.post("/api/keys", {"name": "k", "scopes": ["agents:read"]})
    auth = {"Authorization": f"Bearer {key.json()['secret']}"}
    app = create_app(Settings(env="test", variant="a"))

    async def send(operation: Operation) -> httpx.Response:
        path = re.sub(r"\{[a-zA-Z]+\}", UNKNOWN, operation.path)
        body: dict[str, str] | None = None if operation.method in ("GET", "DELETE") else {}
        return await service_a.http.request(operation.method, path, headers=auth, json=body)

    scoped = [
        each
        for each in access_table.operations(app)
        if each.needs is not None and set(each.needs.scopes) - {"agents:read"}
    ]
    assert len(scoped) > 40
    answers = await asyncio.gather(*map(send, scoped))
    assert {each.status_code for each in answers} == {403}
