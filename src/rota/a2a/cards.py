"""Agent cards: one of the service, one of the service for an account, and one of each agent.

The card of the service is public. The catalog is not, so the public card has no agents. With a
credential, a client gets the card for its account, with each agent that it can use as a skill, or
the card of one agent. In that one, the name of the agent is the tenant, which clients of the
protocol send with every request.
"""

from collections.abc import Iterable
from importlib.metadata import version

from a2a.types import a2a_pb2 as wire
from a2a.utils.constants import PROTOCOL_VERSION_1_0, TransportProtocol

from rota.a2a.assembly import PATH
from rota.a2a.messages import INPUT_MODES, OUTPUT_MODES
from rota.agents.model import Agent
from rota.auth.access_tokens import SCOPES

BEARER = "bearer"
_MAX_EXAMPLES = 5


class Cards:
    def __init__(self, public_url: str, issuers: Iterable[str]) -> None:
        self._url = public_url.rstrip("/") + PATH
        self._issuers = tuple(issuers)

    def public(self) -> wire.AgentCard:
        card = self._card(
            "Rota",
            "Gives tasks to named AI agents. People approve what the agents do. The extended card "
            "lists the agents.",
        )
        card.skills.append(
            wire.AgentSkill(
                id="delegate",
                name="Delegate work",
                description="Describe the work. The agent that fits it best gets it, unless "
                'metadata names one: {"rota": {"agent": "NAME"}}. Needs a credential.',
                tags=["delegation", "tasks"],
                examples=["Write a checklist for new colleagues."],
            )
        )
        return card

    def extended(self, agents: Iterable[Agent]) -> wire.AgentCard:
        """For an account: its agents are the skills, and the ID of a skill is the agent's name."""
        card = self.public()
        card.skills.extend(_skill(agent) for agent in agents)
        return card

    def of_agent(self, agent: Agent, use_for: Iterable[str] = ()) -> wire.AgentCard:
        card = self._card(agent.display_name, agent.description, tenant=agent.name)
        skill = _skill(agent)
        skill.examples.extend(list(use_for)[:_MAX_EXAMPLES])
        card.skills.append(skill)
        return card

    def _card(self, name: str, description: str, tenant: str = "") -> wire.AgentCard:
        card = wire.AgentCard(
            name=name,
            description=description,
            version=version("rota"),
            supported_interfaces=[
                wire.AgentInterface(
                    url=self._url,
                    protocol_binding=binding.value,
                    protocol_version=PROTOCOL_VERSION_1_0,
                    tenant=tenant,
                )
                for binding in (TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON)
            ],
            capabilities=wire.AgentCapabilities(
                streaming=True, push_notifications=False, extended_agent_card=True
            ),
            default_input_modes=INPUT_MODES,
            default_output_modes=OUTPUT_MODES,
        )
        card.security_schemes[BEARER].http_auth_security_scheme.CopyFrom(
            wire.HTTPAuthSecurityScheme(
                scheme="Bearer",
                description="An API key without the scope tasks:approve, or an access token of an "
                f"identity provider for the audience {self._url}.",
            )
        )
        requirement = card.security_requirements.add()
        requirement.schemes[BEARER].list.extend(())
        for number, issuer in enumerate(self._issuers, 1):
            name = f"oidc{number}"
            card.security_schemes[name].open_id_connect_security_scheme.CopyFrom(
                wire.OpenIdConnectSecurityScheme(
                    open_id_connect_url=f"{issuer.rstrip('/')}/.well-known/openid-configuration"
                )
            )
            card.security_requirements.add().schemes[name].list.extend(SCOPES)
        return card


def _skill(agent: Agent) -> wire.AgentSkill:
    return wire.AgentSkill(
        id=agent.name,
        name=agent.display_name,
        description=agent.description,
        # The protocol requires one.
        tags=agent.tags or (agent.department,),
    )
