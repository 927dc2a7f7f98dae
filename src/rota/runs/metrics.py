"""What a run shows to Prometheus."""

from prometheus_client import Counter, Histogram

QUEUE_SECONDS = Histogram(
    "rota_run_queue_seconds",
    "How long a task waited from being handed over to its run's beginning.",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 1800),
)
STEP_SECONDS = Histogram(
    "rota_run_step_seconds",
    "How long a model or tool call took.",
    ["kind"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
)
COST_MICROS = Counter("rota_run_cost_micros_total", "Micro-dollars of model calls.", ["model"])
FAILURES = Counter("rota_run_failures_total", "Runs that failed, by the code they show.", ["code"])
