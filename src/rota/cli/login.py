"""`rota login`, `rota logout`, `rota whoami` and `rota profiles …`."""

import base64
import hashlib
import re
import secrets
import sys
import webbrowser
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlencode

import typer

from rota.cli import profiles
from rota.cli.connection import (
    development_url,
    environment_url,
    is_protected,
    service_url,
    store,
    stored_profiles,
)
from rota.cli.exits import ExitCode, errors_as_one_line, fail
from rota.cli.output import print_fields, print_json, print_note, print_table, print_text
from rota.cli.profiles import DEFAULT, Profile
from rota.cli.session import Session, client_command

if TYPE_CHECKING:
    from rota_sdk import Rota
    from rota_sdk.models import Issuer, MeResponse

PANEL = "Sign in"
TIMEOUT_S = 300.0
# Browsers resolve every name under localhost to this machine. The identity provider in Compose has
# such a name.
_LOCAL_NAME = re.compile(r"http://[a-z0-9.-]+\.localhost(:[0-9]+)?/")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

profile_commands = typer.Typer(
    no_args_is_help=True, help="List the services that you signed in to, and choose one."
)


def login(
    url: Annotated[
        str | None,
        typer.Argument(
            help="The URL of the service. Default: ROTA_URL, the current profile, or the"
            " `rota dev` that runs in this folder."
        ),
    ] = None,
    device: Annotated[
        bool,
        typer.Option("--device", help="Show a code to type on another device, without a browser."),
    ] = False,
    key: Annotated[
        bool, typer.Option("--key", help="Store an API key instead. It is read from the terminal.")
    ] = False,
    issuer: Annotated[
        str | None,
        typer.Option(help="The identity provider, if the service has several: its name or URL."),
    ] = None,
    browser: Annotated[
        bool, typer.Option(help="Open a browser, or only print the address to open.")
    ] = True,
    profile: Annotated[
        str | None,
        typer.Option(
            envvar="ROTA_PROFILE",
            help="The profile to store the session in. Default: that of the service, or default.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Sign in, and store the session in a profile.

    Only you can read the profiles file. Sessions are renewed automatically.

    Examples: rota login https://rota.example.com, rota login --device, rota login --key
    """
    from rota.cli import mcp_keys
    from rota.cli.loopback import SignInRefused
    from rota_sdk import Rota

    with errors_as_one_line(as_json=as_json):
        address = _address(url, profile)
        name = profile or _profile_of(address)
        with Rota(base_url=address) as client:
            public = client.with_options(api_key=None, account=None)
            try:
                token = _entered_key() if key else _session(public, issuer, device, browser)
            except SignInRefused as error:
                fail(str(error))
            me = public.with_options(api_key=token).me()
        # A key is of one account.
        account = None if key else _account_of(name, address, me)
        made = Profile(address, token, account)
        with profiles.changing_keys():
            store(name, replace(made, mcp_keys=mcp_keys.kept_by(name, made)))
        who = me.user.email or me.user.name or me.user.id
        if as_json:
            print_json({"profile": name, "url": address, "account": account, "user": me.user})
        else:
            print_text(f"Signed in at {address} as {who}.")


def _address(url: str | None, profile: str | None) -> str:
    stored = stored_profiles().find(profile)
    known = url or environment_url() or (stored.url if stored else None) or development_url()
    if known is None:
        fail("Which service? For example: rota login https://rota.example.com", ExitCode.USAGE)
    return service_url(known)


def _profile_of(address: str) -> str:
    """The profile of this service, the current one first. A new service gets `default`."""
    stored = stored_profiles()
    found = [name for name, each in stored.named.items() if each.url == address]
    return stored.current if stored.current in found else (found or [DEFAULT])[0]


def _account_of(name: str, address: str, me: "MeResponse") -> str | None:
    """The account that was selected at the same service, if this user still has it."""
    stored = stored_profiles().named.get(name)
    if stored is None or stored.url != address:
        return None
    possible = ("personal", "company", *(each.id for each in me.accounts))
    return stored.account if stored.account in possible else None


def _entered_key() -> str:
    """From a prompt that does not show it, or from a pipe. Never from an argument, which other
    users of the machine can see."""
    entered = (
        typer.prompt("API key", hide_input=True, err=True)
        if sys.stdin.isatty()
        else sys.stdin.readline()
    )
    key = str(entered).strip()
    if not key:
        fail("The API key is empty.", ExitCode.USAGE)
    return key


def _session(client: "Rota", wanted: str | None, device: bool, browser: bool) -> str:
    issuer = _choose(client.auth.config().issuers, wanted)
    if device:
        return _by_device(client, issuer)
    return _by_browser(client, issuer, opens=browser)


def _choose(issuers: "list[Issuer]", wanted: str | None) -> "Issuer":
    matching = [
        each
        for each in issuers
        if wanted is None or wanted.lower() in (each.name.lower(), each.issuer.lower())
    ]
    if len(matching) != 1:
        names = ", ".join(each.name for each in issuers) or "none"
        fail(f"Choose an identity provider with --issuer: {names}", ExitCode.USAGE)
    return matching[0]


def _by_browser(client: "Rota", issuer: "Issuer", *, opens: bool) -> str:
    from rota.cli.loopback import SCOPE, Receiver

    if issuer.authorization_endpoint is None:
        fail(f"The service cannot reach {issuer.issuer}. Try again later.")
    is_local = _LOCAL_NAME.match(issuer.authorization_endpoint)
    if not is_local and not is_protected(issuer.authorization_endpoint):
        fail(f"{issuer.authorization_endpoint} is not encrypted, so it is not used to sign in.")
    verifier, nonce = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
    digest = hashlib.sha256(verifier.encode()).digest()
    with Receiver(issuer.cli_redirect_uri) as receiver:
        assert receiver.redirect_uri is not None
        query = {
            "response_type": "code",
            "client_id": issuer.cli_client_id,
            "redirect_uri": receiver.redirect_uri,
            "scope": SCOPE,
            "state": receiver.state,
            "nonce": nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        separator = "&" if "?" in issuer.authorization_endpoint else "?"
        address = f"{issuer.authorization_endpoint}{separator}{urlencode(query)}"
        print_note(f"To sign in, open:\n{address}")
        if opens and not webbrowser.open(address):
            print_note("No browser found. To sign in on another device: rota login --device")
        code = receiver.wait(issuer.issuer, TIMEOUT_S)
        return client.auth.start_session_by_code(
            code=code,
            code_verifier=verifier,
            redirect_uri=receiver.redirect_uri,
            issuer=issuer.issuer,
            nonce=nonce,
        )


def _by_device(client: "Rota", issuer: "Issuer") -> str:
    import httpx

    from rota.cli.device import DeviceSignIn

    with httpx.Client(timeout=30) as http:
        sign_in = DeviceSignIn(issuer.issuer, issuer.cli_client_id, http)
        code = sign_in.begin()
        print_note(f"Open {code.address} on any device and enter the code:  {code.code}")
        if code.complete_address:
            print_note(f"Or open: {code.complete_address}")
        id_token = sign_in.id_token(code)
    return client.auth.start_session(id_token=id_token)


def logout(
    profile: Annotated[
        str | None, typer.Option(envvar="ROTA_PROFILE", help="The profile to sign out of.")
    ] = None,
    as_json: Json = False,
) -> None:
    """End the session, and delete it from its profile."""
    with errors_as_one_line(as_json=as_json), profiles.changing_keys():
        stored = stored_profiles()
        name = profile or stored.current or ""
        found = stored.named.get(name)
        if found is None:
            fail("You are not signed in.")
        with profiles.changing() as changed:
            changed[0] = changed[0].remove(name)
        if found.token is not None and not found.token.startswith("rota_"):
            problems = _end(name, found)
            if problems:
                fail(f"The profile is deleted, but {'; and '.join(problems)}")
    if as_json:
        print_json({"profile": name, "url": found.url, "loggedOut": True})
    else:
        print_text(f"Signed out of {found.url}.")


def _end(name: str, profile: Profile) -> list[str]:
    """Ends the session and revokes the keys of `rota mcp`. Returns what did not work."""
    from rota.cli import mcp_keys
    from rota.cli.connection import Target, connect
    from rota_sdk import RotaError

    try:
        # A session that has expired can be renewed. Without it, nothing could be revoked.
        client = connect(Target(profile.url, profile.token, None, name))
    except RotaError as error:
        keys = [f"the API key {key['id']} was not revoked" for key in profile.mcp_keys.values()]
        return [*keys, f"the session did not end: {error}"]
    with client:
        problems = mcp_keys.revoke(client, profile.mcp_keys)
        try:
            client.auth.logout()
        except RotaError as error:
            problems.append(f"the session did not end: {error}")
    return problems


def whoami(session: Session) -> None:
    """Show who you are, and which account the commands use."""
    me = session.client.me()
    if session.as_json:
        print_json(me)
        return
    print_fields(
        [
            ("Service", session.target.url),
            ("Profile", session.target.profile or "from the environment"),
            ("User", me.user.email or me.user.name or me.user.id),
            ("Account", f"{me.account.name} ({me.account.id}, {me.account.tier})"),
            ("Accounts", ", ".join(f"{each.name} ({each.id})" for each in me.accounts)),
        ]
    )


@profile_commands.command("list")
def list_profiles(as_json: Json = False) -> None:
    """List the profiles. The current one is marked."""
    with errors_as_one_line(as_json=as_json):
        stored = stored_profiles()
    if as_json:
        listed = [
            {"name": name, "url": each.url, "account": each.account}
            | {"current": name == stored.current}
            for name, each in stored.named.items()
        ]
        print_json({"profiles": listed})
        return
    rows = [
        ("*" if name == stored.current else "", name, each.url, each.account)
        for name, each in stored.named.items()
    ]
    print_table(("", "Profile", "URL", "Account"), rows, "There are no profiles. Run: rota login")


@profile_commands.command()
def use(
    name: Annotated[str, typer.Argument(help="The profile.")],
    account: Annotated[
        str | None,
        typer.Option(help="The account to use with it: personal, company or acct_…"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Use this profile from now on.

    Example: rota profiles use work --account company
    """
    with errors_as_one_line(as_json=as_json), profiles.changing() as stored:
        found = stored[0].named.get(name)
        if found is None:
            fail(f"No profile is called {name!r}. See: rota profiles list", ExitCode.USAGE)
        changed = replace(found, account=account or found.account)
        stored[0] = replace(stored[0].put(name, changed), current=name)
    if as_json:
        print_json({"profile": name, "url": found.url, "account": account or found.account})
    else:
        print_text(f"Commands use {name} ({found.url}).")


def add_to(cli: typer.Typer) -> None:
    cli.command(rich_help_panel=PANEL)(login)
    cli.command(rich_help_panel=PANEL)(logout)
    client_command(cli, panel=PANEL)(whoami)
    cli.add_typer(profile_commands, name="profiles", rich_help_panel=PANEL)
