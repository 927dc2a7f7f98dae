"""The boards about what workers do: runs, money, tool servers, and relay and queue."""

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

RUNS = Board(
    "rota-runs",
    "Rota / Runs",
    "How runs start, end and fail, and how models respond.",
    (
        Panel(
            "Ended runs",
            ((rate("rota_runs_ended_total", "status"), "{{status}}"),),
            "ops",
            stacked=True,
        ),
        Panel(
            "Failures by code",
            ((or_zero(rate("rota_run_failures_total", "code")), "{{code}}"),),
            "ops",
        ),
        Panel("Wait before the start", quantiles("rota_run_queue_seconds"), "s", limit=15),
        Panel(
            "Slots of workers in use",
            (
                (
                    used('rota_share_taken{share="slices"}', 'rota_share_places{share="slices"}'),
                    "all workers",
                ),
            ),
            "percentunit",
            limit=0.9,
        ),
        Panel(
            "Slices",
            ((rate("rota_slices_total", "end"), "{{end}}"),),
            "ops",
            "How slices of runs end: again (it took its time), wait, or end.",
        ),
        Panel(
            "Steps",
            ((rate("rota_run_step_seconds_count", "kind"), "{{kind}}"),),
            "ops",
        ),
        Panel(
            "Duration of model calls",
            quantiles("rota_run_step_seconds", where='kind="model"'),
            "s",
        ),
        Panel(
            "Model calls",
            ((rate("rota_run_model_calls_total", "model"), "{{model}}"),),
            "ops",
            stacked=True,
        ),
        Panel(
            "Failed attempts of model calls",
            (
                (
                    or_zero(rate("rota_run_model_failed_attempts_total", "model")),
                    "{{model}}",
                ),
            ),
            "ops",
        ),
        Panel(
            "Answers that could not be used",
            ((or_zero(rate("rota_run_refused_answers_total", "code")), "{{code}}"),),
            "ops",
        ),
        Panel(
            "Tasks of schedules",
            ((rate("rota_schedule_times_total", "outcome"), "{{outcome}}"),),
            "ops",
        ),
        Panel(
            "Delay of schedules",
            ((quantile(0.95, "rota_schedule_delay_seconds"), "p95"),),
            "s",
            limit=60,
        ),
        Panel(
            "Deliveries to webhooks",
            ((rate("rota_webhook_deliveries_total", "outcome"), "{{outcome}}"),),
            "ops",
        ),
        Panel(
            "Delay of webhooks",
            ((quantile(0.95, "rota_webhook_delay_seconds"), "p95"),),
            "s",
        ),
    ),
)

MONEY = Board(
    "rota-money",
    "Rota / Money",
    "What models cost, and what comes in and goes back. The ledger is the truth; these are trends.",
    (
        Panel(
            "Cost of models per hour",
            ((dollars("rota_run_cost_micros_total", "model", per_dollar=1_000_000), "{{model}}"),),
            "currencyUSD",
            stacked=True,
        ),
        Panel(
            "Tokens",
            ((rate("rota_run_tokens_total", "kind"), "{{kind}}"),),
            "short",
            stacked=True,
        ),
        Panel(
            "Cost of a model call",
            (
                (
                    "sum(increase(rota_run_cost_micros_total[1h])) / "
                    "sum(increase(rota_run_model_calls_total[1h])) / 1000000",
                    "average",
                ),
            ),
            "currencyUSD",
        ),
        Panel(
            "Paid in per hour",
            ((dollars("rota_credits_topped_up_cents_total", per_dollar=100), "top-ups"),),
            "currencyUSD",
        ),
        Panel(
            "Paid back per hour",
            (
                (dollars("rota_credits_refunded_cents_total", per_dollar=100), "refunds"),
                (dollars("rota_credits_refunds_reversed_cents_total", per_dollar=100), "failed"),
                (dollars("rota_credits_disputed_cents_total", per_dollar=100), "disputes"),
                (
                    dollars("rota_credits_disputes_reversed_cents_total", per_dollar=100),
                    "disputes won",
                ),
            ),
            "currencyUSD",
        ),
        Panel(
            "Cost beyond holds per hour",
            ((dollars("rota_credits_overrun_micros_total", per_dollar=1_000_000), "not charged"),),
            "currencyUSD",
            "Model calls that cost more than their run's hold. The operator pays them.",
        ),
        Panel(
            "Runs without money per hour",
            ((changes("rota_credits_refused_total"), "refused"),),
        ),
        Panel(
            "Model calls with estimated tokens per hour",
            (
                (
                    or_zero(changes("rota_run_estimated_calls_total", "model")),
                    "{{model}}",
                ),
            ),
        ),
        Panel(
            "Messages from the payment processor",
            ((changes("rota_webhooks_received_total", "outcome"), "{{outcome}}"),),
            description="In the last hour. There should be none of `failed` and `forged`.",
        ),
    ),
)

TOOL_SERVERS = Board(
    "rota-tool-servers",
    "Rota / Tool servers",
    "Calls and checks of tool servers, and the places that they take.",
    (
        Panel(
            "Tool calls",
            ((rate("rota_run_tool_calls_total", "outcome"), "{{outcome}}"),),
            "ops",
            "`unavailable` did not reach the tool. `unknown` may have taken effect.",
            stacked=True,
        ),
        Panel(
            "Duration of tool calls", quantiles("rota_run_step_seconds", where='kind="tool"'), "s"
        ),
        Panel(
            "Checks of servers",
            ((rate("rota_tool_server_checks_total", "outcome"), "{{outcome}}"),),
            "ops",
        ),
        Panel("Response to a check", quantiles("rota_tool_server_check_seconds"), "s"),
        Panel(
            "Places in use",
            (
                (
                    used(
                        'rota_share_taken{share=~"tool_.*|lookups|server_checks"}',
                        'rota_share_places{share=~"tool_.*|lookups|server_checks"}',
                        "share",
                    ),
                    "{{share}}",
                ),
            ),
            "percentunit",
            limit=0.9,
        ),
        Panel(
            "Refused work",
            ((rate("rota_share_refused_total", "share"), "{{share}}"),),
            "ops",
        ),
        Panel(
            "Wait for a place (p95)",
            (
                (
                    or_zero(quantile(0.95, "rota_share_wait_seconds", "share")),
                    "{{share}}",
                ),
            ),
            "s",
        ),
        Panel(
            "Schema checks",
            ((rate("rota_schema_checks_total", "outcome"), "{{outcome}}"),),
            "ops",
        ),
        Panel("Duration of schema checks", quantiles("rota_schema_check_seconds"), "s"),
    ),
)

RELAY = Board(
    "rota-relay",
    "Rota / Relay and queue",
    "Instructions to workers, work that waits in Temporal, and other work that must not wait long.",
    (
        Panel(
            "Handled instructions",
            ((rate("rota_outbox_relayed_total", "kind"), "{{kind}}"),),
            "ops",
            stacked=True,
        ),
        Panel(
            "Failed instructions",
            ((rate("rota_outbox_failed_total", "kind"), "{{kind}}"),),
            "ops",
        ),
        Panel(
            "Dead letters",
            (
                ("max(rota_outbox_dead)", "now"),
                (changes("rota_outbox_dead_letters_total", "kind"), "new: {{kind}}"),
            ),
            limit=1,
        ),
        Panel(
            "Wait for a relay (p95)",
            ((quantile(0.95, "rota_outbox_wait_seconds", "lane"), "{{lane}}"),),
            "s",
        ),
        Panel(
            "Oldest instruction",
            (("max by (lane) (rota_outbox_oldest_seconds)", "{{lane}}"),),
            "s",
            limit=60,
        ),
        Panel(
            "Parked runs",
            (("max(rota_outbox_parked)", "wait for maxConcurrent of their agent"),),
        ),
        Panel(
            "Age of the queues in Temporal",
            (("max by (queue) (rota_queue_age_seconds)", "{{queue}}"),),
            "s",
            limit=60,
        ),
        Panel(
            "Work in the queues of Temporal",
            (("max by (queue) (rota_queue_backlog)", "{{queue}}"),),
        ),
        Panel(
            "Live text that could not be sent",
            ((rate("rota_live_text_unsent_total"), "Redis refused it"),),
            "ops",
        ),
        Panel(
            "Notifications",
            (
                (rate("rota_notifications_sent_total", "channel"), "sent: {{channel}}"),
                (
                    rate("rota_notifications_failed_total", "channel", "outcome"),
                    "{{outcome}}: {{channel}}",
                ),
            ),
            "ops",
        ),
        Panel(
            "Wait of notifications",
            (
                ("max(rota_notifications_oldest_seconds)", "oldest"),
                ("max(rota_notifications_failing_seconds)", "failing"),
            ),
            "s",
            limit=3600,
        ),
        Panel(
            "Retention and erasure",
            (
                ("max(rota_retention_lag_seconds) / 3600", "hours that retention is late"),
                ("max(rota_erasures_running)", "erasures"),
                (or_zero(changes("rota_erasure_failures_total")), "failures of erasures per hour"),
            ),
        ),
    ),
)
