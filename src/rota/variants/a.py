"""Variant A: five subscription tiers."""

from rota.agents.access import AgentAccess, always, for_tiers
from rota.limits.result import Ceilings
from rota.mcp.server_limit import same_for_all
from rota.variants.variant import Tier, Variant

VARIANT_A = Variant(
    name="A",
    tiers=(
        Tier("basic", Ceilings(all=600, ai=300)),
        Tier(
            "standard",
            Ceilings(all=3000, ai=2400),
            weight=2,
            price_cents=2_000,
            allowance_cents=1_500,
        ),
        Tier(
            "advanced",
            Ceilings(all=6000, ai=4800),
            weight=4,
            price_cents=6_000,
            allowance_cents=5_000,
        ),
        Tier(
            "corporate",
            Ceilings(all=3000, ai=2400),
            weight=4,
            price_cents=3_000,
            allowance_cents=2_500,
            min_seats=1,
        ),
        Tier(
            "enterprise",
            Ceilings(all=6000, ai=4800),
            weight=8,
            price_cents=5_000,
            allowance_cents=4_500,
            min_seats=100,
        ),
    ),
    signup_trial=False,
    agent_access=AgentAccess(
        opens={
            "basic": "BASIC",
            "standard": "STANDARD",
            "advanced": "ADVANCED",
            "corporate": "CORPORATE",
            "enterprise": "ENTERPRISE",
        },
        model_in_lists=for_tiers("advanced", "corporate", "enterprise"),
        model_in_detail=always,
        remedy="Choose another agent or a higher plan.",
    ),
    servers=same_for_all,
)
