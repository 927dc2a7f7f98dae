"""Agents as the rest of the code sees them."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

# What an agent's file can ask of an account, from the lowest. These are words of the
# catalog; which tier of a deployment gives which of them is the variant's to say.
Level = Literal["BASIC", "STANDARD", "ADVANCED", "CORPORATE", "ENTERPRISE"]
LEVELS: tuple[Level, ...] = ("BASIC", "STANDARD", "ADVANCED", "CORPORATE", "ENTERPRISE")

Rank = Literal[1, 2, 3]


@dataclass(frozen=True, slots=True)
class Approval:
    """When a person has to agree: before the run, before a tool, before the output counts."""

    run: bool = False
    tools: Literal["never", "writes", "always"] | tuple[str, ...] = "writes"
    output: bool = False

    def asks_before(self, tool: str, *, read_only: bool) -> bool:
        """Whether a call of `server/tool` waits for a person."""
        if self.tools == "writes":
            return not read_only
        if isinstance(self.tools, str):
            return self.tools == "always"
        return matches(self.tools, tool)


@dataclass(frozen=True, slots=True)
class Agent:
    """What is shown of an agent."""

    name: str
    display_name: str
    description: str
    department: str
    tier: int
    tags: tuple[str, ...]
    premium: bool
    required_tier: Level
    model: str


@dataclass(frozen=True, slots=True)
class Definition(Agent):
    """All that an agent's file says."""

    aliases: tuple[str, ...]
    tools: tuple[str, ...]
    approval: Approval
    budget_cents: int
    max_steps: int
    instructions: str

    def may_use(self, tool: str) -> bool:
        return matches(self.tools, tool)


@dataclass(frozen=True, slots=True)
class AgentVersion(Definition):
    """What a run works from. It never changes: another text is another version."""

    version: int


@dataclass(frozen=True, slots=True)
class Department:
    name: str
    agents: int
    tiers: list[int]


def matches(patterns: tuple[str, ...], tool: str) -> bool:
    """Whether `server/tool` fits one of the patterns, in which `*` is any characters."""
    return any(fnmatchcase(tool, pattern) for pattern in patterns)
