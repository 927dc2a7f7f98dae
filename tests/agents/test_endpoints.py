"""The catalog through HTTP, on both variants."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from rota.accounts import service as accounts
from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.platform import ids
from rota.platform.db import Database
from tests.agents.catalogs import read_catalog
from tests.agents.conftest import counted_statements, person_of
from tests.service import Person, Service

SHIPPED = sorted(read_catalog(catalog_folder()), key=lambda agent: agent.name)
NAMES = [agent.name for agent in SHIPPED]
DEPARTMENTS = sorted({agent.department for agent in SHIPPED})
FIELDS = {
    *("name", "displayName", "initials", "description", "department", "tier", "tags"),
    *("premium", "requiredTier", "locked", "model", "tools", "approval", "budgetCents"),
}
# Only the response for one agent has these.
DETAILS = {
    *("version", "instructions", "maxSteps", "maxConcurrent", "aliases", "useFor", "outputSchema"),
}
PATHS = (
    "/api/agents",
    "/api/agents/blog-writer",
    "/api/agents/blog-writer/versions",
    "/api/agents/resolve?name=blog-writer",
    "/api/agents/resolve?q=blog",
    "/api/agents/departments",
    "/api/agents/catalog",
)


async def listed(person: Person, **query: Any) -> list[str]:
    response = await person.get("/api/agents", params={"limit": 200, **query})
    assert response.status_code == 200, response.text
    body = response.json()
    assert body["total"] == len(body["agents"])
    return [agent["name"] for agent in body["agents"]]


async def test_the_list_has_every_agent_by_name(reader: Person) -> None:
    response = await reader.get("/api/agents")
    assert response.status_code == 200
    body = response.json()
    assert body.keys() == {"agents", "departments", "total", "page", "limit"}
    assert [agent["name"] for agent in body["agents"]] == NAMES
    assert body["departments"] == DEPARTMENTS
    assert (body["total"], body["page"], body["limit"]) == (len(NAMES), 1, 50)
    assert all(agent.keys() == FIELDS for agent in body["agents"])


async def test_an_agent_has_the_values_of_its_file(reader: Person) -> None:
    response = await reader.get("/api/agents/blog-writer")
    file = next(agent for agent in SHIPPED if agent.name == "blog-writer")
    assert response.json() == {
        "agent": {
            "name": "blog-writer",
            "displayName": "Blog Writer",
            "initials": "BW",
            "description": file.description,
            "department": "Marketing",
            "tier": 3,
            "tags": list(file.tags),
            "premium": False,
            "requiredTier": "BASIC",
            "locked": False,
            "model": "default",
            "version": 1,
            "instructions": file.instructions,
            "tools": list(file.tools),
            "approval": {"run": False, "tools": "writes", "output": file.approval.output},
            "budgetCents": file.budget_cents,
            "maxSteps": file.max_steps,
            "maxConcurrent": file.max_concurrent,
            "outputSchema": file.output_schema,
            "aliases": list(file.aliases),
            "useFor": list(file.use_for),
        }
    }


async def test_the_initials_of_a_file_win_over_those_of_the_display_name(reader: Person) -> None:
    response = await reader.get("/api/agents/support-director")
    assert response.json()["agent"]["initials"] == "SU"


@pytest.mark.parametrize("tier", [1, 2, 3])
async def test_the_tier_filter_returns_that_rank_and_higher_ranks(
    reader: Person, tier: int
) -> None:
    expected = [agent.name for agent in SHIPPED if agent.rank <= tier]
    assert await listed(reader, tier=tier) == expected


async def test_filters_can_be_combined(reader: Person) -> None:
    expected = [a.name for a in SHIPPED if a.department == "Finance" and a.rank <= 2]
    for department in ("Finance", "finance", "FINANCE"):
        assert await listed(reader, department=department, tier=2) == expected
    found = await listed(reader, department="Finance", tier=2, search="month-end")
    assert found[0] == "close-lead"
    assert set(found) <= set(expected)


async def test_an_unknown_department_is_an_empty_list(reader: Person) -> None:
    response = await reader.get("/api/agents", params={"department": "Astrology"})
    assert response.status_code == 200
    body = response.json()
    assert (body["agents"], body["total"], body["departments"]) == ([], 0, DEPARTMENTS)


async def test_a_page_past_the_end_still_has_the_totals(reader: Person) -> None:
    body = (await reader.get("/api/agents?page=2147483647&limit=200")).json()
    assert (body["agents"], body["total"]) == ([], len(NAMES))
    assert body["departments"] == DEPARTMENTS


@pytest.mark.parametrize(
    "query",
    [
        *("limit=0", "limit=201", "limit=-1", "limit=x", "limit=5.0", "limit=", "limit=%205"),
        *("page=0", "page=-1", "page=2147483648", "page=1e2", "page=99999999999999999999"),
        *("tier=0", "tier=4", "tier=two", "tier=", "tier=true"),
        *("search=%00", "search=a%00b", "department=%00", f"search={'x' * 201}"),
    ],
)
async def test_a_query_out_of_bounds_is_400(reader: Person, query: str) -> None:
    response = await reader.get(f"/api/agents?{query}")
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert error["code"] == "VALIDATION_ERROR"
    assert error["details"][0]["field"] == query.partition("=")[0]


ALL_LEVELS = ["BASIC", "STANDARD", "ADVANCED", "CORPORATE", "ENTERPRISE"]
# For each tier of a variant: the levels that it unlocks.
OPENS = {
    "a": {level.lower(): ALL_LEVELS[: n + 1] for n, level in enumerate(ALL_LEVELS)},
    "b": {"basic": ["BASIC"], "business": ALL_LEVELS},
}
SHOWN_AS = {
    "a": {level: level for level in ALL_LEVELS},
    "b": dict.fromkeys(ALL_LEVELS, "BUSINESS") | {"BASIC": "BASIC"},
}
# Where Variant A shows the models in lists. Variant B shows those of unlocked agents.
SHOWN_IN_LISTS = {"basic": False, "standard": False, "advanced": True}
SHOWN_IN_LISTS |= {"corporate": True, "enterprise": True}


async def shown_everywhere(person: Person) -> tuple[list[Any], list[Any], list[Any]]:
    """Every agent as the list, the catalog, and the responses for one agent show it."""
    in_list = (await person.get("/api/agents?limit=200")).json()["agents"]
    sections = (await person.get("/api/agents/catalog")).json()["catalog"]
    in_catalog = [agent for section in sections for agent in section["agents"]]
    alone = []
    for name in NAMES:
        by_name = (await person.get(f"/api/agents/{name}")).json()["agent"]
        resolved = (await person.get(f"/api/agents/resolve?name={name}")).json()["agent"]
        assert {field: by_name.pop(field) for field in DETAILS}.keys() == DETAILS
        assert by_name == resolved
        alone.append(by_name)
    return in_list, sorted(in_catalog, key=lambda agent: str(agent["name"])), alone


async def test_locks_and_models_follow_the_tier(catalog: Service) -> None:
    variant = catalog.variant
    for tier, opened in OPENS[variant].items():
        in_list, in_catalog, alone = await shown_everywhere(await person_of(catalog, tier))
        assert in_list == in_catalog
        for file, agent, single in zip(SHIPPED, in_list, alone, strict=True):
            is_open = file.required_tier in opened
            in_lists, of_one = (
                (SHOWN_IN_LISTS[tier], True) if variant == "a" else (is_open, is_open)
            )
            assert agent["requiredTier"] == SHOWN_AS[variant][file.required_tier]
            assert agent["locked"] is not is_open
            # A hidden model is absent, not null.
            assert agent.get("model", "absent") == (file.model if in_lists else "absent")
            assert single.get("model", "absent") == (file.model if of_one else "absent")
            assert agent.keys() | {"model"} == single.keys() | {"model"} == FIELDS


async def test_a_tier_of_another_variant_counts_as_the_lowest(catalog: Service) -> None:
    foreign = {"a": "business", "b": "enterprise"}[catalog.variant]
    person = await person_of(catalog, foreign)
    assert (await person.get("/api/agents/finance-director")).json()["agent"]["locked"] is True


async def test_the_tier_of_the_selected_account_counts(catalog: Service) -> None:
    person = await catalog.sign_in()
    db = Database(catalog.database_url, pool_size=1)
    await db.open()
    tier = {"a": "enterprise", "b": "business"}[catalog.variant]
    company = await accounts.create_company(db, "Acme", person.user_id, tier=tier)
    await db.close()
    selected = {"X-Service-Account": ids.to_wire("acct", company)}
    path = "/api/agents/operations-director"
    assert (await person.get(path)).json()["agent"]["locked"] is True
    assert (await person.get(path, headers=selected)).json()["agent"]["locked"] is False


async def test_an_unknown_name_is_404(reader: Person) -> None:
    for name in ("nobody", "BLOG-WRITER", "cto", "x" * 5000, "%F0%9F%A6%86", "a'b"):
        response = await reader.get(f"/api/agents/{name}")
        assert response.status_code == 404, name
        assert response.json()["error"]["code"] == "NOT_FOUND"
    assert (await reader.get("/api/agents/%00")).status_code == 400


@pytest.mark.parametrize("name", ["blog-writer", "Blog-Writer", "copywriter", "COPYWRITER"])
async def test_a_name_or_alias_in_any_case_resolves(reader: Person, name: str) -> None:
    response = await reader.get("/api/agents/resolve", params={"name": name})
    assert response.json().keys() == {"agent"}
    assert response.json()["agent"]["name"] == "blog-writer"


@pytest.mark.parametrize(
    ("work", "name"),
    [
        ("Please check this pull request for security problems", "code-review-lead"),
        ("We had an outage last night and need a postmortem", "incident-lead"),
        ("Which customers have not paid? Send them reminders", "receivables-clerk"),
        ("turn the transcript of yesterday's call into minutes", "meeting-scribe"),
        ("clean up duplicates in the CRM", "crm-steward"),
        ("which libraries in our repo have vulnerabilities", "dependency-auditor"),
    ],
)
async def test_a_description_of_work_resolves_to_the_best_match(
    reader: Person, work: str, name: str
) -> None:
    body = (await reader.get("/api/agents/resolve", params={"q": work})).json()
    assert body.keys() == {"agent", "score", "candidates"}
    assert body["agent"]["name"] == name
    assert 0 < body["score"] <= 1


async def test_more_matching_words_are_a_higher_score(reader: Person) -> None:
    async def score(work: str) -> float:
        body = (await reader.get("/api/agents/resolve", params={"q": work})).json()
        return float(body["score"])

    assert await score("crm steward") == await score("crm steward zyxwv") > await score("crm")


async def test_the_name_is_used_if_both_are_given(reader: Person) -> None:
    given = {"name": "cto", "q": "blog article"}
    body = (await reader.get("/api/agents/resolve", params=given)).json()
    assert body.keys() == {"agent"}
    assert body["agent"]["name"] == "engineering-director"
    given["name"] = "nobody"
    assert (await reader.get("/api/agents/resolve", params=given)).status_code == 404


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("name=", 400),
        ("q=", 400),
        ("q=%00", 400),
        ("name=a%00", 400),
        (f"q={'x' * 2001}", 400),
        (f"name={'x' * 201}", 400),
        (f"q={'x' * 2000}", 404),
        ("name=nobody", 404),
        ("q=qwertzuiop", 404),
        ("q=the+of+and", 404),
        ("q=%F0%9F%A6%86", 404),
        ("q=%27%29%3B--", 404),
    ],
)
async def test_a_query_that_cannot_be_resolved_is_refused(
    reader: Person, query: str, status: int
) -> None:
    response = await reader.get(f"/api/agents/resolve?{query}")
    assert response.status_code == status, response.text


async def test_departments_have_counts_and_tiers(reader: Person) -> None:
    body = (await reader.get("/api/agents/departments")).json()
    assert body["total"] == len(DEPARTMENTS)
    assert body["departments"] == [
        {
            "name": name,
            "agents": sum(agent.department == name for agent in SHIPPED),
            "tiers": sorted({agent.rank for agent in SHIPPED if agent.department == name}),
        }
        for name in DEPARTMENTS
    ]


async def test_the_catalog_has_all_agents_by_department_and_rank(reader: Person) -> None:
    body = (await reader.get("/api/agents/catalog")).json()
    assert body.keys() == {"catalog", "total"}
    assert body["total"] == len(NAMES)
    assert [section["department"] for section in body["catalog"]] == DEPARTMENTS
    for section in body["catalog"]:
        shown = [(agent["tier"], agent["name"]) for agent in section["agents"]]
        expected = [(a.rank, a.name) for a in SHIPPED if a.department == section["department"]]
        assert shown == sorted(expected)


async def test_a_known_etag_gets_304(reader: Person) -> None:
    first = await reader.get("/api/agents/catalog")
    etag = first.headers["etag"]
    assert first.headers["cache-control"] == "private, no-cache"
    for sent in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = await reader.get("/api/agents/catalog", headers={"If-None-Match": sent})
        assert (again.status_code, again.content) == (304, b""), sent
        assert again.headers["etag"] == etag
        assert "ratelimit-remaining" in again.headers
    for sent in ('"other"', "", "x" * 1000, etag.strip('"')):
        again = await reader.get("/api/agents/catalog", headers={"If-None-Match": sent})
        assert (again.status_code, again.content) == (200, first.content), sent


async def test_the_etag_depends_on_the_tier(catalog: Service, reader: Person) -> None:
    basic = await catalog.sign_in()
    etags = {(await p.get("/api/agents/catalog")).headers["etag"] for p in (basic, reader)}
    assert len(etags) == 2


async def test_another_process_sees_a_sync_immediately(
    catalog: Service, reader: Person, tmp_path: Path
) -> None:
    before = (await reader.get("/api/agents/catalog")).headers["etag"]
    folder = tmp_path / "catalog"
    shutil.copytree(catalog_folder(), folder)
    writer = folder / "marketing" / "blog-writer.md"
    writer.write_text(writer.read_text().replace("Blog Writer", "Essayist"))
    (folder / "sales" / "crm-steward.md").unlink()
    async with catalog.process() as second:
        person = Person(second, reader.subject, reader.token)
        assert (await person.get("/api/agents/crm-steward")).status_code == 200
        await sync(catalog.database_url, folder)
        try:
            async with asyncio.timeout(1):
                agent = (await person.get("/api/agents/blog-writer")).json()["agent"]
                assert agent["displayName"] == "Essayist"
                assert (await person.get("/api/agents/crm-steward")).status_code == 404
                assert "crm-steward" not in await listed(person)
                response = await person.get("/api/agents/resolve?name=crm-cleaner")
                assert response.status_code == 404
                assert await listed(person, search="essayist") == ["blog-writer"]
                assert await listed(person, search="steward") == []
                after = await person.get("/api/agents/catalog", headers={"If-None-Match": before})
                assert after.status_code == 200
                assert after.json()["total"] == len(NAMES) - 1
        finally:
            await sync(catalog.database_url, catalog_folder())


@pytest.mark.parametrize("path", PATHS)
async def test_each_response_takes_one_statement(
    reader: Person, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await reader.get(path)
    with counted_statements(monkeypatch) as statements:
        response = await reader.get(path)
    assert response.status_code == 200
    mine = [text for text in statements if "current_agents" in text]
    # The other statements belong to authentication, whose result is cached.
    assert len(mine) == 1, statements


@pytest.mark.parametrize("path", PATHS)
async def test_the_scope_is_required(catalog: Service, reader: Person, path: str) -> None:
    async def status_with(scope: str) -> int:
        made = await reader.post("/api/keys", {"name": scope, "scopes": [scope]})
        secret = made.json()["secret"]
        response = await catalog.http.get(path, headers={"Authorization": f"Bearer {secret}"})
        await reader.delete(f"/api/keys/{made.json()['key']['id']}")
        return response.status_code

    assert await status_with("agents:read") == 200
    assert await status_with("tasks:read") == 403
    assert (await catalog.http.get(path)).status_code == 401


@pytest.mark.parametrize("path", PATHS)
async def test_agents_count_as_ai_endpoints(reader: Person, path: str) -> None:
    policy = (await reader.get(path)).headers["ratelimit-policy"]
    assert policy == "6000;w=60, 4800;w=60"
