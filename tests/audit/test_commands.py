"""`rota admin audit`, and the entries of other operator commands."""

import asyncio
import base64
import json
from pathlib import Path

from typer.testing import CliRunner

from rota.agents.files import catalog_folder
from rota.audit import heads
from rota.audit.queries import Head
from rota.cli import cli
from rota.platform import clock, ids
from rota.platform.audit import INSTALLATION
from rota.platform.signatures import Signer
from tests.audit.world import entries_of, problems_of, rota
from tests.service import Service, environment
from tests.tasks.world import newcomer

KEY = base64.b64encode(bytes(range(32))).decode()


async def test_an_account_without_a_trail_is_refused(service_a: Service) -> None:
    unknown = ids.to_wire("acct", ids.new_uuid())
    for command in ("verify", "export", "head"):
        found = await rota(service_a, "admin", "audit", command, "--account", unknown)
        assert (found.exit_code, "has no audit trail" in found.output) == (1, True), command
    # Refusing it founds none.
    found = await rota(service_a, "admin", "audit", "verify", "--account", unknown)
    assert found.exit_code == 1


async def test_verify_checks_all_accounts_and_names_what_is_wrong(
    service_a: Service, tmp_path: Path
) -> None:
    person = await newcomer(service_a)
    for number in range(3):
        await person.post("/api/tasks", {"name": str(number)})
    account = ids.to_wire("acct", person.user_id)
    kept = await rota(service_a, "admin", "audit", "head", "--account", account)
    (tmp_path / "kept.jws").write_text(kept.output)
    head = ("--head", str(tmp_path / "kept.jws"))
    found = await rota(service_a, "admin", "audit", "verify", *head)
    assert (found.exit_code, "no problems" in found.output) == (0, True), found.output
    async with service_a.owner() as connection:
        await connection.execute(
            "DELETE FROM audit_entries WHERE account_id = $1 AND sequence = 3", person.user_id
        )
        found = await rota(service_a, "admin", "audit", "verify")
        assert found.exit_code == 1
        assert account in found.output
        assert "3 to 3 are missing" in found.output
        # Without the head of the database, the one that was kept still tells.
        await connection.execute(
            """
            UPDATE audit_heads h SET sequence = e.sequence, hash = e.hash FROM audit_entries e
            WHERE e.account_id = h.account_id AND e.sequence = 2 AND h.account_id = $1
            """,
            person.user_id,
        )
    only = ("--account", account)
    assert (await rota(service_a, "admin", "audit", "verify", *only)).exit_code == 0
    found = await rota(service_a, "admin", "audit", "verify", *only, *head)
    assert (found.exit_code, "head that was kept" in found.output) == (1, True)
    (tmp_path / "kept.jws").write_text(kept.output.replace(".", "", 1))
    found = await rota(service_a, "admin", "audit", "verify", *head)
    assert (found.exit_code, "not a signed document" in found.output) == (2, True)
    async with service_a.owner() as connection:
        await connection.execute("DELETE FROM audit_entries WHERE account_id = $1", person.user_id)
        await connection.execute("DELETE FROM audit_heads WHERE account_id = $1", person.user_id)


async def test_every_head_that_was_kept_is_checked(service_a: Service, tmp_path: Path) -> None:
    one, other = await newcomer(service_a), await newcomer(service_a)
    await one.post("/api/tasks", {"name": "Tidy up"})
    accounts = [ids.to_wire("acct", each.user_id) for each in (one, other)]
    signer = Signer(service_a.settings.audit_key_bytes)
    options: list[str] = []
    for number, digest in enumerate((b"1" * 32, b"2" * 32)):
        head = Head(other.user_id, 7, digest)
        path = tmp_path / f"{number}.jws"
        path.write_text(heads.sign(signer, "https://rota.example", head, clock.now()))
        options += ["--head", str(path)]
    found = await rota(service_a, "admin", "audit", "verify", "--account", accounts[0], *options)
    assert found.exit_code == 1
    assert accounts[1] in found.output
    assert "two heads that were kept differ" in found.output
    assert "the trail ends before the head that was kept" in found.output


async def test_an_entry_without_a_head_is_found(service_a: Service) -> None:
    person = await newcomer(service_a)
    await person.post("/api/tasks", {"name": "A"})
    async with service_a.owner() as connection:
        await connection.execute("DELETE FROM audit_heads WHERE account_id = $1", person.user_id)
        found = await rota(service_a, "admin", "audit", "verify")
        assert (found.exit_code, "entries and no head" in found.output) == (1, True)
        await connection.execute("DELETE FROM audit_entries WHERE account_id = $1", person.user_id)


async def test_in_production_nothing_is_signed_with_the_public_key(service_a: Service) -> None:
    person = await newcomer(service_a)
    env = dict(environment(service_a.settings)) | {"ROTA_ENV": "production", "ROTA_SECRET_KEY": KEY}
    env.pop("ROTA_AUDIT_KEY", None)
    arguments = ["admin", "audit", "head", "--account", ids.to_wire("acct", person.user_id)]
    found = await asyncio.to_thread(lambda: CliRunner().invoke(cli, arguments, env=env))
    assert (found.exit_code, "Set ROTA_AUDIT_KEY" in found.output) == (1, True), found.output


async def test_an_operator_who_exports_a_trail_leaves_an_entry(
    service_a: Service, tmp_path: Path
) -> None:
    person = await newcomer(service_a)
    await person.post("/api/tasks", {"name": "Tidy up"})
    account = ids.to_wire("acct", person.user_id)
    path = tmp_path / "trail.ndjson"
    options = ("--account", account, "--output", str(path))
    assert (await rota(service_a, "admin", "audit", "export", *options)).exit_code == 0
    [*_, entry] = await entries_of(service_a, person.user_id)
    assert (entry["action"], entry["actor"], entry["user_id"]) == (
        "audit.exported",
        "operator",
        None,
    )
    assert entry["private"]["name"].startswith("rota admin audit export by ")
    found = await rota(service_a, "admin", "audit", "verify", "--file", str(path))
    assert found.exit_code == 0, found.output
    kept = await rota(service_a, "admin", "audit", "head", "--account", account)
    (tmp_path / "kept.jws").write_text(kept.output)
    head = ("--head", str(tmp_path / "kept.jws"))
    verify = ("admin", "audit", "verify", "--file", str(path), "--json")
    found = await rota(service_a, *verify, *head)
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout) == {"checked": {"accounts": 1, "entries": 2}, "problems": []}
    await person.post("/api/tasks", {"name": "Later"})
    newer = await rota(service_a, "admin", "audit", "head", "--account", account)
    (tmp_path / "kept.jws").write_text(newer.output)
    found = await rota(service_a, *verify, *head)
    [problem] = json.loads(found.stdout)["problems"]
    assert (found.exit_code, problem["account"], problem["entry"]) == (1, account, 3)
    assert problem["problem"] == "the trail ends before the head that was kept"
    stranger = await newcomer(service_a)
    await stranger.post("/api/tasks", {"name": "Theirs"})
    theirs = ids.to_wire("acct", stranger.user_id)
    other = await rota(service_a, "admin", "audit", "head", "--account", theirs)
    (tmp_path / "kept.jws").write_text(other.output)
    found = await rota(service_a, *verify, *head)
    assert (found.exit_code, "belongs to another account" in found.output) == (1, True)
    checked = await rota(service_a, "admin", "audit", "verify", "--account", theirs, "--json")
    assert json.loads(checked.stdout)["checked"] == {"accounts": 1, "entries": 1}
    both = ("--file", str(path), "--account", account)
    assert (await rota(service_a, "admin", "audit", "verify", *both)).exit_code == 2
    printed = await rota(service_a, "admin", "audit", "export", "--account", account)
    assert printed.output.count("\n") == 5


async def test_commands_about_an_account_are_in_its_trail(service: Service) -> None:
    owner, member = await newcomer(service), await newcomer(service)
    user, other = ids.to_wire("user", owner.user_id), ids.to_wire("user", member.user_id)
    made = await rota(service, "admin", "companies", "create", "Acme", "--owner", user)
    account = made.output.strip()
    for arguments in (
        ("companies", "set-member", account, other),
        ("companies", "set-member", account, other, "--role", "admin"),
        ("accounts", "set-tier", account, "basic"),
    ):
        result = await rota(service, "admin", *arguments)
        assert result.exit_code == 0, result.output
    account_id = ids.from_wire("acct", account)
    assert account_id is not None
    entries = await entries_of(service, account_id)
    assert [each["action"] for each in entries] == [
        "company.created",
        "member.added",
        "member.updated",
        "account.tier_set",
    ]
    assert {each["actor"] for each in entries} == {"operator"}


async def test_a_key_that_the_operator_creates_and_revokes_is_in_the_trail(
    service: Service,
) -> None:
    made = await rota(service, "admin", "keys", "create", "First", "--json")
    assert made.exit_code == 0, made.output
    found = json.loads(made.stdout)
    revoked = await rota(service, "admin", "keys", "revoke", found["key"]["id"])
    assert revoked.exit_code == 0, revoked.output
    account_id = ids.from_wire("acct", found["account"])
    assert account_id is not None
    entries = await entries_of(service, account_id)
    # The account of the operator exists once in a deployment.
    assert entries[0]["action"] == "account.created"
    assert [each["action"] for each in entries[-2:]] == ["key.created", "key.revoked"]
    assert {each["resource"] for each in entries[-2:]} == {found["key"]["id"]}
    assert {(each["actor"], each["user_id"]) for each in entries} == {("operator", None)}


async def test_commands_about_the_installation_have_a_trail_of_their_own(
    service_a: Service,
) -> None:
    before = len(await entries_of(service_a, INSTALLATION))
    for arguments in (
        ("agents", "sync", str(catalog_folder()), "--add-only"),
        ("signing-keys", "rotate"),
    ):
        result = await rota(service_a, "admin", *arguments)
        assert result.exit_code == 0, result.output
    entries = (await entries_of(service_a, INSTALLATION))[before:]
    assert [each["action"] for each in entries] == ["agents.synced", "signing_key.rotated"]
    assert {each["actor"] for each in entries} == {"operator"}
    async with service_a.owner() as connection:
        assert await problems_of(connection, INSTALLATION) == []
