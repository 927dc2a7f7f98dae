"""The JSON Schemas of outputs, of agents and of tasks, and whether they can be used."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from rota.agents.files import AgentFile, CatalogInvalid, Problem
from rota.platform.schema import SchemaChecks

# The catalog belongs to no account.
_CATALOG = UUID(int=0)


async def problem_with(
    checks: SchemaChecks, account_id: UUID, schema: dict[str, Any]
) -> str | None:
    """Why a schema cannot be used, if it cannot. Reading it can take seconds of another process."""
    verdict = await checks.check(account_id, schema, {}, named="the schema")
    return None if verdict.usable else verdict.problems[0]


async def check_catalog(files: Sequence[AgentFile]) -> None:
    """Raises CatalogInvalid if the schema of an agent's output cannot be used."""
    checks = SchemaChecks()
    problems: list[Problem] = []
    try:
        for file in files:
            if (schema := file.definition.output_schema) is None:
                continue
            if (problem := await problem_with(checks, _CATALOG, schema)) is not None:
                problems.append(Problem(file.path, file.line("outputSchema"), problem))
    finally:
        await checks.aclose()
    if problems:
        raise CatalogInvalid(sorted(problems))
