"""Which service a command talks to, and as whom: from a profile or from the environment."""

import base64
import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.cli import profiles
from rota.cli.exits import ExitCode, fail
from rota.cli.profiles import Profile, ProfileError, Profiles

if TYPE_CHECKING:
    from rota_sdk import Rota

# A session token is valid for seven days. It is renewed when it has less than this left.
RENEW_BELOW_S = 4 * 86_400


@dataclass(frozen=True)
class Target:
    """A service, and what to send to it."""

    url: str
    token: str | None = field(repr=False)
    account: str | None
    # The profile that it comes from. None if it comes from the environment.
    profile: str | None


def stored_profiles() -> Profiles:
    try:
        return profiles.load()
    except ProfileError as error:
        fail(str(error), ExitCode.USAGE)


def environment_url() -> str | None:
    """ROTA_BASE_URL is the name that the SDK uses."""
    return os.environ.get("ROTA_URL") or os.environ.get("ROTA_BASE_URL") or None


def target(name: str | None, account: str | None) -> Target:
    """What to use: a profile that is named, else the environment, else the current profile."""
    key, url = os.environ.get("ROTA_API_KEY") or None, environment_url()
    if name is None and key is not None:
        # A key is only sent to the service that is named beside it.
        if url is None:
            fail("ROTA_API_KEY is set, but ROTA_URL is not. Set both.", ExitCode.USAGE)
        return Target(service_url(url), key, account or os.environ.get("ROTA_ACCOUNT"), None)
    stored = stored_profiles()
    found = stored.find(name)
    if found is None and name is not None:
        known = ", ".join(stored.named) or "none"
        fail(f"No profile is called {name!r}. Profiles: {known}.", ExitCode.USAGE)
    if name is None and url is not None and (found is None or found.url != service_url(url)):
        fail(f"You are not signed in at {url}. Run: rota login {url}")
    if found is None and stored.named:
        fail(f"No profile is selected. Run: rota profiles use NAME ({', '.join(stored.named)})")
    if found is None or found.token is None:
        fail("You are not signed in. Run: rota login URL, or set ROTA_URL and ROTA_API_KEY.")
    return Target(
        found.url,
        found.token,
        account or os.environ.get("ROTA_ACCOUNT") or found.account,
        name or stored.current,
    )


def service_url(url: str) -> str:
    """The origin of a service, which gets credentials: it must be reached encrypted."""
    checked = checked_url(url)
    if checked is None:
        fail(f"{url!r} is not a URL such as https://rota.example.com.", ExitCode.USAGE)
    is_allowed = os.environ.get("ROTA_ALLOW_PLAINTEXT", "").lower() in ("1", "true", "yes", "on")
    if not is_protected(checked) and not is_allowed:
        fail(
            f"{checked} is not encrypted. Use https://, or set ROTA_ALLOW_PLAINTEXT=true if the"
            " network is private.",
            ExitCode.USAGE,
        )
    return checked


def checked_url(url: str) -> str | None:
    """The origin of the service, or None if this is not one."""
    from urllib.parse import urlsplit

    import httpx

    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        port = parts.port
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            return None
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        origin = f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
        # The client has more rules than urlsplit, such as those of international names.
        httpx.URL(origin).host.encode("idna")
    except (ValueError, httpx.InvalidURL):
        return None
    return origin


def is_protected(url: str) -> bool:
    """Whether others in the network can neither read nor change what is sent there."""
    from urllib.parse import urlsplit

    from rota.platform.start_checks import is_loopback

    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    return bool(host) and (
        parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host or ""))
    )


def service_of(name: str | None) -> str:
    """The URL of the service that `target` would choose. It needs no credential."""
    url = environment_url()
    if name is None and url is not None:
        return service_url(url)
    found = stored_profiles().find(name)
    return found.url if found is not None else target(name, None).url


def client_of(url: str, token: str | None, account: str | None) -> "Rota":
    from rota_sdk import Rota

    return Rota(
        base_url=url,
        api_key=token,
        account=account,
        timeout=_number("ROTA_TIMEOUT_S", 60.0),
        max_retries=int(_number("ROTA_MAX_RETRIES", 2.0)),
    )


def _number(variable: str, default: float) -> float:
    text = os.environ.get(variable)
    try:
        number = float(text) if text else default
    except ValueError:
        number = -1.0
    # Infinity and NaN are no numbers of seconds either.
    if not 0 <= number < 1e9:
        fail(f"{variable} is not a number: {text!r}.", ExitCode.USAGE)
    return number


def connect(found: Target) -> "Rota":
    """A client of the service. Renews the session token of a profile when it becomes old."""
    client = client_of(found.url, found.token, found.account)
    expires_at = expiry_of(found.token or "")
    if found.profile is None or expires_at is None or expires_at - time.time() > RENEW_BELOW_S:
        return client
    renewed = _renewed(client, is_needed=expires_at <= time.time())
    if renewed is None:
        return client
    _store_token(found.profile, found.token, renewed)
    client.close()
    return client_of(found.url, renewed, found.account)


def _renewed(client: "Rota", *, is_needed: bool) -> str | None:
    from rota_sdk import RotaError

    try:
        # The selected account has nothing to do with it, and may not exist any more.
        return client.with_options(account=None).auth.refresh()
    except RotaError:
        # The old token still works, or the command reports why it does not.
        if is_needed:
            raise
        return None


def _store_token(name: str, old: str | None, new: str) -> None:
    # If the file cannot be written, the next command renews the token again.
    with suppress(ProfileError), profiles.changing() as stored:
        found = stored[0].named.get(name)
        if found is not None and found.token == old:
            stored[0] = stored[0].put(name, replace(found, token=new))


def expiry_of(token: str) -> float | None:
    """When a session token expires. None for an API key."""
    try:
        return float(_claims(token)["exp"])
    except (ValueError, KeyError, TypeError):
        return None


def subject_of(token: str) -> str | None:
    """Whose session token it is. None for an API key."""
    subject = _claims(token).get("sub")
    return subject if isinstance(subject, str) else None


def _claims(token: str) -> dict[str, Any]:
    """What a session token says. The service checks it."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) else {}


def development_url() -> str | None:
    """The URL of the `rota dev` that runs in this folder."""
    from rota.dev.directory import DataDirectory

    directory = DataDirectory(Path(".rota"))
    running = directory.running()
    return running.url if running and running.alive else None


def store(name: str, profile: Profile) -> None:
    """Stores a profile and makes it the current one."""
    with profiles.changing() as stored:
        stored[0] = replace(stored[0].put(name, profile), current=name)
