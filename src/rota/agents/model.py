"""Agents of the catalog, their versions, and when they need approval."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Literal

# The levels that an agent's file can require, lowest first. The variant of a deployment says
# which tier unlocks which level.
Level = Literal["BASIC", "STANDARD", "ADVANCED", "CORPORATE", "ENTERPRISE"]
LEVELS: tuple[Level, ...] = ("BASIC", "STANDARD", "ADVANCED", "CORPORATE", "ENTERPRISE")

# The built-in tool with which an agent delegates.
DELEGATE = "delegate"


@dataclass(frozen=True, slots=True)
class Approval:
    """When a person must approve: before the run, before a tool call, before the output."""

    run: bool = False
    tools: Literal["never", "writes", "always"] | tuple[str, ...] = "writes"
    output: bool = False

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Approval":
        tools = value["tools"]
        return cls(**{**value, "tools": tools if isinstance(tools, str) else tuple(tools)})

    def asks_before(self, tool: str, *, read_only: bool) -> bool:
        """Whether a call of `server/tool` needs approval."""
        if self.tools == "writes":
            return not read_only
        if isinstance(self.tools, str):
            return self.tools == "always"
        return matches(self.tools, tool)


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent as the API shows it."""

    name: str
    display_name: str
    description: str
    department: str
    # 1 Director, 2 Lead, 3 Specialist.
    rank: int
    tags: tuple[str, ...]
    premium: bool
    required_tier: Level
    model: str
    # None: the first letters of the display name.
    initials: str | None
    tools: tuple[str, ...]
    approval: Approval
    budget_cents: int

    @property
    def shown_initials(self) -> str:
        """Two letters that stand for the agent where its name does not fit."""
        if self.initials is not None:
            return self.initials
        words: list[str] = re.findall(r"[^\W_]+", self.display_name) or [self.name]
        letters = words[0][0] + words[1][0] if len(words) > 1 else words[0]
        return (letters * 2).upper()[:2]


@dataclass(frozen=True, slots=True)
class Definition(Agent):
    """The content of an agent's file."""

    # The work that the agent is for. Search and resolve use it.
    use_for: tuple[str, ...]
    aliases: tuple[str, ...]
    # Templates of the sentences that describe tool calls, by `server/tool`.
    describe: dict[str, str]
    max_steps: int
    instructions: str
    # The JSON Schema of its output. None: the output is text.
    output_schema: dict[str, Any] | None
    # How many of its tasks can run at the same time in one account. None: no limit.
    max_concurrent: int | None

    def may_use(self, tool: str) -> bool:
        return matches(self.tools, tool)


@dataclass(frozen=True, slots=True)
class AgentVersion(Definition):
    """What a run uses. It never changes: a changed file becomes a new version."""

    version: int
    # The policies of the tasks above the run's task. A person must approve what any of them asks
    # for, so an agent cannot avoid a gate by delegation.
    inherited_approval: tuple[Approval, ...] = ()

    @property
    def policies(self) -> tuple[Approval, ...]:
        return (self.approval, *self.inherited_approval)

    @property
    def asks_before_run(self) -> bool:
        return any(policy.run for policy in self.policies)

    @property
    def can_delegate(self) -> bool:
        """Whether there are agents of a lower rank."""
        return self.rank < 3

    @property
    def asks_before_output(self) -> bool:
        return any(policy.output for policy in self.policies)

    def asks_before(self, tool: str, *, read_only: bool) -> bool:
        return any(policy.asks_before(tool, read_only=read_only) for policy in self.policies)


@dataclass(frozen=True, slots=True)
class CatalogVersion:
    """A version in the history of an agent."""

    definition: AgentVersion
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Department:
    name: str
    agents: int
    ranks: list[int]


def matches(patterns: tuple[str, ...], tool: str) -> bool:
    """Whether `server/tool` matches a pattern, in which `*` stands for any characters."""
    return any(fnmatchcase(tool, pattern) for pattern in patterns)
