"""Signing in from the command line: with a browser, with a code on another device, with a key."""

import json
import re
import socket
import stat
import struct
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import typer
from joserfc.jwk import RSAKey

from rota.cli import connection, login, profiles
from rota.cli.device import DeviceSignIn
from rota.cli.loopback import Receiver, SignInRefused
from rota.cli.profiles import Profile
from rota.platform.issuer import Issuer
from rota_sdk import Rota, models
from tests.auth.provider import Provider
from tests.cli.conftest import url_of
from tests.cli.terminal import Terminal
from tests.service import Person, Service


class Visitor:
    """A person with a browser, who signs in at the development identity provider."""

    def __init__(self, change: Callable[[str], str] = str) -> None:
        self.addresses: list[str] = []
        self.pages: list[httpx.Response] = []
        self._change = change
        self._thread: threading.Thread | None = None

    def open(self, address: str) -> bool:
        self.addresses.append(address)
        self._thread = threading.Thread(target=self._sign_in, args=(address,))
        self._thread.start()
        return True

    def join(self) -> None:
        assert self._thread is not None
        self._thread.join(30)

    def _sign_in(self, address: str) -> None:
        with httpx.Client(timeout=30) as http:
            page = http.get(address)
            (email, *_) = re.findall(r'name="email" value="([^"]+)"', page.text)
            chosen = http.post(page.url, data={"email": email})
            back = chosen.headers["location"]
            if self._change is not str:
                # Another site sends the browser here first.
                self.pages.append(http.get(self._change(back)))
            self.pages.append(http.get(back))


@pytest.fixture
def visitor(monkeypatch: pytest.MonkeyPatch) -> Visitor:
    made = Visitor()
    monkeypatch.setattr("webbrowser.open", made.open)
    return made


async def test_a_person_signs_in_with_a_browser_and_commands_use_the_session(
    office: Service, terminal: Terminal, visitor: Visitor
) -> None:
    done = await terminal.ok("login", url_of(office))
    visitor.join()
    assert done.out == f"Signed in at {url_of(office)} as ada@example.test.\n"
    # The service has yet to accept the code.
    assert "Continue in the terminal" in visitor.pages[-1].text
    query = parse_qs(urlsplit(visitor.addresses[0]).query)
    assert query["code_challenge_method"] == ["S256"]
    assert urlsplit(query["redirect_uri"][0]).hostname == "127.0.0.1"
    me = (await terminal.ok("whoami", "--json")).json
    assert me["user"]["email"] == "ada@example.test"
    listed = (await terminal.ok("profiles", "list")).out
    assert re.search(rf"\*\s+default\s+{url_of(office)}", listed)


async def test_the_file_of_the_profiles_is_only_for_its_user(
    office: Service, terminal: Terminal, visitor: Visitor
) -> None:
    await terminal.ok("login", url_of(office))
    visitor.join()
    assert stat.S_IMODE(terminal.profiles.stat().st_mode) == 0o600
    assert stat.S_IMODE(terminal.profiles.parent.stat().st_mode) == 0o700
    terminal.profiles.chmod(0o644)
    refused = await terminal("whoami")
    assert refused.code == 2
    assert refused.err == (
        f"Other users can read {terminal.profiles}, which has tokens. "
        f"Run: chmod 600 {terminal.profiles}\n"
    )


async def test_an_answer_with_another_state_is_not_used(
    office: Service, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = Visitor(lambda back: re.sub(r"state=[^&]+", "state=forged", back))
    monkeypatch.setattr("webbrowser.open", forged.open)
    await terminal.ok("login", url_of(office))
    forged.join()
    assert [page.status_code for page in forged.pages] == [404, 200]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"iss": "https://evil.example"},
            "Another identity provider answered. Run rota login again.\n",
        ),
        (
            {"code": None, "error": "access_denied", "error_description": "No\x1b[31m thanks."},
            "The identity provider refused: No⟨U+001B⟩[31m thanks.\n",
        ),
    ],
)
async def test_an_answer_without_a_code_of_the_issuer_is_refused(
    office: Service,
    terminal: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, str | None],
    reason: str,
) -> None:
    def answer(address: str) -> bool:
        query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        given = {"state": query["state"], "code": "x", **change}
        params = {name: value for name, value in given.items() if value is not None}
        thread = threading.Thread(
            target=lambda: httpx.get(query["redirect_uri"], params=params, timeout=30)
        )
        thread.start()
        return False

    monkeypatch.setattr("webbrowser.open", answer)
    done = await terminal("login", url_of(office))
    assert (done.code, done.err.splitlines(keepends=True)[-1]) == (1, reason)
    assert not terminal.profiles.exists()


async def test_without_an_answer_the_command_gives_up(
    office: Service, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.cli.login.TIMEOUT_S", 0.05)
    done = await terminal("login", url_of(office), "--no-browser")
    assert done.code == 1
    assert done.err.startswith("To sign in, open:\nhttp://127.0.0.1:")
    assert done.err.endswith("Sign-in timed out. Run rota login again.\n")


async def test_a_session_is_renewed_before_it_expires(
    office: Service, person: Person, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(terminal.home))
    connection.store("default", Profile(url_of(office), person.token))
    await terminal.ok("whoami")
    assert profiles.load().named["default"].token == person.token
    monkeypatch.setattr(connection, "RENEW_BELOW_S", 8 * 86_400)
    await terminal.ok("whoami")
    renewed = profiles.load().named["default"].token
    assert renewed is not None
    assert renewed != person.token
    expires_at = connection.expiry_of(renewed)
    assert expires_at is not None
    assert expires_at > time.time() + 6 * 86_400
    # While the service cannot renew it, the token that is still valid is used.
    await person.post("/api/auth/logout")
    done = await terminal("whoami")
    assert done.code == 1
    assert done.err.endswith("To sign in again: rota login\n")


async def test_signing_out_ends_the_session(
    office: Service, terminal: Terminal, visitor: Visitor
) -> None:
    await terminal.ok("login", url_of(office), "--profile", "work")
    visitor.join()
    stored = json.loads(terminal.profiles.read_text())
    token = stored["profiles"]["work"]["token"]
    assert (await terminal.ok("logout")).out == f"Signed out of {url_of(office)}.\n"
    refused = await office.http.get("/api/me", headers={"Authorization": f"Bearer {token}"})
    assert refused.status_code == 401
    assert token not in terminal.profiles.read_text()
    again = await terminal("logout")
    assert (again.code, again.err) == (1, "You are not signed in.\n")


async def test_signing_out_selects_no_other_service(
    office: Service, person: Person, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(terminal.home))
    connection.store("home", Profile("http://127.0.0.1:1", "rota_home"))
    connection.store("work", Profile(url_of(office), person.token))
    await terminal.ok("logout")
    done = await terminal("tasks", "list")
    assert (done.code, done.err) == (
        1,
        "No profile is selected. Run: rota profiles use NAME (home)\n",
    )
    listed = (await terminal.ok("profiles", "list", "--json")).json["profiles"]
    assert [(each["name"], each["current"]) for each in listed] == [("home", False)]
    await terminal.ok("profiles", "use", "home")
    assert profiles.load().current == "home"


async def test_signing_in_again_keeps_the_profile_and_its_account(
    office: Service, terminal: Terminal, visitor: Visitor
) -> None:
    await terminal.ok("login", url_of(office), "--profile", "work")
    visitor.join()
    me = (await terminal.ok("whoami", "--json")).json
    await terminal.ok("profiles", "use", "work", "--account", me["account"]["id"])
    again = (await terminal.ok("login", "--json")).json
    visitor.join()
    assert (again["profile"], again["account"]) == ("work", me["account"]["id"])
    # Another user may not have the account that was selected.
    await terminal.ok("profiles", "use", "work", "--account", "acct_" + "0" * 32)
    other = (await terminal.ok("login", "--json")).json
    visitor.join()
    assert (other["profile"], other["account"]) == ("work", None)
    assert list(json.loads(terminal.profiles.read_text())["profiles"]) == ["work"]


async def test_a_refused_credential_is_named_by_where_it_comes_from(
    office: Service, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = {"ROTA_URL": url_of(office), "ROTA_API_KEY": "rota_wrong"}
    done = await terminal("tasks", "list", **key)
    assert (done.code, done.err.endswith(" Check ROTA_API_KEY.\n")) == (1, True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(terminal.home))
    connection.store("work", Profile(url_of(office), "rota_wrong"))
    named = await terminal("tasks", "list", "--profile", "work", "--json")
    error = json.loads(named.err)["error"]
    assert named.code == 1
    assert error["code"] == "AUTHENTICATION_ERROR"
    assert error["message"].endswith(" To sign in again: rota login --profile work")
    assert error["requestId"]


@pytest.mark.parametrize(
    "endpoint", ["http://login.example/authorize", "file:///etc/passwd", "javascript:alert(1)"]
)
def test_an_authorization_endpoint_that_is_not_encrypted_is_not_opened(
    endpoint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    issuer = models.Issuer(
        issuer="https://login.example",
        name="Example",
        client_id="web",
        cli_client_id="cli",
        cli_redirect_uri=None,
        authorization_endpoint=endpoint,
    )
    with Rota(base_url="http://127.0.0.1:1") as client, pytest.raises(typer.Exit):
        login._by_browser(client, issuer, opens=True)
    refused = f"{endpoint} is not encrypted, so it is not used to sign in.\n"
    assert (opened, capsys.readouterr().err) == ([], refused)


async def test_a_user_without_a_home_folder_is_one_line(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    for command in (("tasks", "list"), ("login",), ("logout",), ("profiles", "list")):
        done = await terminal(*command, XDG_CONFIG_HOME=None)
        assert done.code == 2
        assert done.err.startswith("This user has no home folder. Set HOME")


def test_a_browser_that_resets_its_connection_is_not_shown(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with Receiver() as receiver:
        assert receiver.redirect_uri is not None
        port = urlsplit(receiver.redirect_uri).port
        with socket.create_connection(("127.0.0.1", port)) as connected:
            # With this option, closing sends a reset.
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connected.sendall(b"GET /callback?state=x HTTP/1.1\r\n")
        with pytest.raises(SignInRefused, match="Sign-in timed out"):
            receiver.wait("https://login.example", 0.3)
    assert capfd.readouterr() == ("", "")


def test_a_failure_of_the_provider_does_not_end_the_wait_for_a_code() -> None:
    answers: list[httpx.Response | httpx.ConnectError] = [
        httpx.ConnectError("refused"),
        httpx.Response(502, text="<html>"),
        httpx.Response(503, json={"error": "temporarily_unavailable"}),
        httpx.Response(200, json={"id_token": "token"}),
    ]

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/device":
            device = {"user_code": "W", "device_code": "d", "verification_uri": "https://l/"}
            return httpx.Response(200, json={**device, "interval": -3})
        if request.url.path != "/token":
            endpoints = {name: f"https://l/{path}" for name, path in ENDPOINTS.items()}
            return httpx.Response(200, json={"issuer": "https://l", **endpoints})
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    waits: list[float] = []
    with httpx.Client(transport=httpx.MockTransport(answer)) as http:
        sign_in = DeviceSignIn("https://l", "cli", http)
        assert sign_in.id_token(sign_in.begin(), waits.append) == "token"
    assert waits == [1, 6, 11, 16]


ENDPOINTS = {"token_endpoint": "token", "device_authorization_endpoint": "device"}


async def test_an_api_key_is_read_from_a_pipe_and_never_shown(
    office: Service, person: Person, terminal: Terminal
) -> None:
    secret = (await person.post("/api/keys", {"name": "cli"})).json()["secret"]
    done = await terminal.ok("login", url_of(office), "--key", typed=f"{secret}\n")
    assert secret not in done.out + done.err
    await terminal.ok("tasks", "list")
    assert secret not in (await terminal.ok("profiles", "list", "--json")).out
    out = (await terminal.ok("logout", "--json")).json
    assert out == {"profile": "default", "url": url_of(office), "loggedOut": True}
    again = await terminal.ok("login", url_of(office), "--key", "--json", typed=f"{secret}\n")
    assert again.json["user"]["id"]
    wrong = await terminal("login", url_of(office), "--key", typed="rota_wrong\n")
    assert wrong.code == 1
    assert "rota login" in wrong.err
    empty = await terminal("login", url_of(office), "--key", typed="\n")
    assert (empty.code, empty.err) == (2, "The API key is empty.\n")


@pytest.fixture(scope="module")
async def provider() -> AsyncIterator[Provider]:
    key = RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256", "kid": "rsa"})
    async with Provider(key).serve() as started:
        yield started


@pytest.fixture(scope="module")
async def with_device(service_a: Service, provider: Provider) -> AsyncIterator[Service]:
    """A service whose identity provider can sign in people on other devices."""
    setting = Issuer(issuer=provider.issuer, client_id="web", cli_client_id="cli", name="Devices")
    async with service_a.process(oidc_issuers=(setting,)) as service:
        yield service


@pytest.fixture
def issuer(provider: Provider) -> Provider:
    provider.discovery = {
        "issuer": provider.issuer,
        "jwks_uri": f"{provider.issuer}/jwks",
        "token_endpoint": f"{provider.issuer}/token",
        "device_authorization_endpoint": f"{provider.issuer}/device",
    }
    return provider


async def test_a_person_signs_in_with_a_code_on_another_device(
    with_device: Service, issuer: Provider, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    answers: list[Any] = [
        {"error": "authorization_pending"},
        {"error": "slow_down"},
        {"id_token": issuer.mint("rsa", aud="cli", email="eve@example.test").token()},
    ]
    issuer.device = {
        "user_code": "WDJB-MJHT",
        "device_code": "secret",
        "verification_uri": "https://login.example/device",
        "verification_uri_complete": "https://login.example/device?code=WDJB-MJHT",
        "interval": 7,
    }

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        issuer.tokens = answers.pop(0)

    monkeypatch.setattr(DeviceSignIn.id_token, "__defaults__", (sleep,))
    done = await terminal.ok("login", url_of(with_device), "--device")
    assert done.out == f"Signed in at {url_of(with_device)} as eve@example.test.\n"
    assert "Open https://login.example/device on any device and enter the code:  WDJB" in done.err
    # RFC 8628: five seconds more after `slow_down`.
    assert waits == [7, 7, 12]
    forms = [form for _, form in issuer.token_requests]
    assert {(form["client_id"], form["device_code"]) for form in forms} == {("cli", "secret")}


@pytest.mark.parametrize(
    ("discovery", "device", "tokens", "reason"),
    [
        ({"device_authorization_endpoint": None}, {}, {}, "does not support sign-in with a code"),
        ({"issuer": "https://evil.example"}, {}, {}, "has no valid discovery document"),
        ({}, {}, {"error": "access_denied"}, "The identity provider refused: access_denied"),
        ({}, {"expires_in": 0.2}, b"<html>", "Sign-in timed out. The answer of "),
        ({}, {"expires_in": 0}, {}, "Sign-in timed out"),
        ({"token_endpoint": None}, {}, {}, "has no valid discovery document"),
        ({"token_endpoint": "http://evil.example/"}, {}, {}, "is not encrypted"),
        ({"device_authorization_endpoint": "http://[/"}, {}, {}, "is not encrypted"),
        ({"device_authorization_endpoint": "https://x/\x01"}, {}, {}, "Cannot reach"),
        ({}, {"user_code": None, "expires_in": "soon"}, {}, "is not complete"),
        ({}, {"interval": None}, {}, "is not complete"),
        ({}, {"device_code": ...}, {}, "is not complete"),
    ],
)
async def test_a_refused_code_on_another_device_is_one_line(
    with_device: Service,
    issuer: Provider,
    terminal: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    discovery: dict[str, Any],
    device: dict[str, Any],
    tokens: Any,
    reason: str,
) -> None:
    monkeypatch.setattr(DeviceSignIn.id_token, "__defaults__", (lambda _: None,))
    issuer.discovery |= discovery
    issuer.device = {
        "user_code": "W",
        "device_code": "d",
        "verification_uri": "https://login.example/device",
        **device,
    }
    issuer.device = {name: value for name, value in issuer.device.items() if value is not ...}
    issuer.tokens = tokens
    done = await terminal("login", url_of(with_device), "--device")
    assert done.code == 1
    assert reason in done.err.splitlines()[-1]


async def test_commands_say_how_to_sign_in(
    office: Service, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nobody = await terminal("tasks", "list")
    assert nobody.code == 1
    assert nobody.err == (
        "You are not signed in. Run: rota login URL, or set ROTA_URL and ROTA_API_KEY.\n"
    )
    elsewhere = await terminal("tasks", "list", ROTA_URL="https://rota.example.com")
    assert (elsewhere.code, elsewhere.err) == (
        1,
        "You are not signed in at https://rota.example.com. "
        "Run: rota login https://rota.example.com\n",
    )
    alone = await terminal("tasks", "list", ROTA_API_KEY="rota_x")
    assert (alone.code, alone.err) == (2, "ROTA_API_KEY is set, but ROTA_URL is not. Set both.\n")
    which = await terminal("login")
    assert (which.code, which.err) == (
        2,
        "Which service? For example: rota login https://rota.example.com\n",
    )
    wrongs = ("ftp://rota.example.com", "https://", "https://me:pw@host", "http://h:99999")
    for wrong in (
        *wrongs,
        "https://x/\x01",
        "https://xn--a.example",
        "https://a..b",
        "http://[::g]",
    ):
        done = await terminal("login", wrong)
        assert done.code == 2
        assert done.err.endswith("is not a URL such as https://rota.example.com.\n")
    away = {"ROTA_URL": "http://rota.example.com", "ROTA_API_KEY": "rota_x"}
    for command in (("tasks", "list"), ("login",)):
        plain = await terminal(*command, **away)
        assert plain.code == 2
        assert plain.err.startswith("http://rota.example.com is not encrypted. Use https://, or")
    down = await terminal("tasks", "list", ROTA_URL="http://127.0.0.1:1", ROTA_API_KEY="rota_x")
    assert down.code == 1
    assert "http://127.0.0.1:1" in down.err
    assert down.err.endswith(". Check the URL and that the service runs.\n")
    assert len(down.err.splitlines()) == 1
    unknown = await terminal("tasks", "list", "--profile", "home")
    assert (unknown.code, unknown.err) == (2, "There is no profile 'home'. Profiles: none.\n")


async def test_profiles_keep_several_services_and_accounts(
    office: Service, person: Person, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(terminal.home))
    connection.store("home", Profile("http://127.0.0.1:1", "rota_home"))
    connection.store("work", Profile(url_of(office), person.token))
    used = await terminal.ok("profiles", "use", "home", "--account", "company", "--json")
    assert used.json == {"profile": "home", "url": "http://127.0.0.1:1", "account": "company"}
    assert "Commands use home" in (await terminal.ok("profiles", "use", "home")).out
    stored = profiles.load()
    assert (stored.current, stored.named["home"].account) == ("home", "company")
    # A profile that is named counts more than the environment.
    await terminal.ok("whoami", "--profile", "work", ROTA_URL="http://x", ROTA_API_KEY="rota_x")
    missing = await terminal("profiles", "use", "other")
    assert (missing.code, missing.err) == (
        2,
        "There is no profile 'other'. See: rota profiles list\n",
    )
    terminal.profiles.write_text("{")
    broken = await terminal("profiles", "list")
    assert broken.code == 2
    assert broken.err.endswith("Delete it, and sign in again: rota login\n")


async def test_a_folder_that_cannot_be_written_is_one_line(
    office: Service, person: Person, terminal: Terminal
) -> None:
    secret = (await person.post("/api/keys", {"name": "cli"})).json()["secret"]
    terminal.home.write_text("A file, not a folder.")
    done = await terminal("login", url_of(office), "--key", typed=f"{secret}\n")
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith(f"Cannot read {terminal.profiles}: ")


async def test_signing_out_of_a_service_that_is_gone_says_so(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(terminal.home))
    connection.store("default", Profile("http://127.0.0.1:1", "a.b.c"))
    done = await terminal("logout")
    assert done.code == 1
    assert done.err.startswith("The profile is deleted, but the session did not end: ")
    assert profiles.load().named == {}


def test_two_commands_at_the_same_time_lose_no_profile(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(terminal.home))

    def add(name: str) -> None:
        with profiles.changing() as stored:
            stored[0] = replace(stored[0].put(name, Profile(f"https://{name}.example")))

    threads = [threading.Thread(target=add, args=(f"p{number}",)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(profiles.load().named) == 20
