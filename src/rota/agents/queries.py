"""The SQL of the catalog. The service only reads it. `sync` writes it."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from rota.agents.model import Agent, AgentVersion, Approval, Definition, Department
from rota.platform.db import ReadConnection, WriteConnection

_AGENT_FIELDS = tuple(field.name for field in fields(Agent))
_DEFINITION_FIELDS = tuple(field.name for field in fields(Definition))
_LISTS = ("tags", "aliases", "tools")
# The database calls an agent's rank its tier.
_COLUMN_OF = {"rank": "tier"}


def _selected(names: Iterable[str]) -> str:
    return ", ".join(
        f"{_COLUMN_OF[name]} AS {name}" if name in _COLUMN_OF else name for name in names
    )


_AGENT = _selected(_AGENT_FIELDS)
_VERSION = _selected((*_DEFINITION_FIELDS, "version"))


@dataclass(frozen=True, slots=True)
class Page:
    agents: list[Agent]
    departments: list[str]
    total: int


@dataclass(frozen=True, slots=True)
class Known:
    """The stored state of an agent before a sync."""

    version: int
    content_hash: bytes
    retired: bool


async def page(
    connection: ReadConnection,
    *,
    department: str | None,
    rank: int | None,
    search: str | None,
    limit: int,
    offset: int,
) -> Page:
    """A page, the number of all matches, and every department, in one statement.

    The page is joined to the totals, so a page past the end has the totals too.
    """
    rows = await connection.fetch(
        f"""
        WITH matching AS (
            SELECT c.*, coalesce(ts_rank(c.search, query), 0) AS relevance
            FROM current_agents c, agent_search($3) AS query
            WHERE ($1::text IS NULL OR c.department = $1)
              AND ($2::integer IS NULL OR c.tier <= $2)
              AND ($3::text IS NULL OR c.search @@ query)
        ), page AS (
            SELECT * FROM matching ORDER BY relevance DESC, name LIMIT $4 OFFSET $5
        )
        SELECT (SELECT count(*) FROM matching) AS total,
               ARRAY(SELECT DISTINCT department FROM current_agents ORDER BY 1) AS departments,
               {_AGENT}
        FROM (SELECT) AS totals LEFT JOIN page ON true
        ORDER BY relevance DESC, name
        """,  # noqa: S608
        department,
        rank,
        search,
        limit,
        offset,
    )
    found = [_agent(row) for row in rows if row["name"] is not None]
    return Page(found, rows[0]["departments"], rows[0]["total"])


async def get(connection: ReadConnection, name: str) -> Agent | None:
    row = await connection.fetchrow(
        f"SELECT {_AGENT} FROM current_agents WHERE name = $1",  # noqa: S608
        name,
    )
    return _agent(row) if row else None


async def named(connection: ReadConnection, name: str) -> Agent | None:
    """By name or alias. `sync` makes sure that each name and alias is unique."""
    row = await connection.fetchrow(
        f"SELECT {_AGENT} FROM current_agents WHERE name = $1 OR $1 = ANY (aliases)",  # noqa: S608
        name,
    )
    return _agent(row) if row else None


async def best_match(connection: ReadConnection, work: str) -> tuple[Agent, float] | None:
    """The agent that best matches a description of work.

    A word weighs more the fewer agents have it: "write" weighs little, "tender" a lot. The score
    is the share of the description's weight that the agent covers.
    """
    row = await connection.fetchrow(
        f"""
        WITH words AS (
            SELECT format('''%s''', lexeme)::tsquery AS word
            FROM unnest(to_tsvector('pg_catalog.english', agent_words($1)))
        ), rated AS (
            SELECT word, ln(1 + (SELECT count(*) FROM current_agents)::float8
                              / greatest(count(c.name), 1)) AS rarity
            FROM words LEFT JOIN current_agents c ON c.search @@ word
            GROUP BY word
        ), best AS (
            SELECT name, sum(rarity * ts_rank('{{0, 0.5, 0.8, 1}}', search, word))
                       / (SELECT sum(rarity) FROM rated) AS score
            FROM rated JOIN current_agents ON search @@ word
            GROUP BY name
            ORDER BY score DESC, name
            LIMIT 1
        )
        SELECT {_AGENT}, score FROM best JOIN current_agents USING (name)
        """,  # noqa: S608
        work,
    )
    # Rounding can lift the score above 1.
    return (_agent(row), min(row["score"], 1.0)) if row else None


async def departments(connection: ReadConnection) -> list[Department]:
    rows = await connection.fetch(
        """
        SELECT department AS name, count(*) AS agents,
               array_agg(DISTINCT tier ORDER BY tier) AS ranks
        FROM current_agents GROUP BY department ORDER BY department
        """
    )
    return [Department(**row) for row in rows]


async def by_department(connection: ReadConnection) -> list[Agent]:
    """All agents by department, then by rank, the highest first."""
    rows = await connection.fetch(
        f"SELECT {_AGENT} FROM current_agents ORDER BY department, tier, name"  # noqa: S608
    )
    return [_agent(row) for row in rows]


async def find(connection: ReadConnection, name: str) -> AgentVersion | None:
    """The current version, for a new task. None if the agent is retired."""
    row = await connection.fetchrow(
        f"SELECT {_VERSION} FROM current_agents WHERE name = $1",  # noqa: S608
        name,
    )
    return _version(row) if row else None


async def find_version(connection: ReadConnection, name: str, version: int) -> AgentVersion | None:
    """The version that an existing task uses, even if the agent changed or is retired."""
    row = await connection.fetchrow(
        f"SELECT {_VERSION} FROM agent_versions WHERE name = $1 AND version = $2",  # noqa: S608
        name,
        version,
    )
    return _version(row) if row else None


async def lock(connection: WriteConnection) -> None:
    """Makes other syncs wait, but not readers."""
    await connection.execute("LOCK TABLE agents IN EXCLUSIVE MODE")


async def known(connection: ReadConnection) -> dict[str, Known]:
    rows = await connection.fetch(
        """
        SELECT name, version, content_hash, retired_at IS NOT NULL AS retired
        FROM agents JOIN agent_versions USING (name, version)
        """
    )
    return {row["name"]: Known(row["version"], row["content_hash"], row["retired"]) for row in rows}


async def add_versions(
    connection: WriteConnection, versions: Iterable[tuple[Definition, int, bytes]]
) -> None:
    columns = [_COLUMN_OF.get(name, name) for name in _DEFINITION_FIELDS]
    columns += ["version", "content_hash"]
    placeholders = ", ".join(f"${n}" for n in range(1, len(columns) + 1))
    await connection.executemany(
        f"INSERT INTO agent_versions ({', '.join(columns)}) VALUES ({placeholders})",  # noqa: S608
        [
            (*_values(definition), version, content_hash)
            for definition, version, content_hash in versions
        ],
    )


async def publish(connection: WriteConnection, current: Iterable[tuple[str, int]]) -> None:
    """Makes these versions the catalog. All other agents become retired."""
    names, versions = zip(*current, strict=True)
    await connection.execute(
        """
        WITH published AS (
            SELECT name, version, agent_document(name, display_name, tags, description) AS search
            FROM unnest($1::text[], $2::integer[]) AS given (name, version)
            JOIN agent_versions USING (name, version)
        ), retired AS (
            UPDATE agents SET retired_at = now()
            WHERE retired_at IS NULL AND name <> ALL ($1::text[])
        )
        INSERT INTO agents (name, version, search) SELECT name, version, search FROM published
        ON CONFLICT (name) DO UPDATE
            SET version = excluded.version, search = excluded.search, retired_at = NULL
            WHERE (agents.version, agents.search, agents.retired_at)
                  IS DISTINCT FROM (excluded.version, excluded.search, NULL)
        """,
        names,
        versions,
    )


def _values(definition: Definition) -> Iterator[Any]:
    for name in _DEFINITION_FIELDS:
        value = getattr(definition, name)
        yield asdict(value) if isinstance(value, Approval) else value


def _field(row: Any, name: str) -> Any:
    value = row[name]
    if name in _LISTS:
        return tuple(value)
    if name == "approval":
        return Approval.from_json(value)
    return value


def _agent(row: Any) -> Agent:
    return Agent(**{name: _field(row, name) for name in _AGENT_FIELDS})


def _version(row: Any) -> AgentVersion:
    return AgentVersion(**{name: _field(row, name) for name in (*_DEFINITION_FIELDS, "version")})
