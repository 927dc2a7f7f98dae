"""What happens to each table of accounts when an account is exported and when it is erased.

A table with a column `account_id` or `user_id` must be listed here. A test compares the list with
the database, so that a new table is neither forgotten in an export nor after an erasure.
"""

from dataclasses import dataclass
from typing import Literal

# erased: all rows of the account are deleted. kept: they stay. special: `erasing` handles them.
Fate = Literal["erased", "kept", "special"]


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    fate: Fate
    # Why rows are kept, or what happens to them.
    reason: str = ""
    # The type of a line in an export. None: it has nothing that the account does not get otherwise.
    exported: str | None = None
    # The prefix of the IDs in the column `id`.
    prefix: str | None = None
    # Columns that are not exported: secrets, and what only the service needs.
    hidden: frozenset[str] = frozenset()
    # The order of the lines: the key of the table without its account.
    order: str = "id"
    # The column that names the account or, in a personal account, its user.
    owner: Literal["account_id", "user_id", "id"] = "account_id"


def _erased(
    name: str,
    exported: str | None = None,
    order: str = "id",
    prefix: str | None = None,
    hidden: str = "",
    reason: str = "",
) -> Table:
    return Table(name, "erased", reason, exported, prefix, frozenset(hidden.split()), order)


def _kept(name: str, reason: str, exported: str | None = None, order: str = "id") -> Table:
    return Table(name, "kept", reason, exported, None, frozenset(), order)


_DERIVED = "derived from other tables"
_MONEY = "a money record, which has no texts"

# In the order in which they are exported and erased. Tasks come first: with them go the histories
# in Temporal and the live texts in Redis.
TABLES: tuple[Table, ...] = (
    Table(
        "accounts",
        "special",
        "the row stays, because money records refer to it; its name is deleted",
        "account",
        "acct",
        frozenset(),
        "id",
        "id",
    ),
    Table("users", "special", "the row of a person is deleted", "user", "user", owner="id"),
    Table(
        "sessions",
        "special",
        "revoked at once, then deleted",
        "session",
        "sess",
        owner="user_id",
    ),
    Table("identities", "special", "deleted at once", owner="user_id", order="issuer, subject"),
    _erased("tasks", "task", prefix="task", hidden="fence limited start_run"),
    _erased("steps", "step", "task_id, run, step, call"),
    _erased("reviews", "review", "task_id, number"),
    _erased("task_shapers", "taskShaper", "task_id, user_id, how"),
    _erased("review_snoozes", "reviewSnooze", "task_id, user_id"),
    _erased("task_words", order="task_id", reason=_DERIVED),
    _erased("task_counts", order="dimension, value, status", reason=_DERIVED),
    _erased("places", order="task_id", reason=_DERIVED),
    _erased(
        "events",
        "event",
        "sequence",
        prefix="evt",
        reason="those of later refunds and disputes stay: they have no texts",
    ),
    _erased("rules", "rule", prefix="rule"),
    _erased("schedule_tasks", "scheduleTask", "schedule_id, task_id"),
    _erased("schedules", "schedule", prefix="sched", hidden="check_at"),
    _erased("mcp_checks", "toolServerCheck", "server_id, id", hidden="id"),
    _erased("mcp_tools", "tool", "server_id, name"),
    _erased("mcp_servers", "toolServer", prefix="mcp", hidden="sealed_headers check_due_at"),
    _erased("webhook_deliveries", "webhookDelivery", "webhook_id, id", prefix="dlv"),
    _erased(
        "webhooks",
        "webhook",
        prefix="wh",
        hidden="sealed_secret sealed_old_secret sealed_older_secrets older_secrets_until due_at "
        "leased_until revision",
        reason="deleted at once, with their secrets",
    ),
    _erased("notices", reason="what a worker has not looked at yet"),
    _erased(
        "notification_items",
        order="user_id, kind, channel, subject",
        reason="what the next messages are about",
    ),
    _erased("notification_queues", order="user_id, kind, channel", reason="when messages are sent"),
    _erased(
        "notification_settings",
        "notificationSettings",
        "user_id",
        hidden="sealed_chat_url",
        reason="deleted at once, with the URLs of chats",
    ),
    _erased("members", "member", "user_id"),
    _erased("invitations", "invitation", prefix="inv", hidden="token_hash"),
    _erased("api_keys", "key", prefix="key", hidden="secret_hash"),
    Table("api_key_hashes", "special", "deleted at once, with their keys", order="key_id"),
    _erased("idempotency_keys", order="key", reason="copies of responses, for 24 hours"),
    Table(
        "outbox",
        "special",
        "deleted, except for instructions to end a plan, which are deleted when it has ended",
    ),
    _kept("entries", _MONEY, "ledgerEntry"),
    _kept("holds", _MONEY, "hold", "task_id, run"),
    _kept("balances", _MONEY, "balance", "account_id"),
    _kept("usage_days", _MONEY, "usageDay", "day, agent, model"),
    _kept("subscriptions", _MONEY, "subscription", "product"),
    _kept(
        "customers",
        "the payment processor's ID, for refunds and disputes",
        "customer",
        "account_id",
    ),
    Table(
        "audit_entries",
        "special",
        "the trail stays, and everything private in it is deleted",
        "auditEntry",
        order="sequence",
    ),
    _kept("audit_heads", "hashes, which keep the trail verifiable", "auditHead", "account_id"),
    _kept(
        "audit_checkpoints",
        "signed hashes, which keep the trail verifiable",
        "auditCheckpoint",
        "account_id",
    ),
    _kept(
        "account_heads",
        "numbers only: later refunds and disputes still have events",
        order="account_id",
    ),
    _kept("retention_turns", "when the audit trail is cut next", order="account_id"),
    _kept(
        "erasures", "the record of the erasure, which a restore applies again", order="account_id"
    ),
)
# They say where something is sent, and have the secrets for it. The rows that refer to them go too.
ERASED_AT_ONCE = ("webhooks", "notification_settings", "notification_queues")
ERASED = tuple(table for table in TABLES if table.fate == "erased")
EXPORTED = tuple(table for table in TABLES if table.exported is not None)
