"""The billing page, where the payment processor sends people back to: balance, usage and plan.

The page is a client of the API, in the `billing*` files next to this one. It also gets the prices,
which the API does not return.
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from rota.auth.routing import public_router
from rota.credits.money import available_cents
from rota.plans.allowance import TierAllowance
from rota.plans.tiers import Tier

_MEDIA_TYPES = {
    "billing.css": "text/css",
    "billing.js": "text/javascript",
    "billing_api.js": "text/javascript",
    "billing_format.js": "text/javascript",
    "billing_view.js": "text/javascript",
}

# People enter a token on this page. It can run only its own script, connect only to this service,
# and cannot send forms or be framed.
HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; form-action 'none'; frame-ancestors 'none'; "
    "base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def billing_routes(
    tiers: Sequence[Tier], pass_cents: int | None, tier_allowance: TierAllowance
) -> APIRouter:
    router = public_router("Billing page")
    offer = {
        "plans": [
            {
                "name": tier.name,
                "priceCents": tier.price_cents,
                "includedCents": available_cents(tier_allowance(tier.name, 1)),
                "minSeats": tier.min_seats,
            }
            for tier in tiers
            if tier.price_cents
        ],
        "passCents": pass_cents,
    }

    @router.get("/billing", include_in_schema=False)
    async def billing() -> Response:
        return Response(_content("billing.html"), headers=HEADERS, media_type="text/html")

    @router.get("/billing/offer.json", include_in_schema=False)
    async def prices() -> Response:
        return JSONResponse(offer, headers=HEADERS)

    @router.get("/billing/{name}", include_in_schema=False)
    async def asset(name: str) -> Response:
        if name not in _MEDIA_TYPES:
            raise HTTPException(404)
        return Response(_content(name), headers=HEADERS, media_type=_MEDIA_TYPES[name])

    return router


@cache
def _content(name: str) -> bytes:
    return files("rota.plans").joinpath(name).read_bytes()
