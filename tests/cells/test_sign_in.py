"""Signing in through the router: by ID token, by code and with a chosen cell."""

import asyncio
from typing import Any

import httpx
import pytest
from joserfc.jwk import RSAKey

from rota.cells.cell import Cell
from rota.cells.placement import Identity
from rota.cells.sign_in import SignIns
from rota.dev.stack import Stack
from rota.notifications.unsubscribing import Subscription, UnsubscribeTokens
from rota.platform import ids
from tests.assertions import assert_error
from tests.auth.browser import Browser
from tests.auth.provider import Provider
from tests.cells.world import NAMES, World, assert_refused, cell_of, two_cells
from tests.service import Person
from tests.tasks.world import newcomer

BOTH = "application/json, text/event-stream"
ASKED = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


def token_of(response: httpx.Response) -> Person:
    assert response.status_code == 200, response.text
    return Person(None, "", response.json()["token"])  # type: ignore[arg-type]


async def test_a_code_signs_in_whichever_cell_has_the_account(world: World) -> None:
    seen = set()
    async with Browser(world.router) as browser:
        for _ in range(2):
            signed_in = await browser.sign_in()
            assert signed_in.json() == {"token": None}
            me = await browser.me()
            assert me.status_code == 200
            seen.add(me.json()["user"]["id"])
        again = await browser.exchange(await browser.code(), cookie=False, nonce="forged")
        assert_error(again, 401, "AUTHENTICATION_ERROR")
    # The same person in the same cell, each time.
    assert len(seen) == 1


async def test_a_code_of_a_person_in_each_cell_signs_in_there(world: World) -> None:
    """The first cell exchanges every code, and hands the ID token on."""
    for name in NAMES:
        person = await world.person_of(name)
        async with Browser(world.router) as browser:
            code = await browser.code(email=f"{person.subject}@example.test")
            signed_in = await browser.exchange(code, cookie=False)
            assert cell_of(token_of(signed_in)) == name
            again = Person(world.router, "", token_of(signed_in).token)
            me = await again.get("/api/me")
            assert me.json()["user"]["id"] == ids.to_wire("user", person.user_id)


async def test_a_cell_declines_a_code_of_a_stranger_only_for_the_router(world: World) -> None:
    west = world.cells["west"]
    token = await west.id_token("a-stranger-of-west")
    headers = {"Rota-Routing": "known-only"}
    declined = await west.http.post("/api/auth/session", json={"idToken": token}, headers=headers)
    assert_error(declined, 421, "MISDIRECTED_REQUEST")
    # The router removes the header of a client, and the token was not used up.
    accepted = await world.router.http.post(
        "/api/auth/session", json={"idToken": token}, headers=headers
    )
    assert accepted.status_code == 200


async def test_a_client_can_choose_the_cell(world: World) -> None:
    for name in NAMES:
        token = await world.router.id_token(f"chooser-of-{name}")
        answer = await world.router.http.post(
            "/api/auth/session", json={"idToken": token}, headers={"Rota-Cell": name}
        )
        assert cell_of(token_of(answer)) == name
        # Later it needs no choice.
        again = await world.router.sign_in(f"chooser-of-{name}")
        assert cell_of(again) == name
    token = await world.router.id_token("chooser-by-cookie")
    answer = await world.router.http.post(
        "/api/auth/session", json={"idToken": token}, headers={"Cookie": "a=b; rota-cell=west"}
    )
    assert cell_of(token_of(answer)) == "west"
    answer = await world.router.http.post(
        "/api/auth/session", json={"idToken": "x"}, headers={"Rota-Cell": "moon"}
    )
    assert_refused(answer, 400, "VALIDATION_ERROR")
    # A link that anybody can send must not stop sign-ins.
    token = await world.router.id_token("chooser-by-cookie")
    answer = await world.router.http.post(
        "/api/auth/session", json={"idToken": token}, headers={"Cookie": "rota-cell=moon"}
    )
    assert cell_of(token_of(answer)) == "west"


async def accounts_of(world: World, subject: str) -> list[str]:
    """The cells that know the identity."""
    found = []
    for name, cell in world.cells.items():
        token = await cell.id_token(subject)
        answer = await cell.http.post(
            "/api/auth/session", json={"idToken": token}, headers={"Rota-Routing": "find"}
        )
        if answer.status_code == 200:
            assert answer.json() == {"token": None}
            found.append(name)
    return found


async def test_a_choice_gives_nobody_a_second_account(world: World) -> None:
    for name in NAMES:
        other = "east" if name == "west" else "west"
        person = await world.person_of(name)
        token = await world.router.id_token(person.subject)
        refused = await world.router.http.post(
            "/api/auth/session", json={"idToken": token}, headers={"Rota-Cell": other}
        )
        assert_refused(refused, 409, "CONFLICT")
        assert f"Your account is in cell {name}" in refused.json()["error"]["message"]
        # The link of an invitation signs in to the account that the person has.
        again = await world.router.http.post(
            "/api/auth/session", json={"idToken": token}, headers={"Cookie": f"rota-cell={other}"}
        )
        assert cell_of(token_of(again)) == name
        assert await accounts_of(world, person.subject) == [name]


async def test_two_first_sign_ins_with_different_choices_make_one_account(world: World) -> None:
    for number in range(5):
        subject = f"two-choices-{number}"
        tokens = [await world.router.id_token(subject) for _ in range(3)]
        choices: list[dict[str, str]] = [{"Rota-Cell": name} for name in NAMES]
        answers = await asyncio.gather(
            *[
                world.router.http.post(
                    "/api/auth/session", json={"idToken": token}, headers=headers
                )
                for token, headers in zip(tokens, [*choices, {}], strict=True)
            ]
        )
        assert {answer.status_code for answer in answers} <= {200, 409}
        assert len(await accounts_of(world, subject)) == 1


async def test_a_page_with_https_chooses_with_a_cookie_that_no_other_host_can_set() -> None:
    cells = {name: Cell(name, "http://127.0.0.1:1") for name in NAMES}
    public = SignIns(cells, (), local=False)
    assert public._choice([(b"cookie", b"rota-cell=west")]) == (None, False)
    assert public._choice([(b"cookie", b"__Host-rota-cell=west")]) == ("west", False)


async def test_a_question_of_a_newer_router_is_refused(world: World) -> None:
    token = await world.router.id_token("asked-by-a-newer-router")
    answer = await world.cells["east"].http.post(
        "/api/auth/session", json={"idToken": token}, headers={"Rota-Routing": "guess"}
    )
    assert_error(answer, 400, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"[]", 400), (b'{"idToken": 1}', 400), (b'{"idToken": "a.b.c"}', 401)],
)
async def test_what_is_no_sign_in_gets_the_error_of_a_cell(
    world: World, body: bytes, status: int
) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await world.router.http.post("/api/auth/session", content=body, headers=headers)
    assert answer.status_code == status
    assert answer.headers["ratelimit-limit"]


async def test_a_sign_in_that_is_too_large_is_refused(world: World) -> None:
    answer = await world.router.http.post("/api/auth/session", json={"idToken": "x" * 70_000})
    assert_refused(answer, 413, "PAYLOAD_TOO_LARGE")


async def test_an_invitation_works_in_the_cell_of_its_company(world: World) -> None:
    owner = await world.person_of("west")
    company = await owner.post("/api/companies", {"name": "West Ltd"})
    assert company.status_code == 201, company.text
    account_id = company.json()["account"]["id"]
    stranger = await world.person_of("east")
    email = f"{stranger.subject}@example.test"
    invited = await owner.post(
        f"/api/companies/{account_id}/invitations",
        {"email": email, "role": "member"},
        headers={"X-Service-Account": account_id},
    )
    assert invited.status_code == 201, invited.text
    token = invited.json()["url"].partition("#")[2]
    assert token.startswith("invite_west_")
    refused = await stranger.get(f"/api/invitations/{token}")
    assert_error(refused, 421, "MISDIRECTED_REQUEST")
    assert "an address that you have not signed in with" in refused.json()["error"]["message"]
    # A new person who opens the link gets an account in that cell.
    subject = f"guest-{ids.new_uuid().hex}"
    invited = await owner.post(
        f"/api/companies/{account_id}/invitations",
        {"email": f"{subject}@example.test", "role": "member"},
        headers={"X-Service-Account": account_id},
    )
    token = invited.json()["url"].partition("#")[2]
    id_token = await world.router.id_token(subject)
    first = await world.router.http.post(
        "/api/auth/session", json={"idToken": id_token}, headers={"Cookie": "rota-cell=west"}
    )
    guest = Person(world.router, subject, token_of(first).token)
    accepted = await guest.post(f"/api/invitations/{token}/accept", {})
    assert accepted.status_code == 200, accepted.text
    nameless = token.replace("invite_west_", "invite_")
    assert (await guest.get(f"/api/invitations/{nameless}")).status_code == 404


async def test_a_link_to_unsubscribe_reaches_its_cell(world: World) -> None:
    for name, service in world.cells.items():
        person = await world.person_of(name)
        subscription = Subscription(person.user_id, person.user_id, "approval_waiting")
        link = UnsubscribeTokens(service.settings.secret_keys, name).sign(subscription)
        assert link.startswith(f"{name}.")
        answer = await world.router.http.get(f"/api/unsubscribe/{link}")
        assert answer.status_code == 200, answer.text
        other = world.cells["east" if name == "west" else "west"]
        refused = await other.http.get(f"/api/unsubscribe/{link}")
        assert_error(refused, 421, "MISDIRECTED_REQUEST")
        if name == NAMES[0]:
            nameless = UnsubscribeTokens(service.settings.secret_keys).sign(subscription)
            assert (await world.router.http.get(f"/api/unsubscribe/{nameless}")).status_code == 200
    missing = await world.router.http.get("/api/unsubscribe/moon.x")
    assert_refused(missing, 404, "NOT_FOUND")


async def test_an_access_token_finds_the_cell_of_its_person(stack: Stack) -> None:
    key = RSAKey.generate_key(2048, {"kid": "rs", "use": "sig", "alg": "RS256"})
    async with (
        Provider(key).serve() as provider,
        two_cells(stack, names=("north", "south"), oidc_issuers=(provider.setting,)) as world,
    ):
        http, public_url = world.router.http, world.router.settings.public_url

        async def ask(subject: str, path: str = "/mcp", body: Any = ASKED) -> httpx.Response:
            made = provider.mint("rs", sub=subject, aud=public_url + path, scope="openid")
            token = made.token({"typ": "at+jwt"})
            headers = {"Authorization": f"Bearer {token}", "Accept": BOTH, "A2A-Version": "1.0"}
            return await http.post(path, json=body, headers=headers)

        seen: set[str] = set()
        for number in range(40):
            if seen == {"north", "south"}:
                break
            subject = f"somebody-{number}"
            assert_refused(await ask(subject), 401, "AUTHENTICATION_ERROR")
            token = provider.mint("rs", sub=subject).token()
            person = token_of(await http.post("/api/auth/session", json={"idToken": token}))
            seen.add(cell_of(person))
            for _ in range(2):
                answer = await ask(subject)
                assert answer.status_code == 200, answer.text
                assert "create_task" in answer.text
            world.app._homes.drop(Identity(provider.setting.issuer, subject))
            answer = await ask(subject, "/a2a", {**ASKED, "method": "ListTasks"})
            assert answer.status_code == 200, answer.text
        assert seen == {"north", "south"}
        forged = provider.mint("rs", sub="somebody-0", aud="https://elsewhere.example")
        headers = {"Authorization": f"Bearer {forged.token({'typ': 'at+jwt'})}"}
        refused = await http.post("/mcp", json=ASKED, headers=headers)
        assert refused.status_code == 401
        # The cell itself refuses it, and says where the client can get a token.
        assert "resource_metadata" in refused.headers["www-authenticate"]
        # A home that knows the person no longer is forgotten.
        [lost] = [name for name in seen if name != cell_of(person)]
        world.app._homes.put(Identity(provider.setting.issuer, subject), lost)
        assert_refused(await ask(subject), 503, "SERVICE_UNAVAILABLE")
        assert (await ask(subject)).status_code == 200


async def test_nameless_credentials_belong_to_the_first_cell(world: World) -> None:
    """What a deployment issued before it became a cell keeps working."""
    east = world.cells["east"]
    old = await newcomer(east)
    assert old.token.count("_") == 1
    answer = await Person(world.router, "", old.token).get("/api/me")
    assert answer.status_code == 200
    assert answer.json()["account"]["id"] == ids.to_wire("acct", old.user_id)
