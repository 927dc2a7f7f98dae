"""`outputSchema` in an agent's file."""

from pathlib import Path

import pytest

from rota.agents.files import CatalogInvalid
from rota.agents.sync import sync
from tests.agents.catalogs import read_catalog
from tests.agents.conftest import Folder, agent_text
from tests.service import Service
from tests.tasks.world import HIGHEST_TIER, create, newcomer

SCHEMA = """\
outputSchema:
  type: object
  properties:
    rate: {type: number, minimum: 0.25, multipleOf: 0.05}
    answer: {enum: [no, yes, null, 3]}
    a: {type: object, properties: {b: {type: object, properties: {c: {type: string}}}}}
  required: [rate]
"""


def with_schema(schema: str, name: str = "scribe") -> str:
    return agent_text(name).replace("budgetCents: 10\n", f"budgetCents: 10\n{schema}")


def test_a_schema_is_read_as_json_with_decimals_and_many_levels(folder: Folder) -> None:
    [agent] = read_catalog(folder(scribe=with_schema(SCHEMA)))
    assert agent.output_schema == {
        "type": "object",
        "properties": {
            "rate": {"type": "number", "minimum": 0.25, "multipleOf": 0.05},
            "answer": {"enum": ["no", "yes", None, 3]},
            "a": {
                "type": "object",
                "properties": {"b": {"type": "object", "properties": {"c": {"type": "string"}}}},
            },
        },
        "required": ["rate"],
    }
    assert list(agent.output_schema["properties"]) == ["rate", "answer", "a"]


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("outputSchema: {type: string}\n", "it must be a JSON Schema"),
        ("outputSchema: text\n", "it must be a JSON Schema"),
        (f"outputSchema: {{type: object, title: {'x' * 33_000}}}\n", "it must be a JSON Schema"),
        ("outputSchema: {type: object, required: rate}\n", "the schema cannot be used"),
        ("outputSchema: {type: object, $ref: 'https://example.com'}\n", "cannot be used"),
        ("outputSchema: {type: object, $ref: '#/$defs/none'}\n", "cannot be used"),
        ("outputSchema: " + "{a: " * 50 + "1" + "}" * 50 + "\n", "nested too deeply"),
    ],
)
async def test_a_schema_that_cannot_be_used_is_reported_with_its_line(
    service: Service, folder: Folder, schema: str, problem: str
) -> None:
    with pytest.raises(CatalogInvalid) as caught:
        await sync(service.database_url, folder(scribe=with_schema(schema)))
    [found] = caught.value.problems
    assert problem in found.message
    assert found.line == 14
    assert found.file.name == "scribe.md"


async def test_a_new_schema_is_a_new_version_and_new_tasks_use_it(
    service: Service, folder: Folder
) -> None:
    files: list[Path] = []

    async def synced(schema: str) -> int:
        files.append(folder(scribe=with_schema(schema), other=agent_text("other")))
        report = await sync(service.database_url, files[-1])
        return {change.name: change.version for change in (*report.added, *report.changed)}.get(
            "scribe", 0
        )

    first = await synced("")
    assert await synced("") == 0
    second = await synced(SCHEMA)
    assert second == (first or 1) + 1
    person = await newcomer(service, tier=HIGHEST_TIER[service.variant])
    agent = (await person.get("/api/agents/scribe")).json()["agent"]
    assert agent["outputSchema"]["required"] == ["rate"]
    versions = (await person.get("/api/agents/scribe/versions")).json()["versions"]
    assert [each["outputSchema"] is None for each in versions[:2]] == [False, True]
    task = await create(person, agent="scribe")
    assert task["outputSchema"] == agent["outputSchema"]
    own = {"type": "object"}
    assert (await create(person, agent="scribe", outputSchema=own))["outputSchema"] == own
