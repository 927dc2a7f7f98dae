"""`python -m rota.dev.stripe --port N` runs the simulated Stripe server."""

import argparse
import os
import sys
from pathlib import Path

from rota.dev.serving import serve
from rota.dev.stripe.server import Server
from rota.plans.tiers import products
from rota.variants import VARIANTS

SECRET_VARIABLE = "STRIPE_WEBHOOK_SECRET"


def main() -> None:
    if os.environ.get("ROTA_ENV") == "production":
        sys.exit("ROTA_ENV is production. The simulated Stripe server does not start.")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument(
        "--data", type=Path, help="directory for the data; without it, nothing is saved"
    )
    parser.add_argument("--webhook-url", help="POST /_control/webhooks changes it later")
    # Also read from the environment, because every user of the machine can read command lines.
    parser.add_argument("--webhook-secret", default=os.environ.get(SECRET_VARIABLE, "whsec_test"))
    parser.add_argument(
        "--variant", choices=sorted(VARIANTS), help="create the products of this variant"
    )
    given = parser.parse_args()
    base_url = f"http://127.0.0.1:{given.port}"
    server = Server(base_url, given.data, given.webhook_secret, given.webhook_url)
    if given.variant:
        variant = VARIANTS[given.variant]
        server.products = products(variant.tiers, variant.pass_price_cents)
    # Requests with an injected timeout must not delay the shutdown.
    serve(server.app(), given.port, timeout_graceful_shutdown=1)


if __name__ == "__main__":
    main()
