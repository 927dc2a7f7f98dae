"""A sync makes the catalog in the database equal to the folder, or changes nothing."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from rota.agents import queries
from rota.agents.files import CatalogInvalid, catalog_folder
from rota.agents.model import Approval
from rota.agents.sync import Change, Report, UnconfirmedRetirement, sync
from rota.dev.stack import Stack
from rota.platform.roles import APPLICATION_ROLE
from tests.agents.catalogs import connected, current, names, run_sync
from tests.agents.conftest import Folder, agent_text
from tests.service import Service


async def test_each_agent_is_added_changed_unchanged_or_retired(url: str, folder: Folder) -> None:
    root = folder(one=agent_text("one"), two=agent_text("two"), three=agent_text("three"))
    first = await sync(url, root)
    assert names(first.added) == [("one", 1), ("three", 1), ("two", 1)]
    assert (first.changed, first.unchanged, first.retired) == ((), (), ())

    root = folder(one=agent_text("one"), two=agent_text("two", tier=2), four=agent_text("four"))
    second = await sync(url, root)
    assert second == Report(
        added=(Change("four", 1),),
        changed=(Change("two", 2),),
        unchanged=(Change("one", 1),),
        retired=(Change("three", 1),),
    )
    assert await current(url) == {"one": 1, "two": 2, "four": 1}


async def test_an_unchanged_agent_is_not_written(url: str, folder: Folder) -> None:
    async def rows() -> list[Any]:
        async with connected(url) as connection:
            found: list[Any] = await connection.fetch(
                """SELECT a.xmin::text, v.xmin::text, v.created_at
                   FROM agents a JOIN agent_versions v USING (name, version)"""
            )
            return found

    root = folder(one=agent_text("one"))
    await sync(url, root)
    before = await rows()
    # Another order of the fields is not a change.
    lines = agent_text("one").split("\n")
    lines[1:4] = reversed(lines[1:4])
    report = await sync(url, folder(renamed="\n".join(lines)))
    assert names(report.unchanged) == [("one", 1)]
    assert await rows() == before


async def test_the_content_hash_of_a_file_is_stable(url: str, folder: Folder) -> None:
    """A new hash for an unchanged file would make a new version of every agent."""
    await sync(url, folder(one=agent_text("one")))
    async with connected(url) as connection:
        stored = await connection.fetchval("SELECT content_hash FROM agent_versions")
    assert stored.hex() == ("68e05d43c8c2500fb02833442a807942324e70bf867e7217fdbb244d2880bf56")


async def test_a_retired_agent_returns_with_its_last_version(url: str, folder: Folder) -> None:
    both = {"one": agent_text("one"), "two": agent_text("two")}
    await sync(url, folder(**both))
    await sync(url, folder(one=both["one"]))
    assert names((await sync(url, folder(**both))).added) == [("two", 1)]
    await sync(url, folder(one=both["one"]))
    changed = both | {"two": agent_text("two", instructions="Do it differently.")}
    assert names((await sync(url, folder(**changed))).added) == [("two", 2)]
    # An older text becomes a new version too: versions only increase.
    assert names((await sync(url, folder(**both))).changed) == [("two", 3)]


async def test_an_agent_that_stays_retired_is_retired_once(url: str, folder: Folder) -> None:
    await sync(url, folder(one=agent_text("one"), two=agent_text("two")))
    root = folder(one=agent_text("one"))
    assert names((await sync(url, root)).retired) == [("two", 1)]
    assert (await sync(url, root)).retired == ()


async def test_a_dry_run_reports_the_same_and_changes_nothing(url: str, folder: Folder) -> None:
    await sync(url, folder(one=agent_text("one"), two=agent_text("two")))
    root = folder(one=agent_text("one", tier=1), three=agent_text("three"))
    report = await sync(url, root, dry_run=True)
    assert await current(url) == {"one": 1, "two": 1}
    assert await sync(url, root) == report


async def test_nothing_changes_if_one_file_is_invalid(url: str, folder: Folder) -> None:
    await sync(url, folder(one=agent_text("one")))
    root = folder(one=agent_text("one", tier=2), two=agent_text("two", tier=7))
    with pytest.raises(CatalogInvalid, match=r"two\.md:6: `tier` is 7"):
        await sync(url, root)
    assert await current(url) == {"one": 1}


async def test_concurrent_syncs_run_one_after_another(url: str, tmp_path: Path) -> None:
    roots = []
    for tier in (1, 2):
        root = tmp_path / str(tier)
        root.mkdir()
        for name in ("one", "two"):
            (root / f"{name}.md").write_text(agent_text(name, tier=tier))
        roots.append(root)
    reports = await asyncio.gather(*[sync(url, roots[n % 2]) for n in range(8)])
    # In any order, each sync starts from the result of another one.
    assert sum(len(report.added) for report in reports) == 2
    changes = sum(len(report.changed) for report in reports)
    assert await current(url) == dict.fromkeys(("one", "two"), 1 + changes // 2)
    async with connected(url) as connection:
        tiers = await connection.fetch("SELECT DISTINCT tier FROM current_agents")
    assert len(tiers) == 1


async def test_readers_do_not_wait_for_a_sync(url: str, folder: Folder) -> None:
    await sync(url, folder(one=agent_text("one")))
    async with connected(url) as writer, writer.transaction():
        await queries.lock(writer)
        async with asyncio.timeout(5):
            assert await current(url) == {"one": 1}


async def test_find_returns_everything_that_a_run_needs(url: str, folder: Folder) -> None:
    text = agent_text("one", department="Ops", tier=2, required="ADVANCED", aliases="uno")
    text = text.replace(
        "tools: []",
        'tools: ["crm/*"]\napproval: {run: true, tools: ["crm/delete_*"], output: true}',
    )
    await sync(url, folder(one=text))
    async with connected(url) as connection:
        found = await queries.find(connection, "one")
        assert found is not None
        assert (found.name, found.version, found.department, found.rank) == ("one", 1, "Ops", 2)
        assert (found.required_tier, found.model, found.tools) == (
            "ADVANCED",
            "default",
            ("crm/*",),
        )
        assert found.approval == Approval(run=True, tools=("crm/delete_*",), output=True)
        assert (found.budget_cents, found.max_steps) == (10, 5)
        assert found.instructions == "Do it well."
        assert found.aliases == ("uno",)
        assert await queries.find(connection, "uno") is None


async def test_an_existing_task_keeps_its_version(url: str, folder: Folder) -> None:
    await sync(url, folder(one=agent_text("one"), two=agent_text("two")))
    await sync(url, folder(one=agent_text("one", instructions="Do it differently.")))
    async with connected(url) as connection:
        old = await queries.find_version(connection, "one", 1)
        new = await queries.find(connection, "one")
        assert old is not None
        assert new is not None
        assert (old.instructions, new.instructions) == ("Do it well.", "Do it differently.")
        # New tasks cannot use a retired agent. Existing tasks can.
        assert await queries.find(connection, "two") is None
        assert await queries.find_version(connection, "two", 1) is not None
        assert await queries.find_version(connection, "two", 2) is None


async def test_the_service_itself_can_only_read_the_catalog(url: str, folder: Folder) -> None:
    await sync(url, folder(one=agent_text("one")))
    async with connected(url, server_settings={"role": APPLICATION_ROLE}) as connection:
        assert await queries.find(connection, "one") is not None
        for statement in (
            "UPDATE agents SET version = 1",
            "DELETE FROM agents",
            "INSERT INTO agents VALUES ('x', 1, '')",
            "UPDATE agent_versions SET instructions = 'Leak everything.'",
            "DELETE FROM agent_versions",
            "UPDATE current_agents SET instructions = 'Leak everything.'",
        ):
            with pytest.raises(asyncpg.PostgresError):
                await connection.execute(statement)


async def test_the_command_prints_the_outcome_for_each_agent(url: str, folder: Folder) -> None:
    await sync(url, folder(one=agent_text("one"), two=agent_text("two"), six=agent_text("six")))
    root = folder(one=agent_text("one"), two=agent_text("two", tier=1), ten=agent_text("ten"))
    dry = await run_sync(url, str(root), "--dry-run")
    planned = json.loads((await run_sync(url, str(root), "--dry-run", "--json")).stdout)
    assert {outcome: [each["name"] for each in planned[outcome]] for outcome in planned} == {
        "added": ["ten"],
        "changed": ["two"],
        "unchanged": ["one"],
        "retired": ["six"],
        "warnings": [],
    }
    done = await run_sync(url, str(root), "--yes")
    assert (dry.exit_code, done.exit_code) == (0, 0)
    assert "This was a dry run" in dry.output
    assert "This was a dry run" not in done.output
    for result in (dry, done):
        rows = [line.split("│")[1:4] for line in result.output.splitlines() if "│" in line]
        cells = [tuple(cell.strip() for cell in row) for row in rows]
        assert cells == [
            ("added", "1", "ten (1)"),
            ("changed", "1", "two (2)"),
            ("unchanged", "1", ""),
            ("retired", "1", "six (1)"),
        ]


async def test_agents_without_a_file_are_retired_only_if_somebody_says_so(
    url: str, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sync(url, folder(one=agent_text("one"), two=agent_text("two")))
    root = folder(one=agent_text("one", tier=2), six=agent_text("six"))
    refused = await run_sync(url, str(root))
    assert refused.exit_code == 1
    assert "retired" in refused.output
    assert "this would retire 1 agent without a file. Use --yes" in refused.stderr
    assert await current(url) == {"one": 1, "two": 1}
    kept = await run_sync(url, str(root), "--add-only")
    assert kept.exit_code == 0, kept.output
    assert await current(url) == {"one": 2, "two": 1, "six": 1}
    # At a terminal, it asks.
    monkeypatch.setattr("rota.agents.commands._is_terminal", lambda: True)
    declined = await run_sync(url, str(root), typed="n\n")
    assert declined.exit_code == 1
    assert "Retire 1 agent without a file?" in declined.output
    assert await current(url) == {"one": 2, "two": 1, "six": 1}
    agreed = await run_sync(url, str(root), typed="y\n")
    assert agreed.exit_code == 0, agreed.output
    assert await current(url) == {"one": 2, "six": 1}
    # Without a retirement, there is no question.
    assert (await run_sync(url, str(root))).exit_code == 0


async def test_an_agent_that_came_after_the_question_is_not_retired(
    url: str, folder: Folder
) -> None:
    await sync(url, folder(one=agent_text("one"), two=agent_text("two"), six=agent_text("six")))
    root = folder(one=agent_text("one"))
    with pytest.raises(UnconfirmedRetirement):
        await sync(url, root, may_retire=["two"])
    assert await current(url) == {"one": 1, "two": 1, "six": 1}
    report = await sync(url, root, may_retire=["two", "six"])
    assert names(report.retired) == [("six", 1), ("two", 1)]


async def test_the_command_lists_every_problem_and_fails(url: str, folder: Folder) -> None:
    root = folder(one=agent_text("one", tier=0), two=agent_text("two", required="FREE"))
    result = await run_sync(url, str(root))
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[0].startswith(f"{root}/one.md:6: `tier` is 0; it must be ")
    assert lines[1].startswith(f"{root}/two.md:10: `requiredTier` is FREE; it must be ")
    assert lines[2] == "Nothing was changed. Fix 2 problems first."
    assert await current(url) == {}


async def test_the_command_without_a_folder_syncs_the_shipped_catalog(url: str) -> None:
    result = await run_sync(url)
    assert result.exit_code == 0, result.output
    assert len(await current(url)) == len(list(catalog_folder().rglob("*.md")))


async def test_the_command_reports_a_database_that_is_not_migrated(
    stack: Stack, folder: Folder
) -> None:
    base, _, _ = stack.endpoints.database_url.rpartition("/")
    async with connected(stack.endpoints.database_url) as connection:
        await connection.execute("DROP DATABASE IF EXISTS agents_bare")
        await connection.execute("CREATE DATABASE agents_bare")
    result = await run_sync(f"{base}/agents_bare", str(folder(one=agent_text("one"))))
    assert result.exit_code == 1
    assert "rota admin migrate" in result.stderr


async def test_the_command_reports_a_database_that_is_down(folder: Folder) -> None:
    root = folder(one=agent_text("one"))
    result = await run_sync("postgresql://rota@127.0.0.1:1/rota", str(root))
    assert result.exit_code == 1
    assert "Cannot use the database" in result.stderr
    assert os.environ.get("ROTA_DATABASE_URL") != "postgresql://rota@127.0.0.1:1/rota"


async def test_an_empty_catalog_is_not_an_error(stack: Stack) -> None:
    async with Service.start(stack, variant="a", name="agents_none") as service:
        person = await service.sign_in()
        body = (await person.get("/api/agents")).json()
        assert body == {"agents": [], "departments": [], "total": 0, "page": 1, "limit": 50}
        body = (await person.get("/api/agents/departments")).json()
        assert body == {"departments": [], "total": 0}
        assert (await person.get("/api/agents/catalog")).json() == {"catalog": [], "total": 0}
        assert (await person.get("/api/agents/resolve?q=blog")).status_code == 404
