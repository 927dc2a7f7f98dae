"""Which agents an account's tier opens, and to whom an agent's model is told.

A deployment's variant is one value of `Gating`; nothing here knows which.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rota.agents.model import LEVELS, Agent, Level
from rota.platform.errors import Forbidden

# Given the account's tier and whether the agent is locked for it.
Disclosure = Callable[[str, bool], bool]


class AgentLocked(Forbidden):
    def __init__(self, agent: Agent, required_tier: str) -> None:
        super().__init__(
            f"The agent {agent.name} requires the tier {required_tier}. "
            "Choose another agent or a higher plan."
        )


@dataclass(frozen=True, slots=True)
class AgentAccess:
    # Each tier of the variant, from the lowest, with the highest level that it opens.
    opens: Mapping[str, Level]
    # Whether to tell the model in lists, and of a single agent.
    model_in_lists: Disclosure
    model_alone: Disclosure

    def required_tier(self, agent: Agent) -> str:
        """The lowest tier of this variant that opens the agent, as it is shown."""
        wanted = LEVELS.index(agent.required_tier)
        return next(t for t, level in self.opens.items() if LEVELS.index(level) >= wanted).upper()

    def locked(self, agent: Agent, tier: str) -> bool:
        """Whether an account of this tier may not use the agent.

        A tier of another variant counts as the lowest.
        """
        opened = self.opens.get(tier) or next(iter(self.opens.values()))
        return LEVELS.index(opened) < LEVELS.index(agent.required_tier)

    def check(self, agent: Agent, tier: str) -> None:
        """Raises if an account of this tier cannot use the agent."""
        if self.locked(agent, tier):
            raise AgentLocked(agent, self.required_tier(agent))


def always(tier: str, locked: bool) -> bool:
    return True


def when_open(tier: str, locked: bool) -> bool:
    return not locked


def for_tiers(*tiers: str) -> Disclosure:
    return lambda tier, locked: tier in tiers
