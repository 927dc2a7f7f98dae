"""Signing in from the command line with a browser or with a key, and signing out."""

import json
import re
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import typer

from rota.cli import connection, login, profiles
from rota.cli.loopback import Receiver, SignInRefused
from rota.cli.profiles import Profile
from rota_sdk import Rota, models
from tests.cli.conftest import url_of
from tests.cli.terminal import Terminal
from tests.runs.runner import until
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
            "The identity provider refused the sign-in: No⟨U+001B⟩[31m thanks.\n",
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


async def test_signing_in_again_keeps_the_key_of_rota_mcp_and_signing_out_revokes_it(
    office: Service, terminal: Terminal, visitor: Visitor
) -> None:
    await terminal.ok("login", url_of(office))
    visitor.join()
    made = (await terminal.ok("keys", "create", "For rota mcp", "--json")).json
    stored = json.loads(terminal.profiles.read_text())
    keys = {"personal": {"id": made["key"]["id"], "secret": made["secret"]}}
    stored["profiles"]["default"]["mcp_keys"] = keys
    terminal.profiles.write_text(json.dumps(stored))
    again = await terminal.ok("login")
    visitor.join()
    assert "was not revoked" not in again.err
    kept = json.loads(terminal.profiles.read_text())["profiles"]["default"]
    assert kept["mcp_keys"] == keys
    headers = {"Authorization": f"Bearer {made['secret']}"}
    assert (await office.http.get("/api/me", headers=headers)).status_code == 200
    await terminal.ok("logout")

    async def status() -> int:
        return (await office.http.get("/api/me", headers=headers)).status_code

    await until(status, lambda seen: seen == 401)


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


def issuer_at(endpoint: str) -> models.Issuer:
    return models.Issuer(
        issuer="https://login.example",
        name="Example",
        client_id="web",
        cli_client_id="cli",
        cli_redirect_uri=None,
        authorization_endpoint=endpoint,
    )


def test_a_provider_under_localhost_is_opened_without_encryption(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The provider of Compose: browsers resolve its name to this machine."""
    opened: list[str] = []

    def refuse(address: str) -> bool:
        opened.append(address)
        query = parse_qs(urlsplit(address).query)
        answer = {"state": query["state"][0], "error": "access_denied"}
        threading.Thread(
            target=httpx.get, args=(query["redirect_uri"][0],), kwargs={"params": answer}
        ).start()
        return True

    monkeypatch.setattr("webbrowser.open", refuse)
    endpoint = "http://idp.localhost:5556/dex/auth"
    with (
        Rota(base_url="http://127.0.0.1:1") as client,
        pytest.raises(SignInRefused, match="access_denied"),
    ):
        login._by_browser(client, issuer_at(endpoint), opens=True)
    assert opened[0].startswith(f"{endpoint}?")


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://login.example/authorize",
        "http://localhost.example/authorize",
        "http://idp.localhost:80@login.example/authorize",
        "ftp://idp.localhost/authorize",
        "file:///etc/passwd",
        "javascript:alert(1)",
    ],
)
def test_an_authorization_endpoint_that_is_not_encrypted_is_not_opened(
    endpoint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    with Rota(base_url="http://127.0.0.1:1") as client, pytest.raises(typer.Exit):
        login._by_browser(client, issuer_at(endpoint), opens=True)
    refused = f"{endpoint} is not encrypted, so it is not used to sign in.\n"
    assert (opened, capsys.readouterr().err) == ([], refused)


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
