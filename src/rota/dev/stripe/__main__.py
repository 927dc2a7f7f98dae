"""`python -m rota.dev.stripe --port N`: the stand-in for Stripe, on this machine only."""

import argparse
import os
import sys
from pathlib import Path

import uvicorn

from rota.dev.stripe.server import Server
from rota.plans.tiers import products
from rota.variants import VARIANTS

SECRET_VARIABLE = "STRIPE_WEBHOOK_SECRET"


def main() -> None:
    if os.environ.get("ROTA_ENV") == "production":
        sys.exit("The stand-in for Stripe takes no money: not in production.")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, help="where to remember; nothing is kept without")
    parser.add_argument("--webhook-url", help="can be set later, by POST /_control/webhooks")
    # Also from the environment: every user of the machine can read a command line.
    parser.add_argument("--webhook-secret", default=os.environ.get(SECRET_VARIABLE, "whsec_test"))
    parser.add_argument("--variant", choices=sorted(VARIANTS), help="sells what this one sells")
    given = parser.parse_args()
    base_url = f"http://127.0.0.1:{given.port}"
    server = Server(base_url, given.data, given.webhook_secret, given.webhook_url)
    if given.variant:
        sold = VARIANTS[given.variant]
        server.products = products(sold.tiers, sold.pass_price_cents)
    uvicorn.run(
        server.app(),
        host="127.0.0.1",
        port=given.port,
        log_level="warning",
        # Requests that are never to be answered do not keep it from ending.
        timeout_graceful_shutdown=1,
    )


if __name__ == "__main__":
    main()
