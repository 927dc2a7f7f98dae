"""An export has everything of one moment, and shows when it is not complete."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from rota.audit import export as audit_export
from rota.data import export
from rota.data.tables import EXPORTED
from rota.platform import ids
from rota.platform.errors import RateLimited
from rota.platform.membership import MembershipEnded
from tests.audit.world import rota
from tests.companies.world import Company
from tests.data.filled import MARKER, fill
from tests.data.world import World
from tests.service import Person
from tests.tasks.world import create


def read(content: bytes) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """The manifest, the objects and the end of a complete export."""
    *lines, last = content.splitlines(keepends=True)
    first, *objects = map(json.loads, lines)
    end: dict[str, Any] = json.loads(last)["end"]
    assert end["sha256"] == hashlib.sha256(b"".join(lines)).hexdigest()
    assert end["lines"] == len(lines)
    counts: dict[str, int] = {}
    for each in objects:
        counts[each["type"]] = counts.get(each["type"], 0) + 1
    assert end["counts"] == counts
    return first["manifest"], objects, end


@pytest.mark.parametrize("company", [False, True], ids=["personal", "company"])
async def test_an_export_has_everything_but_secrets(
    world: World, company: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = await fill(world, company)
    # So that pages are read one after the other.
    monkeypatch.setattr(export, "PAGE", 2)
    response = await filled.person.get("/api/export", headers=filled.headers)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/x-ndjson"
    manifest, objects, end = read(response.content)
    assert manifest["account"] == ids.to_wire("acct", filled.account_id)
    assert manifest["types"] == [table.exported for table in EXPORTED]
    names = {each["data"]["id"] for each in objects if each["type"] == "task"}
    assert names == {task["id"] for task in filled.tasks}
    own = {"account", "task", "step", "review", "event", "schedule", "rule", "toolServer"}
    own |= {"key", "ledgerEntry", "hold", "balance", "auditEntry", "auditHead"}
    own |= {"member", "invitation"} if company else {"user", "session"}
    assert own <= set(end["counts"])
    text = response.text
    assert MARKER in text
    assert filled.key not in text
    for hidden in ("secretHash", "sealedHeaders", "tokenHash", "sealedBody"):
        assert hidden not in text
    actions = [each["data"]["action"] for each in objects if each["type"] == "auditEntry"]
    assert "account.exported" in actions


async def test_an_export_needs_the_session_of_an_owner(world_a: World) -> None:
    company = await Company.create(world_a.service)
    admin = await company.join(role="admin")
    assert (await admin.get("/api/export", headers=company.selected)).status_code == 403
    owner = company.owner
    assert (await owner.get("/api/export", headers=company.selected)).status_code == 200
    key = (await owner.post("/api/keys", {"name": "k"})).json()["secret"]
    person = Person(world_a.service, "key", key)
    assert (await person.get("/api/export")).status_code == 403


async def test_an_export_shows_one_moment_while_the_account_changes(
    world_a: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "PAGE", 1)
    person = await world_a.service.sign_in()
    for _ in range(5):
        await create(person)
    lines = world_a.parts.exports.for_operator(person.user_id)
    content = await anext(lines)
    await create(person)
    content += b"".join([page async for page in lines])
    _, objects, end = read(content)
    assert end["counts"]["task"] == 5
    sequences = [each["data"]["sequence"] for each in objects if each["type"] == "event"]
    heads = [each["data"] for each in objects if each["type"] == "auditHead"]
    entries = [each["data"]["sequence"] for each in objects if each["type"] == "auditEntry"]
    assert sequences == sorted(sequences)
    assert heads[0]["sequence"] == entries[-1]


async def test_one_export_of_an_account_runs_at_a_time(world_a: World) -> None:
    person = await world_a.service.sign_in()
    caller = await world_a.parts.authenticator.authenticate(f"Bearer {person.token}", None)
    exports = world_a.parts.exports

    async def allowed() -> None:
        pass

    first = exports.stream(caller, allowed)
    await anext(first)
    with pytest.raises(Exception, match="Another export"):
        await anext(exports.stream(caller, allowed))
    async for _ in first:
        pass
    assert [page async for page in exports.stream(caller, allowed)]


async def test_a_slow_reader_gives_its_place_to_others(
    world_a: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = world_a.parts
    people = [await world_a.service.sign_in() for _ in range(3)]
    callers = [await parts.authenticator.authenticate(f"Bearer {p.token}", None) for p in people]

    async def allowed() -> None:
        pass

    slow = [parts.exports.stream(caller, allowed) for caller in callers[:2]]
    for reader in slow:
        await anext(reader)  # The manifest.
        await anext(reader)  # The first page. It is not read within the time that follows.
    other = asyncio.create_task(anext(parts.exports.stream(callers[2], allowed)))
    # The third waits for a place.
    done, _ = await asyncio.wait([other], timeout=0.2)
    assert not done
    monkeypatch.setattr(export, "SLOW_AFTER_S", -100.0)
    with pytest.raises(export.CutOff):
        await anext(slow[0])
    assert b"manifest" in await other
    for reader in slow:
        await reader.aclose()


async def test_an_export_that_takes_too_long_or_loses_its_right_has_no_end(
    world_a: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await world_a.service.sign_in()
    monkeypatch.setattr(export, "MAX_SECONDS", -1)
    lines = world_a.parts.exports.for_operator(person.user_id)
    assert b"manifest" in await anext(lines)
    with pytest.raises(export.CutOff):
        await anext(lines)


async def test_an_export_waits_for_the_check_of_its_caller(
    world_a: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await world_a.service.sign_in()
    caller = await world_a.parts.authenticator.authenticate(f"Bearer {person.token}", None)
    refusals: list[Exception] = [RateLimited("Busy."), RateLimited("Busy."), MembershipEnded()]

    async def check() -> None:
        if refusals:
            raise refusals.pop(0)

    monkeypatch.setattr(export, "CHECK_AGAIN_S", 0.01)
    lines = world_a.parts.exports.stream(caller, check)
    assert b"manifest" in await anext(lines)
    # Nothing is sent before it is known that the caller has lost the right.
    with pytest.raises(MembershipEnded):
        await anext(lines)
    refusals.append(RateLimited("Busy."))
    assert [page async for page in world_a.parts.exports.stream(caller, check)]
    assert not refusals
    # A check that cannot be made for long ends the export.
    monkeypatch.setattr(export, "STALL_SECONDS", 0)
    refusals += [RateLimited("Busy.")] * 3
    with pytest.raises(export.CutOff):
        [page async for page in world_a.parts.exports.stream(caller, check)]


async def test_a_client_has_all_of_its_time_after_a_check_that_took_long(world_a: World) -> None:
    person = await world_a.service.sign_in()
    caller = await world_a.parts.authenticator.authenticate(f"Bearer {person.token}", None)
    checks = []
    async with world_a.service.owner() as connection:

        async def check() -> None:
            checks.append(await connection.fetchval("SELECT clock_timestamp()"))

        lines = world_a.parts.exports.stream(caller, check)
        await anext(lines)  # The manifest.
        await anext(lines)
        # The export's snapshot. Its time begins when its last statement ends.
        idle_since = await connection.fetchval(
            "SELECT min(state_change) FROM pg_stat_activity"
            " WHERE datname = current_database() AND state = 'idle in transaction'"
        )
        await lines.aclose()
    assert idle_since > checks[-1]


@pytest.mark.parametrize(
    ("path", "accept", "module", "pages"),
    [
        ("/api/export", "*/*", export, "_pages"),
        ("/api/audit", "application/x-ndjson", audit_export, "lines"),
    ],
    ids=["account", "audit"],
)
async def test_an_export_ends_if_the_header_selects_another_company(
    world_a: World,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    accept: str,
    module: ModuleType,
    pages: str,
) -> None:
    company = await Company.create(world_a.service)
    person = await company.join(role="owner")
    read_pages = getattr(module, pages)
    removed: list[httpx.Response] = []

    async def read_and_remove(*args: Any) -> AsyncIterator[Any]:
        async for page in read_pages(*args):
            if not removed:
                removed.append(await company.remove(person))
                assert removed[0].status_code == 200, removed[0].text
                # The only company of the person is now this one.
                made = await person.post("/api/companies", {"name": "Another"})
                assert made.status_code == 201, made.text
            yield page

    monkeypatch.setattr(module, pages, read_and_remove)
    headers = {"X-Service-Account": "company", "Accept": accept}
    with pytest.raises(httpx.RemoteProtocolError):
        await person.get(path, headers=headers)
    assert removed


async def test_the_command_line_exports_and_refuses_what_was_cut_off(
    world_a: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = await world_a.service.sign_in()
    for _ in range(3):
        await create(person)
    monkeypatch.setenv("ROTA_URL", str(world_a.service.http.base_url))
    monkeypatch.setenv("ROTA_API_KEY", person.token)
    path = tmp_path / "account.ndjson"
    done = await rota(world_a.service, "account", "export", "--output", str(path))
    assert done.exit_code == 0, done.output
    _, objects, _ = read(path.read_bytes())
    assert f"{len(objects) + 1} lines" in done.output
    assert path.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(export, "MAX_SECONDS", -1)
    cut = await rota(world_a.service, "account", "export", "--output", str(tmp_path / "b"))
    assert cut.exit_code != 0
    assert list(tmp_path.iterdir()) == [path]
    await asyncio.sleep(0)
