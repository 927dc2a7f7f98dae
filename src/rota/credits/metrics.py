"""Figures about money."""

from prometheus_client import Counter

REFUSED = Counter("rota_credits_refused_total", "Runs that could not be paid for.")
TOPPED_UP_CENTS = Counter("rota_credits_topped_up_cents_total", "Cents that were paid in.")
REFUNDED_CENTS = Counter("rota_credits_refunded_cents_total", "Cents that were given back.")
OVERRUN_MICROS = Counter(
    "rota_credits_overrun_micros_total",
    "Micro-dollars of model calls that cost more than their runs held, and nobody paid.",
)
