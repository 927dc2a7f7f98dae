"""The API keys that `rota mcp` uses. They are stored in the profile, and revoked with it.

Creating and revoking them takes requests, and two commands must not do it at the same time: one
key would be forgotten. So a lock is held, which commands that only use a profile do not wait for.
"""

import platform
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rota.cli import profiles
from rota.cli.connection import Target, connect, stored_profiles, subject_of
from rota.cli.exits import fail
from rota.cli.output import print_note
from rota.cli.profiles import Profile

if TYPE_CHECKING:
    from rota_sdk import Rota
    from rota_sdk.models import Scope

Keys = dict[str, dict[str, str]]

# What the tools need. A program must not approve.
SCOPES: tuple["Scope", ...] = ("tasks:read", "tasks:write", "agents:read")


def secret_for(target: Target, *, new: bool) -> str:
    """The secret of the key that the profile has for the account. It is created once."""
    if target.profile is None:
        fail(
            "ROTA_API_KEY must be an API key, because a session can approve. See: rota keys create"
        )
    account, name = target.account or "personal", target.profile
    if not new and (found := _stored(name).mcp_keys.get(account)) is not None:
        return found["secret"]
    with profiles.changing_keys():
        # Another command may have created it meanwhile, or signed out.
        before = _stored(name).mcp_keys.get(account)
        if before is not None and not new:
            return before["secret"]
        with connect(target) as client:
            return _created(client, name, account, before)


def _stored(name: str) -> Profile:
    found = stored_profiles().named.get(name)
    if found is None:
        fail("You are no longer signed in. Run: rota login")
    return found


def _created(client: "Rota", name: str, account: str, before: Mapping[str, str] | None) -> str:
    answer = client.keys.create(name=f"rota mcp on {platform.node()}"[:100], scopes=list(SCOPES))
    if answer.secret is None:
        fail(f"The response was lost. Delete {answer.key.id} and run the command again.")
    with profiles.changing() as stored:
        profile = stored[0].named[name]
        keys = {**profile.mcp_keys, account: {"id": answer.key.id, "secret": answer.secret}}
        stored[0] = stored[0].put(name, replace(profile, mcp_keys=keys))
    print_note(
        f"Created the API key {answer.key.id}. To revoke it: rota keys delete {answer.key.id}"
    )
    if before is not None:
        for problem in revoke(client, {account: dict(before)}):
            print_note(f"Warning: {problem}")
    return answer.secret


def revoke(client: "Rota", keys: Keys) -> list[str]:
    """Revokes the keys. Returns a sentence for each that may still work."""
    from rota_sdk import RotaError, errors

    problems = []
    for account, key in keys.items():
        try:
            client.with_options(account=account).keys.delete(key["id"])
        except errors.NotFoundError:
            # Somebody revoked it before.
            continue
        except RotaError as error:
            problems.append(f"the API key {key['id']} was not revoked: {error}")
    return problems


def kept_by(name: str, profile: Profile) -> Keys:
    """The keys that a profile keeps when this one takes its place. The others are revoked."""
    from rota_sdk import RotaError

    before = stored_profiles().named.get(name)
    if before is None or not before.mcp_keys:
        return {}
    user = subject_of(before.token or "")
    if before.url == profile.url and user and user == subject_of(profile.token or ""):
        return before.mcp_keys
    problems = []
    try:
        with connect(Target(before.url, before.token, None, name)) as client:
            problems = revoke(client, before.mcp_keys)
    except RotaError as error:
        names = ", ".join(key["id"] for key in before.mcp_keys.values())
        problems = [f"{names} of {before.url} was not revoked: {error}"]
    for problem in problems:
        print_note(f"The profile had a key for rota mcp, but {problem}")
    return {}
