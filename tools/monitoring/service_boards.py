"""The boards about the service as a whole: traffic, accounts and objectives."""

from tools.monitoring.panels import (
    Board,
    Panel,
    changes,
    dollars,
    or_zero,
    quantile,
    quantiles,
    rate,
    used,
)
from tools.monitoring.slos import CLIENT_REQUESTS, OBJECTIVES, SHORT_REQUESTS

REQUESTS = "rota_http_requests_total"
SERVER_ERRORS = CLIENT_REQUESTS + ', status=~"5.."'
SECONDS = "rota_http_request_seconds"
PROCESSES = 'job=~"rota-.*"'


TRAFFIC = Board(
    "rota-traffic",
    "Rota / Traffic",
    "Requests, their errors and durations, and what `rota serve` has left.",
    (
        Panel(
            "Requests",
            ((rate(REQUESTS, "status", where=CLIENT_REQUESTS), "{{status}}"),),
            "reqps",
            stacked=True,
        ),
        Panel(
            "Share of 5xx",
            (
                (
                    f"({or_zero(rate(REQUESTS, where=SERVER_ERRORS))}) / "
                    + rate(REQUESTS, where=CLIENT_REQUESTS),
                    "5xx",
                ),
            ),
            "percentunit",
            limit=0.001,
        ),
        Panel("Duration", quantiles(SECONDS, where=SHORT_REQUESTS), "s", limit=0.5),
        Panel(
            "Busiest routes",
            ((f"topk(10, {rate(REQUESTS, 'method', 'route')})", "{{method}} {{route}}"),),
            "reqps",
        ),
        Panel(
            "Slowest routes (p95)",
            ((f"topk(10, {quantile(0.95, SECONDS, 'route', where=SHORT_REQUESTS)})", "{{route}}"),),
            "s",
        ),
        Panel(
            "Refused requests",
            (
                (or_zero(rate(REQUESTS, where='status="429"')), "429 rate limits"),
                (or_zero(rate(REQUESTS, where='status="401"')), "401 credentials"),
                (rate("rota_bodies_refused_total"), "too many bytes in progress"),
                (rate("rota_http_slow_clients_total", "phase"), "slow {{phase}}"),
                (rate("rota_database_share_refused_total"), "share of connections"),
            ),
            "reqps",
        ),
        Panel(
            "In progress",
            (
                ("sum(rota_http_requests_in_progress)", "requests"),
                ("sum(rota_event_streams)", "event streams"),
            ),
        ),
        Panel(
            "Database connections in use",
            (
                (
                    used("rota_database_connections_used", "rota_database_connections_max", "job"),
                    "{{job}}",
                ),
            ),
            "percentunit",
            limit=0.9,
        ),
        Panel(
            "What PostgreSQL has left",
            (
                (
                    "max(rota_postgres_connections) / max(rota_postgres_connections_max)",
                    "connections",
                ),
                ("max(rota_postgres_transaction_age) / 2e9", "transaction IDs"),
            ),
            "percentunit",
            description="Above 100 % of either, PostgreSQL accepts no more work.",
            limit=0.85,
        ),
        Panel(
            "Waits for the database",
            (
                (rate("rota_database_timeouts_total", "kind"), "timeout: {{kind}}"),
                ("sum(rota_database_share_waiting)", "wait for their account's share"),
            ),
        ),
        Panel(
            "Processors",
            (
                (
                    f"rate(process_cpu_seconds_total{{{PROCESSES}}}[$__rate_interval])",
                    "{{instance}}",
                ),
            ),
            description="A process uses one processor, and more only for schema checks.",
            limit=0.9,
        ),
        Panel(
            "Memory",
            ((f"process_resident_memory_bytes{{{PROCESSES}}}", "{{instance}}"),),
            "bytes",
        ),
        Panel(
            "Processes",
            (
                (f"sum by (job) (up{{{PROCESSES}}})", "{{job}}"),
                ("max(rota_limiter_degraded)", "limiter without Redis"),
            ),
        ),
        Panel(
            "Checks that fail",
            (("sum by (job, check) (1 - rota_check_ok)", "{{job}} {{check}}"),),
            description="In how many processes a check of the readiness fails.",
        ),
        Panel(
            "Requests of routers",
            (
                (
                    or_zero(rate("rota_router_requests_total", "cell", "status")),
                    "{{cell}} {{status}}",
                ),
            ),
            "reqps",
        ),
        Panel(
            "Cells that do not answer a router",
            (
                (
                    or_zero(rate("rota_router_failures_total", "cell", "reason")),
                    "{{cell}}: {{reason}}",
                ),
            ),
            "reqps",
        ),
        Panel(
            "Wait of routers for a cell (p95)",
            ((or_zero(quantile(0.95, "rota_router_first_byte_seconds", "cell")), "{{cell}}"),),
            "s",
        ),
    ),
)

ACCOUNTS = Board(
    "rota-accounts",
    "Rota / Accounts",
    "The accounts that use the most. Each process shows its first 20, so small ones are missing.",
    (
        Panel(
            "Requests",
            (
                (
                    f"topk(10, {rate('rota_top_account_requests_total', 'account')})",
                    "{{account}}",
                ),
            ),
            "reqps",
            width=12,
        ),
        Panel(
            "Cost of models per hour",
            (
                (
                    "topk(10, "
                    + dollars("rota_top_account_cost_micros_total", "account", per_dollar=1_000_000)
                    + ")",
                    "{{account}}",
                ),
            ),
            "currencyUSD",
            width=12,
        ),
        Panel(
            "Requests now",
            (
                (
                    f"topk(10, {rate('rota_top_account_requests_total', 'account')})",
                    "{{account}}",
                ),
            ),
            "reqps",
            kind="bargauge",
            width=12,
        ),
        Panel(
            "Cost in the last hour",
            (
                (
                    "topk(10, "
                    + dollars("rota_top_account_cost_micros_total", "account", per_dollar=1_000_000)
                    + ")",
                    "{{account}}",
                ),
            ),
            "currencyUSD",
            kind="bargauge",
            width=12,
        ),
        Panel(
            "Accounts at their limits",
            (
                (rate("rota_share_refused_total", "share"), "share: {{share}}"),
                (rate("rota_database_share_refused_total"), "share of connections"),
                (or_zero(rate(REQUESTS, where='status="429"')), "429"),
            ),
            "ops",
            "The log lines of refused requests name the account.",
            width=12,
        ),
        Panel(
            "Processor time of requests",
            (
                (
                    "topk(10, "
                    + rate("rota_top_account_request_cpu_seconds_total", "account")
                    + ")",
                    "{{account}}",
                ),
            ),
            "percentunit",
            "Of one processor. While others use a process, an account has a quarter of one in it.",
            width=12,
        ),
        Panel(
            "Removed members",
            ((changes("rota_members_removed_total"), "in the last hour"),),
            width=12,
        ),
    ),
)

OBJECTIVES_BOARD = Board(
    "rota-objectives",
    "Rota / Objectives",
    "The service level objectives and what is left of their error budgets.",
    (
        *(
            Panel(
                f"{objective.name} (objective {objective.target:g} %)",
                ((f'1 - max(rota:slo:ratio_rate3d{{slo="{objective.name}"}})', "good in 3 days"),),
                "percentunit",
                kind="stat",
                width=6,
            )
            for objective in OBJECTIVES
        ),
        *(
            Panel(
                f"{objective.name}: how fast the budget burns",
                tuple(
                    (
                        f'max(rota:slo:ratio_rate{window}{{slo="{objective.name}"}}) / '
                        + objective.budget,
                        window,
                    )
                    for window in ("5m", "1h", "6h", "3d")
                ),
                description="At 1, the budget lasts exactly 30 days. Shows the worst cell.",
                width=12,
                limit=1,
            )
            for objective in OBJECTIVES
        ),
    ),
)
