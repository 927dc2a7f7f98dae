"""Metrics about money."""

from prometheus_client import Counter

REFUSED = Counter(
    "rota_credits_refused_total", "Runs that did not start because of insufficient credits."
)
TOPPED_UP_CENTS = Counter("rota_credits_topped_up_cents_total", "Cents paid in.")
REFUNDED_CENTS = Counter("rota_credits_refunded_cents_total", "Cents refunded.")
REFUNDS_REVERSED_CENTS = Counter(
    "rota_credits_refunds_reversed_cents_total", "Cents of refunds that failed."
)
DISPUTED_CENTS = Counter(
    "rota_credits_disputed_cents_total", "Cents that banks took back in disputes."
)
DISPUTES_REVERSED_CENTS = Counter(
    "rota_credits_disputes_reversed_cents_total", "Cents of disputes that came back."
)
OVERRUN_MICROS = Counter(
    "rota_credits_overrun_micros_total",
    "Micro-dollars of model calls that cost more than their run's hold. They are not charged.",
)
