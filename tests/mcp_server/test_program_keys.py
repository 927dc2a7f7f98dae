"""The API key that `rota mcp` creates: only one, and none is left when the profile is gone."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.mcp_server.test_program import ended, rota, url_of, variables
from tests.programs import PROGRAM
from tests.service import Person, Service


def sign_in(home: Path, office: Service, person: Person) -> dict[str, str]:
    """A profile with the session of the person."""
    folder = home / "rota"
    folder.mkdir(exist_ok=True)
    stored = folder / "profiles.json"
    profile = {"url": url_of(office), "token": person.token, "account": None}
    stored.write_text(json.dumps({"current": "default", "profiles": {"default": profile}}))
    stored.chmod(0o600)
    return variables(home)


@pytest.fixture
def environment(tmp_path: Path, office: Service, person: Person) -> dict[str, str]:
    return sign_in(tmp_path, office, person)


async def keys_of(person: Person) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await person.get("/api/keys")).json()["keys"]
    return found


async def test_programs_that_start_at_the_same_time_share_one_key(
    environment: dict[str, str], person: Person
) -> None:
    done = await asyncio.gather(*[ended(environment) for _ in range(3)])
    assert [code for code, _, _ in done] == [0, 0, 0]
    assert sum("Created the API key" in errors for _, _, errors in done) == 1
    [key] = await keys_of(person)
    assert key["scopes"] == PROGRAM


async def test_a_new_key_takes_the_place_of_the_old_one(
    environment: dict[str, str], person: Person
) -> None:
    await ended(environment)
    [first] = await keys_of(person)
    code, _, errors = await ended(environment, "--new-key")
    assert code == 0
    [second] = await keys_of(person)
    assert second["id"] != first["id"]
    assert second["id"] in errors


async def test_signing_out_names_a_key_that_it_could_not_revoke(
    environment: dict[str, str], office: Service, person: Person
) -> None:
    await ended(environment)
    [key] = await keys_of(person)
    await person.post("/api/auth/logout")
    code, _, errors = await rota(environment, "logout")
    assert code == 1
    assert f"the API key {key['id']} was not revoked" in errors
    assert len(errors.splitlines()) == 1
    again = await office.sign_in(person.subject)
    assert [each["id"] for each in await keys_of(again)] == [key["id"]]


async def test_signing_out_does_not_mind_a_key_that_was_revoked_before(
    environment: dict[str, str], person: Person
) -> None:
    await ended(environment)
    [key] = await keys_of(person)
    await person.delete(f"/api/keys/{key['id']}")
    code, _, errors = await rota(environment, "logout")
    assert (code, errors) == (0, "")


async def test_another_credential_in_the_profile_revokes_the_key(
    environment: dict[str, str], tmp_path: Path, person: Person
) -> None:
    await ended(environment)
    [key] = await keys_of(person)
    answer = (await person.post("/api/keys", {"name": "Typed"})).json()
    url = json.loads((tmp_path / "rota" / "profiles.json").read_text())
    address = url["profiles"]["default"]["url"]
    code, _, errors = await rota(
        environment, "login", address, "--key", sent=answer["secret"].encode()
    )
    assert (code, errors) == (0, "")
    assert key["id"] not in [each["id"] for each in await keys_of(person)]


async def test_signing_in_elsewhere_names_a_key_that_it_could_not_revoke(
    environment: dict[str, str], office: Service, person: Person
) -> None:
    await ended(environment)
    [key] = await keys_of(person)
    secret = (await person.post("/api/keys", {"name": "Typed"})).json()["secret"]
    await person.post("/api/auth/logout")
    code, _, errors = await rota(
        environment, "login", url_of(office), "--key", sent=secret.encode()
    )
    assert code == 0
    assert f"the API key {key['id']} was not revoked" in errors


async def test_a_session_that_is_over_revokes_nothing_and_the_key_is_named(
    environment: dict[str, str], tmp_path: Path, office: Service, person: Person
) -> None:
    await ended(environment)
    [key] = await keys_of(person)
    secret = (await person.post("/api/keys", {"name": "Typed"})).json()["secret"]
    path = tmp_path / "rota" / "profiles.json"
    stored = json.loads(path.read_text())
    claims = base64.urlsafe_b64encode(b'{"exp": 1}').decode().rstrip("=")
    stored["profiles"]["default"]["token"] = f"e30.{claims}.c2ln"
    stored["profiles"]["other"] = stored["profiles"]["default"]
    path.write_text(json.dumps(stored))
    code, _, errors = await rota(environment, "logout")
    assert code == 1
    assert errors.startswith(
        f"The profile is deleted, but the API key {key['id']} was not revoked; and the session"
    )
    login = ("login", url_of(office), "--key", "--profile", "other")
    code, _, errors = await rota(environment, *login, sent=secret.encode())
    assert code == 0
    assert f"{key['id']} of {url_of(office)} was not revoked" in errors


async def test_a_program_that_starts_after_signing_out_creates_nothing(
    environment: dict[str, str], office: Service, person: Person
) -> None:
    codes = await asyncio.gather(ended(environment), rota(environment, "logout"))
    assert codes[1][0] == 0
    # Whichever came first, no key is left.
    again = await office.sign_in(person.subject)
    assert await keys_of(again) == []
