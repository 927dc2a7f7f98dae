"""Which cell a credential names, and what a cell without a name does with it."""

from base64 import urlsafe_b64encode

import pytest

from rota.auth import secrets
from rota.cells.destinations import CellNotFound, Destinations, UnknownCell, identity_of
from rota.cells.placement import Identity, in_order
from rota.notifications.unsubscribing import Subscription, UnsubscribeTokens
from rota.payments.stripe_webhook import account_of, names_of
from rota.platform import ids, json
from rota.platform.settings import Settings
from rota.platform.telemetry import without_secrets
from tests.assertions import assert_error
from tests.service import Person, Service

CELLS = ("east", "west")
ROUTES = Destinations(CELLS, "east")


def of(**headers: str) -> object:
    sent = [(name.encode(), value.encode()) for name, value in headers.items()]
    return ROUTES.of({"type": "http", "path": "/api/tasks", "headers": sent})


def test_a_key_names_its_cell() -> None:
    named, plain = secrets.new_secret("west"), secrets.new_secret()
    assert (secrets.cell_of(named), secrets.cell_of(plain)) == ("west", None)
    assert secrets.is_well_formed(named)
    assert secrets.visible_prefix(named) == named[: len("rota_west_") + 6]
    assert of(authorization=f"Bearer {named}") == "west"
    assert of(authorization=f"bearer {plain}") == "east"
    assert without_secrets(f"key {named} leaked") == "key [hidden] leaked"
    # The checksum covers the name.
    assert not secrets.is_well_formed(named.replace("west", "east"))
    for changed in (named[:-1], named + "x", named.replace("west", "WEST"), "rota__" + named[10:]):
        assert not secrets.is_well_formed(changed)


@pytest.mark.parametrize("sent", ["Basic x", "Bearer", "Bearer a.b.c", "Bearer x", ""])
def test_what_names_nobody_goes_anywhere(sent: str) -> None:
    assert of(authorization=sent) is None
    assert of(cookie="rota=x; other=y") is None
    assert of() is None


def test_unknown_cells_are_refused() -> None:
    with pytest.raises(UnknownCell, match="cell moon"):
        of(authorization=f"Bearer {secrets.new_secret('moon')}")
    # Its pages still load, so that the person can sign in again.
    sent = [(b"authorization", f"Bearer {secrets.new_secret('moon')}".encode())]
    for path in ("/", "/assets/x.js", "/acct_1/tasks", "/api/auth/config", "/openapi.json"):
        assert ROUTES.of({"type": "http", "path": path, "headers": sent}) is None
    with pytest.raises(CellNotFound):
        ROUTES.named("/cells/moon/webhooks/stripe")
    assert ROUTES.named("/cells/west/webhooks/stripe") == ("west", "/webhooks/stripe")
    assert ROUTES.named("/cells/west/api/tasks") is None


@pytest.mark.parametrize(
    "rest", ["../metrics", "a/%2E%2e/metrics", "a b", "a\rX: y", "a?b", "a#b", "caf\xe9"]
)
def test_a_path_that_could_mean_another_one_names_no_cell(rest: str) -> None:
    assert ROUTES.named(f"/cells/west/webhooks/{rest}") is None


def test_an_identity_is_looked_up_only_where_its_token_is_a_credential() -> None:
    token = compact_token({"typ": "at+jwt"}, {"iss": "https://idp.example", "sub": "ada"})
    sent = [(b"authorization", f"Bearer {token}".encode())]
    found = {
        path: ROUTES.of({"type": "http", "path": path, "headers": sent})
        for path in ("/mcp", "/a2a/tasks", "/mcpx", "/.well-known/x", "/webhooks/stripe", "/api/me")
    }
    ada = Identity("https://idp.example", "ada")
    assert [path for path, identity in found.items() if identity == ada] == ["/mcp", "/a2a/tasks"]
    assert set(found.values()) == {ada, None}


def compact_token(header: dict[str, str], claims: dict[str, str]) -> str:
    parts = (json.dumps(header), json.dumps(claims), b"unsigned")
    return ".".join(urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def test_the_order_of_cells_is_stable_and_even() -> None:
    people = [Identity("https://idp.example", str(number)) for number in range(1_000)]
    first = [in_order(person, ("a", "b"))[0] for person in people]
    assert 400 < first.count("a") < 600
    with_third = [in_order(person, ("c", "b", "a"))[0] for person in people]
    # A third cell only takes from the others. Nobody changes between the first two.
    assert all(new in (old, "c") for old, new in zip(first, with_third, strict=True))
    assert identity_of(None) is None
    assert identity_of("a.b.c") is None


def test_a_link_names_its_cell() -> None:
    user = ids.new_uuid()
    subscription = Subscription(user, user, "approval_waiting")
    west = UnsubscribeTokens([b"k" * 32], "west")
    assert west.read(west.sign(subscription)) == subscription
    # A link of a deployment without a name, and one that such a deployment cannot read.
    plain = UnsubscribeTokens([b"k" * 32])
    assert west.read(plain.sign(subscription)) == subscription
    assert plain.read(west.sign(subscription)) is None


def test_an_object_at_the_payment_processor_names_its_cell() -> None:
    account = ids.new_uuid()
    plain = {"account": str(account)}
    west = names_of("west", owns_nameless=False)
    assert account_of({**plain, "cell": "west"}, west) == account
    assert account_of({**plain, "cell": "west"}, names_of("east", owns_nameless=True)) is None
    assert account_of({**plain, "cell": "west"}, names_of(None, owns_nameless=True)) is None


def test_an_object_without_a_cell_belongs_to_the_first_cell_only() -> None:
    account = ids.new_uuid()
    plain = {"account": str(account)}
    urls = {"east": "https://east", "west": "https://west"}
    owners = [
        name
        for name in urls
        if account_of(
            plain, names_of(name, owns_nameless=Settings(cell=name, cells=urls).is_first_cell)
        )
    ]
    assert owners == ["east"]
    assert Settings().is_first_cell
    # Without ROTA_CELLS, a cell cannot know.
    assert Settings(cell="west").is_first_cell


async def test_a_deployment_without_a_name_issues_and_accepts_none(service: Service) -> None:
    person = await service.sign_in()
    answer = await person.post("/api/keys", {"name": "A program"})
    assert secrets.cell_of(answer.json()["secret"]) is None
    named = Person(service, "", secrets.new_secret("east"))
    assert_error(await named.get("/api/me"), 401, "AUTHENTICATION_ERROR")
    headers = {"Rota-Routing": "known-only"}
    token = await service.id_token("a-newcomer-of-one-deployment")
    signed_in = await service.http.post(
        "/api/auth/session", json={"idToken": token}, headers=headers
    )
    assert signed_in.status_code == 200
