"""Metrics about money."""

from prometheus_client import Counter

REFUSED = Counter(
    "rota_credits_refused_total", "Runs that did not start because of insufficient credits."
)
TOPPED_UP_CENTS = Counter("rota_credits_topped_up_cents_total", "Cents paid in.")
REFUNDED_CENTS = Counter("rota_credits_refunded_cents_total", "Cents refunded.")
OVERRUN_MICROS = Counter(
    "rota_credits_overrun_micros_total",
    "Micro-dollars of model calls that cost more than their run's hold. They are not charged.",
)
