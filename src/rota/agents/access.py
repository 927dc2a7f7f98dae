"""Which agents an account's tier can use, and who can see an agent's model.

Each variant of a deployment is one value of `AgentAccess`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rota.agents.model import LEVELS, Agent, Level
from rota.platform.errors import Forbidden

# Decides whether to show the model, from the account's tier and whether the agent is locked.
Disclosure = Callable[[str, bool], bool]


class AgentLocked(Forbidden):
    def __init__(self, agent: Agent, required_tier: str, remedy: str) -> None:
        super().__init__(f"The agent {agent.name} requires the tier {required_tier}. {remedy}")


@dataclass(frozen=True, slots=True)
class AgentAccess:
    # Each tier of the variant, lowest first, with the highest level that it unlocks.
    opens: Mapping[str, Level]
    # Whether to show the model in lists, and for a single agent.
    model_in_lists: Disclosure
    model_in_detail: Disclosure
    # What a user with a locked agent can do.
    remedy: str

    def required_tier(self, agent: Agent) -> str:
        """The lowest tier of this variant that unlocks the agent, as responses show it."""
        required = LEVELS.index(agent.required_tier)
        return next(t for t, level in self.opens.items() if LEVELS.index(level) >= required).upper()

    def locked(self, agent: Agent, tier: str) -> bool:
        """Whether an account of this tier cannot use the agent.

        A tier of another variant counts as the lowest tier.
        """
        return agent.required_tier not in self.open_levels(tier)

    def open_levels(self, tier: str) -> tuple[Level, ...]:
        """The levels of the agents that an account of this tier can use."""
        highest = self.opens.get(tier) or next(iter(self.opens.values()))
        return LEVELS[: LEVELS.index(highest) + 1]

    def check(self, agent: Agent, tier: str) -> None:
        """Raises if an account of this tier cannot use the agent."""
        if self.locked(agent, tier):
            raise AgentLocked(agent, self.required_tier(agent), self.remedy)


def always(tier: str, locked: bool) -> bool:
    return True


def when_open(tier: str, locked: bool) -> bool:
    return not locked


def for_tiers(*tiers: str) -> Disclosure:
    return lambda tier, locked: tier in tiers
