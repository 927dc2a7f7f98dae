"""The SQL of the catalog. The service only reads it. `sync` writes it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from rota.agents.model import (
    Agent,
    AgentVersion,
    Approval,
    CatalogVersion,
    Definition,
    Department,
    Level,
)
from rota.platform.db import ReadConnection, WriteConnection

_AGENT_FIELDS = tuple(field.name for field in fields(Agent))
_DEFINITION_FIELDS = tuple(field.name for field in fields(Definition))
_LISTS = ("tags", "use_for", "aliases", "tools")
# The database calls an agent's rank its tier.
_COLUMN_OF = {"rank": "tier"}


def _selected(names: Iterable[str]) -> str:
    return ", ".join(
        f"{_COLUMN_OF[name]} AS {name}" if name in _COLUMN_OF else name for name in names
    )


_AGENT = _selected(_AGENT_FIELDS)
_VERSION = _selected((*_DEFINITION_FIELDS, "version"))

# A match with a lower score is not an answer to a description of work. This value refuses most work
# that no agent does and little that one does, in the development half of
# tests/agents/work_descriptions.yaml.
MIN_SCORE = 0.65
# An open agent that is a much worse match than a locked one is not an answer either.
MIN_SHARE_OF_LOCKED = 0.85
MAX_CANDIDATES = 5


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
    aliases: tuple[str, ...]
    retired: bool


@dataclass(frozen=True, slots=True)
class Match:
    agent: Agent
    # From 0 to 1.
    score: float


# The terms that fit a search: those that begin with one of its words, and the stems of its words.
_SEARCHED = """
    SELECT word, name, strength FROM agent_search_words($3)
    JOIN agent_terms ON term >= word AND term < word || chr(1114111)
    UNION ALL
    SELECT word, name, strength FROM agent_search_words($3), unnest(stems) AS stem
    JOIN agent_terms ON term = stem
"""
# The terms that fit a description of work: the stems of its words.
_DESCRIBED = """
    SELECT lexeme, name, strength
    FROM unnest(to_tsvector('pg_catalog.english', agent_words($1)))
    JOIN agent_terms ON term = lexeme
"""


def _scores(terms: str) -> str:
    """Common table expressions that end in `scored`: a score from 0 to 1 for each agent that fits.

    `terms` selects word, agent and strength. A word weighs more the fewer agents have it: "write"
    weighs little, "tender" a lot. A word that only one agent has weighs 1. The more weight an agent
    matches, the nearer its score is to 1.
    """
    return f"""
        found (word, name, strength) AS ({terms}),
        matched AS (
            SELECT name, max(strength) AS strength, count(*) OVER (PARTITION BY word) AS agents
            FROM found GROUP BY word, name
        ), scored AS (
            SELECT name, 1 - exp(-sum(strength * ln(1 + total / agents) / ln(1 + total))) AS score
            FROM matched,
                 (SELECT count(*)::float8 AS total FROM agents WHERE retired_at IS NULL) AS counted
            GROUP BY name
        )
    """  # noqa: S608


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
        WITH {_scores(_SEARCHED)}, matching AS (
            SELECT name, coalesce(score, 0) AS relevance
            FROM current_agents LEFT JOIN scored USING (name)
            WHERE ($1::text IS NULL OR lower(department) = lower($1))
              AND ($2::integer IS NULL OR tier <= $2)
              AND ($3::text IS NULL OR score IS NOT NULL)
        ), page AS (
            SELECT * FROM (SELECT * FROM matching ORDER BY relevance DESC, name LIMIT $4 OFFSET $5)
                AS best JOIN current_agents USING (name)
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


async def named(connection: ReadConnection, name: str) -> Agent | None:
    """By name, or else by alias. Earlier versions could store a name or an alias twice."""
    row = await connection.fetchrow(
        f"""
        SELECT {_AGENT} FROM current_agents WHERE name = $1 OR $1 = ANY (aliases)
        ORDER BY name = $1 DESC, name LIMIT 1
        """,  # noqa: S608
        name,
    )
    return _agent(row) if row else None


async def matches(
    connection: ReadConnection, work: str, open_levels: Sequence[Level]
) -> list[Match]:
    """The agents that match a description of work: first those of an open level, best first."""
    rows = await connection.fetch(
        f"""
        WITH {_scores(_DESCRIBED)}, rated AS (
            SELECT *, required_tier = ANY ($2) AS open
            FROM scored JOIN current_agents USING (name)
            WHERE score >= $3
        )
        SELECT {_AGENT}, score FROM rated
        WHERE NOT open OR score >= coalesce((SELECT $4 * max(score) FROM rated WHERE NOT open), 0)
        ORDER BY open DESC, score DESC, name
        LIMIT $5
        """,  # noqa: S608
        work,
        open_levels,
        MIN_SCORE,
        MIN_SHARE_OF_LOCKED,
        MAX_CANDIDATES,
    )
    return [Match(_agent(row), row["score"]) for row in rows]


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


async def current_versions(connection: ReadConnection, names: Sequence[str]) -> dict[str, int]:
    """The versions of those of these agents that are in the catalog."""
    rows = await connection.fetch(
        "SELECT name, version FROM current_agents WHERE name = ANY($1)", list(names)
    )
    return {row["name"]: row["version"] for row in rows}


async def max_concurrent(connection: ReadConnection, name: str) -> int | None:
    """How many of the agent's tasks can run at the same time in one account. None: no limit.

    The limit of a retired agent stays.
    """
    limit: int | None = await connection.fetchval(
        """
        SELECT max_concurrent FROM agents JOIN agent_versions USING (name, version)
        WHERE name = $1
        """,
        name,
    )
    return limit


async def find_version(connection: ReadConnection, name: str, version: int) -> AgentVersion | None:
    """The version that an existing task uses, even if the agent changed or is retired."""
    row = await connection.fetchrow(
        f"SELECT {_VERSION} FROM agent_versions WHERE name = $1 AND version = $2",  # noqa: S608
        name,
        version,
    )
    return _version(row) if row else None


async def versions(
    connection: ReadConnection, name: str, limit: int, offset: int
) -> tuple[list[CatalogVersion], int]:
    """A page of the versions of an agent, newest first, and their number."""
    total: int = await connection.fetchval(
        "SELECT count(*) FROM agent_versions WHERE name = $1", name
    )
    rows = await connection.fetch(
        f"""
        SELECT {_VERSION}, created_at FROM agent_versions WHERE name = $1
        ORDER BY version DESC LIMIT $2 OFFSET $3
        """,  # noqa: S608
        name,
        limit,
        offset,
    )
    return [CatalogVersion(_version(row), row["created_at"]) for row in rows], total


async def version_numbers(
    connection: ReadConnection, name: str, open_levels: Sequence[Level], limit: int
) -> list[int]:
    """The versions of an agent that are of an open level, newest first."""
    rows = await connection.fetch(
        """
        SELECT version FROM agent_versions WHERE name = $1 AND required_tier = ANY ($2)
        ORDER BY version DESC LIMIT $3
        """,
        name,
        open_levels,
        limit,
    )
    return [row["version"] for row in rows]


async def lock(connection: WriteConnection) -> None:
    """Makes other syncs wait, but not readers."""
    await connection.execute("LOCK TABLE agents IN EXCLUSIVE MODE")


async def known(connection: ReadConnection) -> dict[str, Known]:
    rows = await connection.fetch(
        """
        SELECT name, version, content_hash, aliases, retired_at IS NOT NULL AS retired
        FROM agents JOIN agent_versions USING (name, version)
        """
    )
    return {
        row["name"]: Known(
            row["version"], row["content_hash"], tuple(row["aliases"]), row["retired"]
        )
        for row in rows
    }


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
    rows = await connection.fetch(
        """
        WITH retired AS (
            UPDATE agents SET retired_at = now()
            WHERE retired_at IS NULL AND name <> ALL ($1::text[])
            RETURNING name
        ), published AS (
            INSERT INTO agents (name, version)
            SELECT * FROM unnest($1::text[], $2::integer[])
            ON CONFLICT (name) DO UPDATE SET version = excluded.version, retired_at = NULL
                WHERE (agents.version, agents.retired_at) IS DISTINCT FROM (excluded.version, NULL)
            RETURNING name
        )
        SELECT name FROM retired UNION ALL SELECT name FROM published
        """,
        names,
        versions,
    )
    changed = [row["name"] for row in rows]
    await connection.execute("DELETE FROM agent_terms WHERE name = ANY ($1)", changed)
    await connection.execute(
        """
        INSERT INTO agent_terms (term, name, strength)
        SELECT term, v.name, strength
        FROM agents a JOIN agent_versions v USING (name, version),
             agent_terms_of(v.name, v.display_name, v.aliases, v.use_for, v.tags, v.description,
                            v.department)
        WHERE a.retired_at IS NULL AND a.name = ANY ($1)
        """,
        changed,
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
