"""Variant B: two tiers, and a personal add-on with a trial at signup."""

from rota.agents.access import AgentAccess, when_open
from rota.limits.result import Ceilings
from rota.mcp.server_limit import without_pass
from rota.variants.variant import Tier, Variant

VARIANT_B = Variant(
    name="B",
    tiers=(
        Tier("basic", Ceilings(all=600, ai=300)),
        Tier("business", Ceilings(all=6000, ai=4800), weight=4, allowance_cents=10_000),
    ),
    signup_trial=True,
    agent_access=AgentAccess(
        opens={"basic": "BASIC", "business": "ENTERPRISE"},
        model_in_lists=when_open,
        model_in_detail=when_open,
        remedy="Choose another agent, or ask the operator of this service for a higher tier.",
    ),
    servers=without_pass("basic", servers=1),
    pass_price_cents=900,
)
