"""The models of the API. Generated from the descriptions in openapi/: do not edit."""

# ruff: noqa: E501
from datetime import date, datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AwareDatetime

from rota_sdk._model import Body, Model, OpenEnum

__all__ = [
    "AcceptTools",
    "Account",
    "AccountApprovals",
    "AccountKind",
    "AccountRetention",
    "Actor",
    "Agent",
    "AgentDetails",
    "AgentResponse",
    "AgentStatistics",
    "AgentsResponse",
    "AllowanceStatus",
    "ApiKey",
    "Approval",
    "ApprovalPolicy",
    "ApprovalsResponse",
    "ApproveTask",
    "Approvers",
    "AuditActor",
    "AuditEntry",
    "AuditHead",
    "AuditKey",
    "AuditKeysResponse",
    "AuditResponse",
    "AuthConfigResponse",
    "BalanceAmounts",
    "BalanceResponse",
    "BatchTask",
    "Bearer",
    "BillingResponse",
    "Candidate",
    "CatalogResponse",
    "CatalogSection",
    "Changes",
    "ChatNotifications",
    "ChatService",
    "ChecksResponse",
    "Company",
    "CompanyResponse",
    "Condition",
    "ConnectServer",
    "CreateCompany",
    "CreateInvitation",
    "CreateKey",
    "CreateRule",
    "CreateSchedule",
    "CreateTask",
    "CreateTasks",
    "CreateTasksResponse",
    "CreateWebhook",
    "CredentialKind",
    "CreditSettings",
    "CutText",
    "Decision",
    "DecisionResponse",
    "DefinitionChange",
    "DeletedResponse",
    "DeliveredResponse",
    "DeliveriesResponse",
    "Delivery",
    "DeliveryOutcome",
    "DeliveryRequest",
    "DeliveryResponse",
    "DeliveryState",
    "Department",
    "DepartmentsResponse",
    "EraseAccount",
    "Erasure",
    "ErasureResponse",
    "ErasureState",
    "ErrorBody",
    "Event",
    "EventsResponse",
    "FieldError",
    "Forecast",
    "ForecastResponse",
    "ForkOptions",
    "ForkOptionsResponse",
    "ForkOrigin",
    "ForkTask",
    "Gate",
    "GroupBy",
    "Hold",
    "HoldsResponse",
    "Invitation",
    "InvitationsResponse",
    "InvitedResponse",
    "InvokeTool",
    "InvokedResponse",
    "Issuer",
    "ItemDecision",
    "JsonWebKeySet",
    "KeyCreatedResponse",
    "KeysResponse",
    "LiveResponse",
    "LogoutResponse",
    "MailNotifications",
    "MailTransport",
    "MeResponse",
    "Member",
    "MemberResponse",
    "MembersResponse",
    "MessageContent",
    "NotificationChannel",
    "NotificationDelivery",
    "NotificationKind",
    "NotificationsResponse",
    "Overlap",
    "PassBilling",
    "PassBillingResponse",
    "PassCheckoutResponse",
    "PassOffer",
    "PastCheck",
    "PastReview",
    "PatchCompany",
    "PatchCreditSettings",
    "PatchMember",
    "PatchSchedule",
    "PatchTask",
    "PatchWebhook",
    "PingResponse",
    "PlanOffer",
    "PlansResponse",
    "PoliciesResponse",
    "PutApprovals",
    "PutChat",
    "PutMail",
    "PutNotifications",
    "PutPolicies",
    "PutRetention",
    "Quote",
    "QuoteResponse",
    "QuotedAgent",
    "QuotedBalance",
    "QuotedTool",
    "Readiness",
    "ReadyResponse",
    "ReceiptResponse",
    "ReceivedInvitation",
    "ReceivedInvitationResponse",
    "RejectTask",
    "ReplayWebhook",
    "ReportedError",
    "ResolvedResponse",
    "RetryFrom",
    "RetryOption",
    "RetryQuote",
    "RetryQuoteResponse",
    "RetryTask",
    "Review",
    "ReviewItem",
    "ReviewRef",
    "ReviewResponse",
    "ReviewState",
    "ReviewedCall",
    "ReviewedWork",
    "Role",
    "RotateSecret",
    "Rule",
    "RuleResponse",
    "RuleState",
    "RulesResponse",
    "Schedule",
    "ScheduleDetailsResponse",
    "ScheduleError",
    "ScheduleOutcome",
    "ScheduleResponse",
    "ScheduledTask",
    "SchedulesResponse",
    "Scope",
    "SendTest",
    "ServerResponse",
    "ServerStatus",
    "ServerToolsResponse",
    "ServersResponse",
    "Session",
    "SessionsResponse",
    "SettingsResponse",
    "Shaping",
    "ShownTool",
    "SkippedEvents",
    "SnoozeResponse",
    "SnoozeTask",
    "StartSession",
    "StartSessionByCode",
    "StatisticsResponse",
    "StepCut",
    "StepKind",
    "StepOutcome",
    "StepState",
    "Subscribe",
    "SubscribeResponse",
    "Subscription",
    "SubscriptionResponse",
    "SubscriptionStatus",
    "SubscriptionsResponse",
    "Task",
    "TaskBody",
    "TaskError",
    "TaskMetadata",
    "TaskResponse",
    "TaskResult",
    "TaskStatus",
    "TaskUsage",
    "TasksResponse",
    "TestNotificationResponse",
    "Tier",
    "TimelineResponse",
    "TimelineStep",
    "TokenResponse",
    "Tool",
    "ToolApproval",
    "ToolResult",
    "ToolServer",
    "ToolsResponse",
    "TopUp",
    "TopUpResponse",
    "Transaction",
    "TransactionKind",
    "TransactionsResponse",
    "Transport",
    "Trial",
    "TypicalCost",
    "UnsubscribeResponse",
    "UpdateServer",
    "Usage",
    "UsageBar",
    "UsageResponse",
    "UsageTotals",
    "User",
    "Variant",
    "Version",
    "VersionsResponse",
    "Webhook",
    "WebhookDisabledReason",
    "WebhookKey",
    "WebhookKeysResponse",
    "WebhookResponse",
    "WebhookSecretResponse",
    "WebhookState",
    "WebhooksResponse",
]

AccountKind: TypeAlias = Annotated[Literal["personal", "company"], OpenEnum()]
"""`personal`: one for each user. `company`: shared by its members."""

AllowanceStatus: TypeAlias = Annotated[Literal["normal", "warning", "depleted"], OpenEnum()]
"""`warning` from 80 percent, `depleted` at 100 percent."""

Approvers: TypeAlias = Annotated[Literal["anyone", "named"], OpenEnum()]
"""Who can approve and reject in a company. `anyone`: every member. `named`: owners, admins, and
members with the right `approver`.
"""

AuditActor: TypeAlias = Annotated[
    Literal["user", "key", "agent", "operator", "service"], OpenEnum()
]
"""Who acts: a `user` with a session, an API `key`, an `agent`, an `operator` with a command, or the
`service` itself.
"""

ChatService: TypeAlias = Annotated[Literal["slack", "mattermost", "teams"], OpenEnum()]
"""The chat service that a webhook belongs to."""

CredentialKind: TypeAlias = Annotated[Literal["session", "key", "rule"], OpenEnum()]
"""`session`: the user was signed in. `key`: an API key of the user. `rule`: a standing rule that
the user made.
"""

CutText: TypeAlias = Annotated[
    Literal["description", "input", "output", "actions", "outputSchema"], OpenEnum()
]
"""A text of a task that a list has cut. `actions` of a task is `metadata.actions`."""

DeliveryOutcome: TypeAlias = Annotated[Literal["delivered", "failed"], OpenEnum()]
"""The result of the attempt."""

DeliveryState: TypeAlias = Annotated[Literal["idle", "waiting", "retrying", "failed"], OpenEnum()]
"""`waiting`: the next message is sent at `nextAt`. `retrying`: the last attempt failed. `failed`:
Rota stopped retrying the last message. `idle`: nothing waits.
"""

ErasureState: TypeAlias = Annotated[Literal["running", "finished"], OpenEnum()]
"""`running`: the account has stopped, and workers erase what it had. `finished`: all of it is
erased.
"""

Gate: TypeAlias = Annotated[Literal["run", "tool", "output"], OpenEnum()]
"""Where a task waits for a person: before it runs (`run`), before a tool call (`tool`), or before
its output is final (`output`).
"""

GroupBy: TypeAlias = Annotated[
    Literal["day", "agent", "model", "day,agent", "day,model"], OpenEnum()
]
"""What usage is grouped by. `day,agent` and `day,model` are for charts."""

ItemDecision: TypeAlias = Annotated[Literal["approved", "rejected"], OpenEnum()]
"""What a person decided about an item."""

MailTransport: TypeAlias = Annotated[Literal["smtp", "log", "off"], OpenEnum()]
"""How this service sends email. `log`: it writes emails to its log, in development. `off`: it sends
no email.
"""

MessageContent: TypeAlias = Annotated[Literal["full", "minimal"], OpenEnum()]
"""What messages contain. `full`: the agent, the task and what it wants to do. `minimal`: only that
something waits, and a link.
"""

NotificationChannel: TypeAlias = Annotated[Literal["mail", "chat"], OpenEnum()]
"""How a message reaches you: by email or in a chat."""

NotificationKind: TypeAlias = Annotated[
    Literal["approval_waiting", "task_failed", "balance_low", "webhook_disabled"], OpenEnum()
]
"""What a message is about. `approval_waiting`: a task waits for an approval that you can give.
`task_failed`: a task that you created has failed. `balance_low`: the balance fell below the
amount of `alertBelowCents` or is used up; for those who can pay. `webhook_disabled`: a webhook
was disabled; for those who can manage webhooks.
"""

Overlap: TypeAlias = Annotated[Literal["skip", "queue"], OpenEnum()]
"""What a schedule does if an earlier task has not ended when the next time comes. `skip`: it
creates no task. `queue`: it creates the task when the earlier one has ended; if several times
pass meanwhile, one task.
"""

Readiness: TypeAlias = Annotated[Literal["ready", "degraded", "unavailable"], OpenEnum()]
"""`ready`: every check succeeded. `degraded`: Redis or Temporal is down, and the service works
without it for now. `unavailable`: the database is down, its schema is older than the service, or
the service has another secret key.
"""

RetryFrom: TypeAlias = Annotated[Literal["start", "failure"], OpenEnum()]
"""`start` runs the task from the beginning, with the newest version of the agent, and opens every
gate again. `failure` keeps the agent's version, the finished steps and their approvals, and the
steps are not paid for again.
"""

ReviewState: TypeAlias = Annotated[
    Literal["none", "pending", "approved", "rejected", "expired", "cancelled"], OpenEnum()
]
"""The state of a review. `none`: the task was never reviewed. `expired`: no decision was made in
time, and the task is cancelled, or failed because of its deadline. `cancelled`: the task was
cancelled or changed before a decision.
"""

Role: TypeAlias = Annotated[Literal["owner", "admin", "member"], OpenEnum()]
"""What a user can do in an account. Owners and admins also manage members, keys, tool servers and
billing.
"""

RuleState: TypeAlias = Annotated[
    Literal["active", "used", "expired", "revoked", "void"], OpenEnum()
]
"""Whether a rule works. `used`: all its uses are counted. `expired`: its time has passed.
`revoked`: a person has deleted it. `void`: something that it is bound to has changed, as
`voidReason` says.
"""

ScheduleOutcome: TypeAlias = Annotated[Literal["created", "skipped", "failed"], OpenEnum()]
"""The outcome of a scheduled time: a task was created, the time was skipped because an earlier task
had not ended, or the task could not be created.
"""

Scope: TypeAlias = Annotated[
    Literal[
        "tasks:read",
        "tasks:write",
        "tasks:approve",
        "agents:read",
        "mcp:read",
        "mcp:write",
        "mcp:invoke",
        "billing:read",
        "billing:write",
        "audit:read",
        "webhooks:read",
        "webhooks:write",
    ],
    OpenEnum(),
]
"""Something that an API key can do."""

ServerStatus: TypeAlias = Annotated[
    Literal["CONNECTED", "UNREACHABLE", "AUTH_FAILED", "CHANGED"], OpenEnum()
]
"""`CONNECTED`: the last check succeeded. `UNREACHABLE`: it does not respond. `AUTH_FAILED`: it
refuses the credentials. `CHANGED`: a tool is new or differs from the one that was accepted.
"""

Shaping: TypeAlias = Annotated[
    Literal[
        "edited",
        "retried",
        "scheduled",
        "answered",
        "instructed",
        "madeRule",
        "created",
        "acceptedTool",
    ],
    OpenEnum(),
]
"""How a user shaped what waits for approval, in the task or in a task above it."""

StepCut: TypeAlias = Annotated[Literal["arguments", "result"], OpenEnum()]
"""A value of a step that a list has cut."""

StepKind: TypeAlias = Annotated[Literal["model", "summary", "tool", "approval"], OpenEnum()]
"""A model call, a summary of a long run, a tool call, or a review."""

StepOutcome: TypeAlias = Annotated[Literal["ok", "failed", "rejected"], OpenEnum()]
"""How a call ended. A model call is `failed` if its answer cannot be used."""

StepState: TypeAlias = Annotated[
    Literal[
        "planned",
        "gated",
        "started",
        "delegated",
        "finished",
        "pending",
        "approved",
        "rejected",
        "expired",
        "cancelled",
    ],
    OpenEnum(),
]
"""Calls are `planned`, `gated` (waiting for a person), `started`, `delegated` (to a subtask) or
`finished`. Approvals are `pending`, `approved`, `rejected`, `expired` or `cancelled` (the task
ended, or its text changed).
"""

SubscriptionStatus: TypeAlias = Annotated[
    Literal["ACTIVE", "CANCELLED", "PAST_DUE", "TRIALING"], OpenEnum()
]
"""`PAST_DUE` means that the last payment failed; the tier stays for a grace period."""

TaskStatus: TypeAlias = Annotated[
    Literal["PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED", "WAITING_APPROVAL"],
    OpenEnum(),
]
"""The state of a task. `COMPLETED` and `CANCELLED` are final. A `FAILED` task can be retried.
`WAITING_APPROVAL` means that a person must decide.
"""

Tier: TypeAlias = Annotated[
    Literal["BASIC", "STANDARD", "ADVANCED", "CORPORATE", "ENTERPRISE", "BUSINESS"], OpenEnum()
]
"""The tier of an account."""

ToolApproval: TypeAlias = Annotated[Literal["never", "writes", "always"], OpenEnum()]
"""`writes`: calls of tools that their server does not mark as read-only."""

TransactionKind: TypeAlias = Annotated[
    Literal[
        "allowance",
        "top_up",
        "hold",
        "charge",
        "release",
        "expiry",
        "refund",
        "refund_reversal",
        "dispute",
        "dispute_reversal",
        "grant",
    ],
    OpenEnum(),
]
"""`allowance`: the monthly allowance. `top_up`: a payment. `hold`: money set aside for a run.
`charge`: a model call. `release`: the returned rest of a hold. `expiry`: unused allowance of a
past month. `refund`: a payment that was returned. `refund_reversal`: a refund that failed.
`dispute`: a payment that the bank took back. `dispute_reversal`: disputed money that came back.
`grant`: money that the operator gave.
"""

Transport: TypeAlias = Annotated[Literal["streamable-http", "sse"], OpenEnum()]
"""The protocol of a tool server. `sse` is the older one."""

Variant: TypeAlias = Annotated[Literal["A", "B"], OpenEnum()]
"""A set of tiers and prices; each deployment has one."""

WebhookDisabledReason: TypeAlias = Annotated[
    Literal["paused", "failing", "gone", "member_removed", "key_ended", "restored"], OpenEnum()
]
"""`paused`: a user or a restore of the service disabled it. `failing`: deliveries failed for three
days. `gone`: the endpoint responded with 410. `member_removed`: the user who chose its URL left,
or can no longer manage webhooks. `key_ended`: the API key that chose its URL was revoked or has
expired. `restored`: the service was restored from a backup, and the webhook was changed or
disabled after the backup.
"""

WebhookState: TypeAlias = Annotated[Literal["active", "failing", "disabled"], OpenEnum()]
"""`active`: events are sent. `failing`: the last delivery failed and is tried again. `disabled`:
nothing is sent until it is enabled.
"""


class ShownTool(Body):
    """A tool, with the definition that you saw."""

    name: str
    """The name of the tool."""
    hash: str
    """The `hash` in the list of tools. It identifies the definition in that list."""


class Account(Model):
    """An account, which owns tasks, tool servers, credits and keys."""

    id: str
    """The ID of the account, `acct_…`."""
    kind: AccountKind
    """Whether one user or a company owns it."""
    name: str
    """The display name."""
    tier: Tier
    """The tier of the account."""
    role: Role
    """The role of the calling user in the account."""
    approver: bool
    """Whether the calling user can approve."""
    trial_ends_at: datetime | None
    """When the signup trial ends or ended. Null if there was none."""
    created_at: datetime
    """When the account was created."""


class AccountApprovals(Model):
    """Who can approve, and what waits for approval."""

    second_person: bool
    """Whether nobody can approve what they shaped."""
    approvers: Approvers
    """Who can approve and reject."""
    max_cost_cents: int | None
    """A run with a higher budget waits for approval. Null: no limit."""


class AccountRetention(Model):
    """Days after which something that is finished is deleted."""

    tasks: int | None
    """Tasks, after they have ended."""
    steps: int | None
    """The steps of tasks that have ended."""
    events: int | None
    """Events."""
    audit: int | None
    """Audit entries."""


class Actor(Model):
    """A user who did something, and the credential of the request."""

    user_id: str
    """The ID of the user, `user_…`."""
    name: str | None
    """The name of the user at that time. Null if unknown."""
    via: CredentialKind | None
    """The kind of credential. Null if an earlier version did not store it."""
    key_id: str | None
    """The ID of the API key. Null for a session."""
    rule_id: str | None = None
    """The ID of the standing rule. Null for a session and a key."""


class ApprovalPolicy(Model):
    """When a person must approve."""

    run: bool
    """Before each run."""
    tools: ToolApproval | list[str]
    """Before which tool calls. A list has patterns of tools, `server/tool`."""
    output: bool
    """Before the output is final."""


class AgentStatistics(Model):
    """How the account's tasks of one agent went in the last 30 days."""

    from_: datetime
    """Only tasks created at this time or later count."""
    to: datetime
    """The time of the request."""
    tasks: int
    """Tasks in any state. Tasks that your own client runs do not count."""
    completed: int
    """`COMPLETED` tasks."""
    failed: int
    """`FAILED` tasks."""
    cancelled: int
    """`CANCELLED` tasks."""
    waiting: int
    """`WAITING_APPROVAL` tasks."""
    running: int
    """`PENDING` and `RUNNING` tasks."""
    success_rate: int | float | None
    """`completed` divided by `completed` plus `failed`. Null if both are 0."""
    median_cost_usd: str | None
    """The median cost of completed tasks in US dollars, with six decimals. Null without a completed
    task.
    """
    median_duration_ms: int | None
    """The median time from start to end of completed tasks in milliseconds, without the time in
    which they waited for people. Null without a completed task.
    """


class Decision(Body):
    """One pending item to approve."""

    id: str
    """The ID of a pending item of the review."""
    arguments: dict[str, Any] | None = None
    """Changed arguments for the tool call, valid against `argumentsSchema`. Default: the arguments
    that the item shows.
    """


class ReviewRef(Body):
    """The review that a decision is about, as it was shown."""

    number: int
    """The number of the review."""
    digest: str
    """The digest of the review."""


class AuditEntry(Model):
    """Who did what to which resource."""

    sequence: int
    """The number of the entry in the account, starting at 1, without gaps."""
    at: datetime
    """When it happened."""
    actor: AuditActor
    """Who acted."""
    user_id: str | None
    """The user, including the user behind an API key. Null if there is none."""
    via: str | None
    """The session, the API key, the access token, or the task of the agent."""
    action: str
    """What was done: the type of an event, such as `task.approved`, or an action without one, such
    as `tool.invoked`. Ignore actions that you do not know.
    """
    resource: str
    """The ID of what it was done to."""
    address: str | None
    """The address of the client."""
    request_id: str | None
    """The X-Request-Id of the request."""
    actor_name: str | None
    """The command and the login of an operator."""
    details: dict[str, Any]
    """More about it; the fields depend on `action`."""
    erased: bool
    """Whether `address`, `requestId`, `actorName` and `details` were erased. The chain can still be
    verified.
    """
    hash: str
    """Covers this entry and all before it, in hexadecimal."""


class AuditHead(Model):
    """The newest entry of the trail. Keep `jws`: it shows later whether the trail was changed."""

    sequence: int
    """The number of the newest entry. 0: there is none."""
    hash: str
    """Its hash, in hexadecimal."""
    jws: str
    """The head with a signature of a key in /.well-known/audit-keys.json."""


class AuditKey(Model):
    """A public key, as a JSON web key."""

    kty: str
    """Always `OKP`."""
    crv: str
    """Always `Ed25519`."""
    x: str
    """The key."""
    kid: str
    """Which key signed a document."""
    use: str
    """Always `sig`."""
    alg: str
    """Always `Ed25519`."""


class Issuer(Model):
    """An identity provider that this deployment accepts."""

    issuer: str
    """The issuer URL."""
    client_id: str
    """The client ID to sign in with."""
    cli_client_id: str
    """The client ID for `rota login`."""
    cli_redirect_uri: str | None
    """Where it waits for the code. Null for any port of 127.0.0.1."""
    name: str
    """The name for a sign-in button."""
    authorization_endpoint: str | None
    """Where a browser starts to sign in. Null if the issuer cannot be reached."""


class BalanceAmounts(Model):
    """The balance in US dollars and cents."""

    available_usd: str
    """US dollars available, as a string."""
    total_loaded_usd: str
    """US dollars paid in since the account was created, minus refunds and disputes, as a string.
    Allowances and grants are not included.
    """
    total_spent_usd: str
    """US dollars spent since the account was created, as a string."""
    available_cents: int
    """Cents available."""
    reserved_cents: int
    """Cents on hold for runs that have not ended."""


class UsageBar(Model):
    """How much of this month's allowance is used, in US cents. All zero without an allowance."""

    used: int
    """Cents used."""
    total: int
    """Cents in the allowance."""
    remaining: int
    """Cents left."""
    percent: int
    """Percent used, rounded down."""
    status: AllowanceStatus
    """A summary of how much is used."""
    resets_at: datetime | None
    """When the next allowance starts. Null without an allowance, and until the next month is paid."""


class BatchTask(Body):
    """A task of a batch."""

    name: str
    """A display name, 1 to 1,000 characters."""
    agent: str | None = None
    """The name of an agent in the catalog (`GET /api/agents`). An unknown agent returns 400; one
    that is locked for your tier returns 403.
    """
    assigned_agent: str | None = None
    """The same as `agent`. If you send both, they must be equal."""
    input: str | None = None
    """What the agent works on. At most 50,000 characters. Default: empty."""
    status: TaskStatus = "PENDING"
    """The initial state. With `WAITING_APPROVAL`, a person approves the run before it starts. With
    any other state except `PENDING`, the service does not run the task.
    """
    project_id: str | None = None
    """Your own label for grouping tasks."""
    description: str | None = None
    """What the task is about, for people and for the agent. At most 50,000 characters."""
    priority: int | float = 0
    """From 0 (lowest) to 10 (highest)."""
    parent_task_id: str | None = None
    """The ID of the parent, for a subtask. The parent must not have ended (409). Tasks can be
    nested up to 8 levels deep.
    """
    output: str | None = None
    """The output, for a record of work that is done elsewhere. At most 50,000 characters."""
    actions: list[str] | None = None
    """Entries for the action log of the task, at most 100 of 2,000 characters each. The log has at
    most 256 KiB.
    """
    output_schema: dict[str, Any] | None = None
    """A JSON Schema with the type `object`, at most 32 KiB. `outputData` is then an object that
    matches it. Default: the agent's. Only for a task that the service runs.
    """
    budget_cents: int | None = None
    """The most that one run can cost, in US cents. The agent's budget is the default and the
    maximum. Only for a task that the service runs.
    """
    deadline: AwareDatetime | None = None
    """A time in the future. If the task has not ended by then, it fails with `DEADLINE_EXCEEDED`,
    even if it is waiting for a person. Only for a task that the service runs.
    """


class Bearer(Body):
    """A bearer token for a tool server."""

    type: Literal["bearer"]
    """Always `bearer`."""
    token: str
    """The token. It is stored encrypted and never returned."""


class PassBilling(Model):
    """The paid connect pass of a personal account."""

    status: SubscriptionStatus
    """The state of the pass."""
    current_period_start: datetime
    """When the paid period started."""
    current_period_end: datetime
    """When the paid period ends."""
    cancel_at_period_end: bool
    """Whether it ends with the paid period instead of renewing."""
    can_cancel: bool
    """Whether it can be cancelled now."""
    can_resume: bool
    """Whether a cancellation can be undone now."""


class Changes(Model):
    """How a transaction changed each part of the balance, in micro-dollars."""

    allowance: int
    """Change of the allowance."""
    top_up: int
    """Change of the top-up balance."""
    held: int
    """Change of the money on hold."""
    spent: int
    """Change of the money spent."""
    owed: int
    """Change of the money owed. Negative: more is owed."""


class ChatNotifications(Model):
    """What you are notified about in a chat."""

    kinds: list[NotificationKind]
    """What you are notified about."""
    url: str | None
    """The URL of the webhook, shortened. Null if there is none."""
    service: ChatService | None
    """The chat service of the webhook. Null if there is none."""


class PastCheck(Model):
    """The status of a tool server at one time."""

    checked_at: datetime
    """When it was checked."""
    status: ServerStatus
    """The status after the check."""
    latency_ms: int | float | None
    """How long the server took to respond, in milliseconds. Null if it did not respond, or if
    nothing was measured.
    """
    error: str | None
    """Why the check failed. Null if it succeeded."""


class Condition(Body):
    """What an argument must be: exactly one of `const`, `enum`, `min` and `max`, or `any`."""

    const: Any = None
    """Exactly this value."""
    enum: list[Any] | None = None
    """One of these values, at most 100."""
    min: int | float | None = None
    """A number that is not less than this."""
    max: int | float | None = None
    """A number that is not greater than this."""
    any: Literal[True] | None = None
    """Any value, and the argument can be absent."""


class CreateCompany(Body):
    """A company to create."""

    name: str
    """The display name, 1 to 100 characters."""


class CreateInvitation(Body):
    """A person to invite."""

    email: str
    """The address of the person, as their identity provider verifies it."""
    role: Role
    """The role. Only an owner can invite owners."""
    approver: bool = False
    """Whether a member can approve. Owners and admins always can."""


class CreateKey(Body):
    """An API key to create."""

    name: str
    """A display name, 1 to 100 characters."""
    scopes: list[Scope] | None = None
    """What the key can do. Default: every scope except `tasks:approve`, `audit:read` and
    `webhooks:write`, which must be named: a key is a program, and an approval is a decision of a
    person. The default includes `mcp:write`, with which a program accepts changed tools, and
    `mcp:invoke`, with which it calls tools without a review.
    """
    expires_at: AwareDatetime | None = None
    """When the key stops working: an ISO 8601 time with an offset, in the future. Default: never."""


class ReviewedCall(Body):
    """A call in a review."""

    task_id: str
    """The ID of the task."""
    item_id: str
    """The ID of the item in a review of the task."""


class TaskBody(Body):
    """A task to create. With an `agent` and the status `PENDING` (the default) or
    `WAITING_APPROVAL`, the service runs it. Otherwise it is a record that your client updates.
    """

    name: str
    """A display name, 1 to 1,000 characters."""
    agent: str | None = None
    """The name of an agent in the catalog (`GET /api/agents`). An unknown agent returns 400; one
    that is locked for your tier returns 403.
    """
    assigned_agent: str | None = None
    """The same as `agent`. If you send both, they must be equal."""
    input: str | None = None
    """What the agent works on. At most 50,000 characters. Default: empty."""
    status: TaskStatus = "PENDING"
    """The initial state. With `WAITING_APPROVAL`, a person approves the run before it starts. With
    any other state except `PENDING`, the service does not run the task.
    """
    project_id: str | None = None
    """Your own label for grouping tasks."""
    description: str | None = None
    """What the task is about, for people and for the agent. At most 50,000 characters."""
    priority: int | float = 0
    """From 0 (lowest) to 10 (highest)."""
    parent_task_id: str | None = None
    """The ID of the parent, for a subtask. The parent must not have ended (409). Tasks can be
    nested up to 8 levels deep.
    """
    output: str | None = None
    """The output, for a record of work that is done elsewhere. At most 50,000 characters."""
    actions: list[str] | None = None
    """Entries for the action log of the task, at most 100 of 2,000 characters each. The log has at
    most 256 KiB.
    """
    output_schema: dict[str, Any] | None = None
    """A JSON Schema with the type `object`, at most 32 KiB. `outputData` is then an object that
    matches it. Default: the agent's. Only for a task that the service runs.
    """
    budget_cents: int | None = None
    """The most that one run can cost, in US cents. The agent's budget is the default and the
    maximum. Only for a task that the service runs.
    """


class ScheduledTask(Model):
    """A task to create. With an `agent` and the status `PENDING` (the default) or
    `WAITING_APPROVAL`, the service runs it. Otherwise it is a record that your client updates.
    """

    name: str
    """A display name, 1 to 1,000 characters."""
    agent: str | None = None
    """The name of an agent in the catalog (`GET /api/agents`). An unknown agent returns 400; one
    that is locked for your tier returns 403.
    """
    assigned_agent: str | None = None
    """The same as `agent`. If you send both, they must be equal."""
    input: str | None = None
    """What the agent works on. At most 50,000 characters. Default: empty."""
    status: TaskStatus = "PENDING"
    """The initial state. With `WAITING_APPROVAL`, a person approves the run before it starts. With
    any other state except `PENDING`, the service does not run the task.
    """
    project_id: str | None = None
    """Your own label for grouping tasks."""
    description: str | None = None
    """What the task is about, for people and for the agent. At most 50,000 characters."""
    priority: int | float = 0
    """From 0 (lowest) to 10 (highest)."""
    parent_task_id: str | None = None
    """The ID of the parent, for a subtask. The parent must not have ended (409). Tasks can be
    nested up to 8 levels deep.
    """
    output: str | None = None
    """The output, for a record of work that is done elsewhere. At most 50,000 characters."""
    actions: list[str] | None = None
    """Entries for the action log of the task, at most 100 of 2,000 characters each. The log has at
    most 256 KiB.
    """
    output_schema: dict[str, Any] | None = None
    """A JSON Schema with the type `object`, at most 32 KiB. `outputData` is then an object that
    matches it. Default: the agent's. Only for a task that the service runs.
    """
    budget_cents: int | None = None
    """The most that one run can cost, in US cents. The agent's budget is the default and the
    maximum. Only for a task that the service runs.
    """


class CreateTask(Body):
    """A task to create. With an `agent` and the status `PENDING` (the default) or
    `WAITING_APPROVAL`, the service runs it. Otherwise it is a record that your client updates.
    """

    name: str
    """A display name, 1 to 1,000 characters."""
    agent: str | None = None
    """The name of an agent in the catalog (`GET /api/agents`). An unknown agent returns 400; one
    that is locked for your tier returns 403.
    """
    assigned_agent: str | None = None
    """The same as `agent`. If you send both, they must be equal."""
    input: str | None = None
    """What the agent works on. At most 50,000 characters. Default: empty."""
    status: TaskStatus = "PENDING"
    """The initial state. With `WAITING_APPROVAL`, a person approves the run before it starts. With
    any other state except `PENDING`, the service does not run the task.
    """
    project_id: str | None = None
    """Your own label for grouping tasks."""
    description: str | None = None
    """What the task is about, for people and for the agent. At most 50,000 characters."""
    priority: int | float = 0
    """From 0 (lowest) to 10 (highest)."""
    parent_task_id: str | None = None
    """The ID of the parent, for a subtask. The parent must not have ended (409). Tasks can be
    nested up to 8 levels deep.
    """
    output: str | None = None
    """The output, for a record of work that is done elsewhere. At most 50,000 characters."""
    actions: list[str] | None = None
    """Entries for the action log of the task, at most 100 of 2,000 characters each. The log has at
    most 256 KiB.
    """
    output_schema: dict[str, Any] | None = None
    """A JSON Schema with the type `object`, at most 32 KiB. `outputData` is then an object that
    matches it. Default: the agent's. Only for a task that the service runs.
    """
    budget_cents: int | None = None
    """The most that one run can cost, in US cents. The agent's budget is the default and the
    maximum. Only for a task that the service runs.
    """
    deadline: AwareDatetime | None = None
    """A time in the future. If the task has not ended by then, it fails with `DEADLINE_EXCEEDED`,
    even if it is waiting for a person. Only for a task that the service runs.
    """
    dry_run: bool = False
    """True: creates nothing, and returns 200 with a quote: what the task can cost, which tools it
    can use and which approvals it needs.
    """


class CreateWebhook(Body):
    """A webhook to create."""

    url: str
    """Where to send events: an https address on the public internet."""
    events: list[str] | None = None
    """The types of events that it receives. Null or absent: all."""
    description: str | None = None
    """What it is for, up to 255 characters."""


class CreditSettings(Model):
    """The credit settings of an account."""

    allow_overflow: bool
    """Whether runs use the top-up balance when the monthly allowance is used up."""
    alert_below_cents: int | None
    """US cents, from 0 to 10000000 ($100,000). When less than this is available, the event
    `credits.low` is sent once. Null sends none.
    """


class DefinitionChange(Model):
    """A field of a tool's definition that changed."""

    field: str
    """The field that changed."""
    accepted: Any
    """The accepted value. Null for a new tool."""
    live: Any
    """The current value on the server."""


class DeletedResponse(Model):
    """Something was deleted."""

    id: str
    """The ID of the deleted object."""
    deleted: bool = True
    """Always true."""


class DeliveryRequest(Model):
    """What was sent."""

    url: str
    """Where it was sent. Without `webhooks:write`, only the origin."""
    body: str
    """The body, up to 4,096 characters of it."""


class DeliveryResponse(Model):
    """What the endpoint responded."""

    status: int
    """The HTTP status."""
    body: str
    """The beginning of the body, up to 1,024 characters."""


class Department(Model):
    """A department of the catalog."""

    name: str
    """The name of the department."""
    agents: int
    """The number of agents in the department."""
    tiers: list[int]
    """The ranks that its agents have, in order."""


class EraseAccount(Body):
    """Confirms that the account is the right one."""

    name: str
    """The name of the account, exactly as `GET /api/me` shows it."""


class Erasure(Model):
    """The erasure of an account."""

    account_id: str
    """The account."""
    state: ErasureState
    """Whether everything is erased."""
    requested_at: datetime
    """When the account was stopped."""
    finished_at: datetime | None
    """When everything was erased. Null until then."""


class ErrorBody(Model):
    """Describes an error."""

    message: str
    """What happened and what to do next, as readable text. The wording can change."""
    timestamp: datetime
    """When the error happened, in UTC."""
    path: str
    """The path of the request."""
    code: str | None = None
    """A code for programs to check. Check the HTTP status first; some errors have no code."""
    details: Any = None
    """More about the error. The fields depend on `code`; most errors have no details."""


class Event(Model):
    """Something that happened in the account. Each `data` line of an event stream is one."""

    id: str
    """The ID of the event, `evt_…`."""
    sequence: int
    """The number of the event in the account, starting at 1, without gaps except at an
    `account.restored`. It is also the `id` line of the stream: send it as Last-Event-ID to
    continue.
    """
    type: str
    """What happened: `task.created`, `task.started`, `task.waiting_approval`, `task.approved`,
    `task.rejected`, `task.completed`, `task.failed`, `task.cancelled`, `task.retried`,
    `task.forked`, `task.updated`, `step.started`, `step.finished`, `credits.topped_up`,
    `credits.granted`, `credits.depleted`, `credits.low`, `subscription.updated`,
    `schedule.created`, `schedule.updated`, `schedule.deleted`, `schedule.failed`,
    `mcp.connected`, `mcp.disconnected`, `mcp.changed`, `key.created`, `key.revoked`,
    `company.created`, `company.updated`, `company.seats_exceeded`, `member.added`,
    `member.updated`, `member.removed`, `invitation.created`, `invitation.deleted`,
    `policy.updated`, `rule.created`, `rule.used`, `rule.revoked`, `webhook.created`,
    `webhook.updated`, `webhook.enabled`, `webhook.disabled`, `webhook.deleted`,
    `webhook.replayed`, `webhook.secret_rotated`, `webhook.skipped`, `account.restored`,
    `session.created` or `session.revoked`. Ignore types that you do not know.
    """
    task_id: str | None
    """The task that the event is about. Null if none."""
    data: dict[str, Any]
    """More about the event; the fields depend on `type`. Task events have `status`,
    `previousStatus` and `by`, the user who caused it. `task.updated` has `fields`, the names of
    the changed fields. Step events have `run`, `step`, `call`, `kind` (`model` or `tool`),
    `tool` and `server`, and at the end `outcome`.
    """
    created_at: datetime
    """When it happened."""


class FieldError(Model):
    """One problem with a request."""

    field: str
    """The field, parameter or header. Nested fields are separated by dots, such as
    `decisions.0.id`. Empty if the problem is the whole body.
    """
    message: str
    """What is wrong with it."""


class Forecast(Model):
    """How long the money lasts if the account keeps spending at the rate of the last days."""

    window_days: int
    """The number of days that the forecast is based on. Today is the last one."""
    spent_usd: str
    """US dollars spent in these days."""
    per_day_usd: str
    """US dollars spent per day."""
    allowance_lasts_until: datetime | None
    """When this month's allowance is used up. Null if it lasts until the next one starts, if there
    is none, or if nothing was spent.
    """
    balance_lasts_until: datetime | None
    """When all money that runs can use is used up, including holds, without new allowances and
    payments. Null if that takes more than ten years, or if nothing was spent.
    """


class ForkOptions(Model):
    """Whether a task can be forked, and how."""

    available: bool
    """Whether the task can be forked now."""
    reason: str | None
    """Why it cannot be forked. Null if it can."""
    steps: list[int]
    """The steps of the current run that a fork can continue from, besides 0."""
    versions: list[int]
    """The versions of the agent that the tier includes, newest first, at most 100."""
    models: list[str]
    """The names of the configured models."""


class ForkOrigin(Model):
    """Where a fork continues from."""

    task_id: str
    """The ID of the task that was forked."""
    run: int
    """The run of that task."""
    step: int
    """The last step that was taken from it. 0: the fork began at the start."""


class ForkTask(Body):
    """Where a fork continues from, and what it does differently."""

    from_step: int
    """The last step of the task's current run that the fork copies. 0 copies none: the fork starts
    with the same input.
    """
    agent_version: int | None = None
    """The version of the agent that the fork uses. Default: the version that the task uses."""
    model: str | None = None
    """The name of a configured model that the fork uses instead of the agent's. Default: the task's
    `model`.
    """
    dry_run: bool = False
    """True: creates nothing, and returns 200 with a quote: what the fork can cost, which tools it
    can use and which approvals it needs.
    """


class Hold(Model):
    """Money that is set aside for a task that has not ended."""

    task_id: str
    """The ID of the task."""
    task_name: str
    """The name of the task."""
    agent: str | None
    """The agent of the task."""
    status: TaskStatus
    """The state of the task."""
    held_usd: str
    """US dollars that are still on hold."""
    used_usd: str
    """US dollars that the run has spent so far."""
    created_at: datetime
    """When the money was set aside."""


class Invitation(Model):
    """An open invitation."""

    id: str
    """The ID of the invitation, `inv_…`."""
    email: str
    """The address that is invited, in lower case."""
    role: Role
    """The role that the person gets."""
    approver: bool
    """Whether the person will be able to approve."""
    created_by: str
    """The user who created it, `user_…`."""
    created_at: datetime
    """When it was created."""
    expires_at: datetime
    """When it stops working."""


class InvokeTool(Body):
    """A tool call."""

    tool: str
    """The name of the tool."""
    arguments: dict[str, Any] | None = None
    """The arguments, valid against the `inputSchema` of the tool. Default: none."""


class ToolResult(Model):
    """What a tool returned."""

    content: list[dict[str, Any]]
    """The content blocks, as the server sent them."""
    structured_content: Any
    """The structured result. Null if the tool returned none."""
    is_error: bool
    """Whether the tool reports that it failed."""


class JsonWebKeySet(Model):
    """Public keys in the JSON Web Key Set format (RFC 7517)."""

    keys: list[dict[str, Any]]
    """The public keys of session tokens. Choose by `kid`."""


class LiveResponse(Model):
    """The process is running."""

    status: Literal["live"] = "live"
    """Always `live`."""


class LogoutResponse(Model):
    """The session has ended."""

    logged_out: bool
    """Always true."""


class MailNotifications(Model):
    """What you are notified about by email."""

    kinds: list[NotificationKind]
    """What you are notified about."""
    address: str | None
    """Where emails go: the last address that your identity provider has verified. Null if there is
    none.
    """
    transport: MailTransport
    """How this service sends email."""


class User(Model):
    """A person who signs in."""

    id: str
    """The ID of the user, `user_…`."""
    email: str | None
    """The email address. Null if the identity provider gave none."""
    name: str | None
    """The name. Null if the identity provider gave none."""
    created_at: datetime
    """When the user first signed in."""


class Member(Model):
    """A member of a company."""

    user_id: str
    """The ID of the user, `user_…`."""
    name: str | None
    """The name of the user. Null if unknown."""
    email: str | None
    """The last address that the user's identity provider has verified. Null: none."""
    role: Role
    """The role of the member."""
    approver: bool
    """Whether the member can approve."""
    joined_at: datetime
    """When the member joined."""


class NotificationDelivery(Model):
    """What has become of the messages of one kind in one channel."""

    kind: NotificationKind
    """What the messages are about."""
    channel: NotificationChannel
    """How they reach you."""
    state: DeliveryState
    """Whether something waits to be sent."""
    waiting: int
    """How many things the next message is about."""
    next_at: datetime | None
    """When the next message is sent. Null if nothing waits."""
    last_sent_at: datetime | None
    """When the last message was sent."""
    failed_at: datetime | None
    """When Rota stopped retrying the last message. Null after one was sent."""
    error: str | None
    """Why the last attempt failed. Null after a message was sent."""


class Trial(Model):
    """The trial that starts at the first sign-in. It needs no card and ends automatically."""

    started_at: datetime
    """When the trial started."""
    ends_at: datetime
    """When the trial ends or ended."""
    active: bool
    """Whether the trial is running now."""


class PassCheckoutResponse(Model):
    """A checkout page for the connect pass."""

    checkout_url: str
    """The page of the payment processor. Send the user there. Nothing changes before the payment is
    complete.
    """


class PassOffer(Model):
    """The connect pass, a personal add-on."""

    price_cents: int
    """The price per month."""


class PatchCompany(Body):
    """What to change."""

    name: str | None = None
    """The display name, 1 to 100 characters."""


class PatchCreditSettings(Body):
    """New credit settings. Absent fields change nothing; one is needed."""

    allow_overflow: bool | None = None
    """Null changes nothing."""
    alert_below_cents: int | None = None
    """US cents, from 0 to 10000000 ($100,000). When less than this is available, the event
    `credits.low` is sent once. Null sends none.
    """


class PatchMember(Body):
    """What to change."""

    role: Role | None = None
    """The new role. Only an owner can add or change owners."""
    approver: bool | None = None
    """Whether the member can approve. Owners and admins always can. An owner or admin who becomes a
    member cannot, unless this is true.
    """


class ReportedError(Body):
    """Why a task failed, as your client reports it."""

    code: str
    """A code for programs to check."""
    message: str
    """What happened, as readable text. At most 2,000 characters."""
    retryable: bool = False
    """Whether a retry can succeed without a change."""


class PatchWebhook(Body):
    """Changes to a webhook. Absent fields change nothing."""

    url: str | None = None
    """Where to send events: an https address on the public internet."""
    events: list[str] | None = None
    """The types of events that it receives. Null or absent: all."""
    description: str | None = None
    """What it is for, up to 255 characters."""
    enabled: bool | None = None
    """False stops deliveries. True continues at once, after the last confirmed event."""


class ToolServer(Model):
    """A connected tool server."""

    id: str
    """The ID of the server, `mcp_…`."""
    name: str
    """The short name. Agents call its tools as `name/tool`."""
    url: str
    """The URL of the MCP endpoint."""
    transport: Transport
    """The protocol of the server."""
    status: ServerStatus
    """The result of the last check."""
    tool_count: int
    """The number of tools that it offers."""
    last_checked_at: datetime
    """When it was last checked."""
    last_error: str | None
    """Why the last check failed. Null if it succeeded."""
    created_at: datetime
    """When it was connected."""
    updated_at: datetime
    """When it last changed."""
    allowed_tools: list[str] | None
    """The tools that can be used. Null means all."""
    missing_tools: list[str]
    """The names in `allowedTools` that the server does not offer."""
    revision: int
    """Increases with every change of the URL, transport or credentials."""


class PlanOffer(Model):
    """A tier, with what it costs and gives."""

    tier: Tier
    """The tier."""
    price_cents: int
    """The price per month, for each seat if the tier has seats. 0 if free."""
    allowance_cents: int
    """What can be spent each month without a top-up, for each seat."""
    min_seats: int | None
    """The minimum number of seats. Null if the tier has no seats."""


class PutApprovals(Body):
    """Who can approve, and what waits for approval."""

    second_person: bool
    """Whether a second person must approve: users cannot approve what they shaped. Turning it on
    requires two approvers. When it is turned off, reviews that are already waiting stay under
    it.
    """
    approvers: Approvers
    """Who can approve and reject."""
    max_cost_cents: int | None = None
    """A run with a higher budget waits for approval before it starts. Null: no limit."""


class PutChat(Body):
    """What you want to be notified about in a chat."""

    kinds: list[NotificationKind]
    """What you want to be notified about this way."""
    url: str | None = None
    """The URL of an incoming webhook. It is a secret and is not shown again. Without this field, or
    with the shortened URL that you have read, it stays as it is. Null removes it.
    """
    service: ChatService | None = None
    """The chat service of the webhook. Needed with a URL."""


class PutMail(Body):
    """What you want to be notified about by email."""

    kinds: list[NotificationKind]
    """What you want to be notified about this way."""


class PutRetention(Body):
    """How many days the account keeps what is finished."""

    tasks: int | None = None
    """Tasks, after they have ended. Null: the default of the service."""
    steps: int | None = None
    """The steps of tasks that have ended. Null: the default of the service."""
    events: int | None = None
    """Events. Null: the default of the service."""
    audit: int | None = None
    """Audit entries. Null: the default of the service."""


class QuotedAgent(Model):
    """The agent that would run."""

    name: str
    """The name of the agent."""
    display_name: str
    """Its display name."""
    version: int
    """The version that would run."""


class QuotedBalance(Model):
    """Whether the balance covers the budget."""

    covered: bool
    """Whether the task could start now."""
    available_usd: str
    """What the account can use for the next run."""
    paid_by_parent: bool
    """Whether the hold of the parent task pays, and not the balance."""


class QuotedTool(Model):
    """A tool that the agent can use now."""

    server: str
    """The name of the tool server."""
    tool: str
    """The name of the tool."""
    title: str | None
    """The title, as the server says. Null if it has none."""
    read_only: bool
    """Whether the server marks it as read-only."""
    needs_approval: bool
    """Whether a person must approve each call."""


class TypicalCost(Model):
    """The cost of the agent's newest tasks that completed in their first run."""

    tasks: int
    """The number of tasks that these figures are based on, at most 100."""
    median_usd: str
    """Half of them cost at most this."""
    p90_usd: str
    """Nine of ten cost at most this."""


class ReadyResponse(Model):
    """Whether the service can handle requests, and the result of each check."""

    status: Readiness
    """Whether the service can handle requests."""
    checks: dict[str, str]
    """The result of each check: `ok`, or why it failed."""


class ReceiptResponse(Model):
    """What a task did, who decided about it and what it cost, in one signed document."""

    receipt: dict[str, Any]
    """The document, to read: `decisions`, `calls`, `ledger` and `audit`, each item with its hash.
    It has IDs, times, amounts and hashes, and no texts.
    """
    jws: str
    """The same document, signed with a key in /.well-known/audit-keys.json. `rota receipt verify`
    checks it.
    """


class ReceivedInvitation(Model):
    """An open invitation, as the person who has the link sees it."""

    account_id: str
    """The ID of the company, `acct_…`."""
    account_name: str
    """The name of the company."""
    role: Role
    """The role that you get."""
    approver: bool
    """Whether you will be able to approve."""
    invited_by: str | None
    """The name of the member who invites you. Null if unknown."""
    expires_at: datetime
    """When it stops working."""


class ReplayWebhook(Body):
    """Where to continue."""

    from_sequence: int
    """The number of the first event to send."""


class RetryOption(Model):
    """One way to retry a task."""

    from_: RetryFrom
    """Where the new run would start."""
    version: int
    """The version of the agent that would run."""
    kept_steps: int
    """The model calls and tool calls that would be kept, with their approvals."""
    repeated_steps: int
    """The model calls and tool calls of the failed run that would be done again."""
    kept_cost_usd: str
    """What the kept steps cost. They are not paid for again."""
    maximum_cost_usd: str
    """The most that the new run can cost: its budget, which is held."""
    opens_gates: list[Gate]
    """The gates that the new run opens, apart from questions of the agent: `run` for certain,
    `tool` if it makes a call that needs approval, `output` if it gets that far.
    """
    text_changed: bool
    """Whether a text of the task has changed since a person approved its run."""


class RetryTask(Body):
    """Where a failed task starts again."""

    from_: RetryFrom = "start"
    """Where the new run starts."""


class RotateSecret(Body):
    """How to replace the secret of a webhook."""

    overlap_hours: int = 24
    """For how many hours the secret before it also signs."""


class Rule(Model):
    """Calls of a tool that an agent can make without a review."""

    id: str
    """The ID of the rule, `rule_…`."""
    server_id: str
    """The ID of the tool server."""
    server_revision: int
    """The revision of the server that it is bound to."""
    tool: str
    """The name of the tool."""
    definition_hash: str
    """The hash of the tool's definition that it is bound to."""
    agent: str
    """The name of the agent."""
    agent_version: int
    """The version of the agent that it is bound to."""
    arguments: dict[str, dict[str, Any]]
    """The condition for each argument."""
    expires_at: datetime
    """When the rule ends."""
    max_uses: int
    """How many calls it approves."""
    uses: int
    """How many calls it has approved."""
    state: RuleState
    """Whether it works."""
    void_reason: str | None
    """Why it is void. Null otherwise."""
    created_by: str
    """The user who made it, `user_…`."""
    created_by_name: str | None
    """The name of that user at that time. Null if unknown."""
    created_at: datetime
    """When it was made."""
    revoked_at: datetime | None
    """When it was deleted. Null if it was not."""


class ScheduleError(Model):
    """Why a schedule could not create a task."""

    code: str
    """A code for programs to check."""
    message: str
    """What happened and what to do next, as readable text."""


class SendTest(Body):
    """Where to send a test message."""

    channel: NotificationChannel
    """The channel to test."""


class Session(Model):
    """A session that has not ended."""

    id: str
    """The ID of the session, `sess_…`."""
    device: str | None
    """The program that signed in, from its User-Agent header. Null if it sent none."""
    address: str | None
    """The IP address that signed in; for IPv6, its network. Null if it is not known."""
    created_at: datetime
    """When the user signed in."""
    last_seen_at: datetime
    """When the session was last used, to the minute."""
    current: bool
    """Whether this request uses the session."""


class SkippedEvents(Model):
    """Events that were deleted before they could be delivered."""

    from_sequence: int
    """The number of the first of them."""
    to_sequence: int
    """The number of the last of them."""


class SnoozeResponse(Model):
    """Until when a decision is snoozed."""

    snoozed_until: datetime | None
    """When the review returns to your inbox. Null if it is not snoozed."""


class SnoozeTask(Body):
    """Until when to snooze a decision."""

    until: AwareDatetime | None
    """A time in the future. A time after `expiresAt` of the review counts as `expiresAt`. Null
    brings the review back.
    """


class StartSession(Body):
    """An ID token to sign in with."""

    id_token: str
    """An ID token (a JWT) from one of the issuers that `GET /api/auth/config` lists. It must be
    less than 10 minutes old, and it works once. Get one from your identity provider; this
    example is not a real token.
    """
    cookie: bool = False
    """Whether to set the session token as a cookie that scripts cannot read, instead of returning
    it. Only pages of this service can do this.
    """


class StartSessionByCode(Body):
    """An authorization code to sign in with."""

    code: str
    """The code from the identity provider. It works once."""
    code_verifier: str
    """The PKCE verifier of the authorization request (RFC 7636): 43 to 128 letters, digits or
    `-._~`.
    """
    redirect_uri: str
    """The redirect URI of the authorization request: `/signin/callback` of this service, or
    `/callback` on a loopback address.
    """
    issuer: str
    """The issuer of the code, one that `GET /api/auth/config` lists."""
    nonce: str | None = None
    """The nonce of the authorization request. The ID token must have the same one. Null if the
    request had none.
    """
    cookie: bool = False
    """Whether to set the session token as a cookie that scripts cannot read, instead of returning
    it. Only pages of this service can do this.
    """


class Subscribe(Body):
    """A plan to subscribe to."""

    plan: str
    """The name of the plan, in any case: `standard`, `advanced`, `corporate` or `enterprise`. To
    return to `basic`, cancel the subscription.
    """
    seats: int | None = None
    """The number of seats, for `corporate` (at least 1) and `enterprise` (at least 100). Other
    plans have no seats.
    """


class Subscription(Model):
    """The subscription of an account."""

    tier: Tier
    """The tier that the subscription gives now."""
    status: SubscriptionStatus
    """The state of the subscription."""
    seats: int | None
    """The number of seats. Null if the plan has no seats."""
    current_period_start: datetime
    """When the paid period started."""
    current_period_end: datetime
    """When the paid period ends."""
    cancel_at_period_end: bool
    """Whether it ends with the paid period instead of renewing."""
    downgrade_target: Tier | None
    """The lower plan that starts after this period. Null if none is scheduled."""
    downgrade_seats: int | None
    """The number of seats from the next period on. Null if the next plan has no seats, or no change
    is scheduled.
    """


class TaskError(Model):
    """Why a task failed."""

    code: str
    """A code for programs to check."""
    message: str
    """What happened and what to do next, as readable text."""
    retryable: bool
    """Whether a retry can succeed without a change."""


class TaskMetadata(Model):
    """Additional data of a task."""

    actions: list[str]
    """The action log, oldest first."""


class TaskUsage(Model):
    """What a task has used so far. Zero for a task that the service does not run."""

    run: int
    """The number of the current run. A retry adds 1."""
    steps: int
    """Model calls in all runs."""
    input_tokens: int
    """Tokens sent to models."""
    output_tokens: int
    """Tokens received from models."""
    cost_usd: str
    """What the model calls cost."""
    budget_usd: str | None
    """The most that the current run can cost: the budget of its agent, or `budgetCents` if that is
    less. Null for a task that the service does not run.
    """


class TestNotificationResponse(Model):
    """What became of a test message."""

    delivered: bool
    """Whether the mail server or the chat service has accepted the message."""
    error: str | None
    """Why not. Null if it was delivered."""


class TokenResponse(Model):
    """A new session token."""

    token: str | None
    """The session token, a JWT that is valid for 7 days. Its `exp` claim is the time when it
    expires. Null if it is set as a cookie.
    """


class TopUp(Body):
    """An amount to buy."""

    amount_cents: int
    """US cents, from 500 ($5) to 100000 ($1,000)."""


class TopUpResponse(Model):
    """A checkout page for a top-up."""

    checkout_url: str
    """The page of the payment processor. Send the user there. The balance changes when the payment
    is complete.
    """
    amount: int
    """The amount in US cents, as requested."""


class UnsubscribeResponse(Model):
    """The emails that a link turns off."""

    kind: NotificationKind
    """What the emails are about."""
    subscribed: bool
    """Whether such emails are sent."""


class Usage(Model):
    """Usage of one day, agent or model."""

    calls: int
    """Model calls."""
    input_tokens: int
    """Tokens sent to models."""
    output_tokens: int
    """Tokens received from models."""
    cost_usd: str
    """US dollars with six decimals, as a string to keep it exact."""
    key: str
    """The day, the name of the agent or the name of the model."""
    group: str | None
    """The agent or the model, if `groupBy` is `day,agent` or `day,model`. Null for the sum of all
    except the ten most expensive, and if `groupBy` names one thing.
    """


class UsageTotals(Model):
    """Model calls and what they cost."""

    calls: int
    """Model calls."""
    input_tokens: int
    """Tokens sent to models."""
    output_tokens: int
    """Tokens received from models."""
    cost_usd: str
    """US dollars with six decimals, as a string to keep it exact."""


class WebhookKey(Model):
    """A public key that verifies the signature `v1a`."""

    public_key: str
    """The key as the SDKs and Standard Webhooks write it."""
    alg: str = "Ed25519"
    """Always `Ed25519`."""


class AcceptTools(Body):
    """Tools to accept."""

    tools: list[ShownTool]
    """The tools, at most 500."""


class Company(Account):
    """A company account, with its seats."""

    seats: int | None
    """How many members the plan or the tier allows. Null: any number."""
    members: int
    """How many members there are."""


class PoliciesResponse(Model):
    """The policies of the account."""

    approvals: AccountApprovals
    """The policy for approvals."""
    retention: AccountRetention
    """What the account has set. Null: the default of the service."""
    retention_in_effect: AccountRetention
    """What applies now. Null: nothing is deleted."""


class ApiKey(Model):
    """An API key, without its secret."""

    id: str
    """The ID of the key, `key_…`."""
    name: str
    """The display name."""
    prefix: str
    """The first characters of the secret, to recognize it."""
    scopes: list[Scope]
    """What the key can do."""
    created_at: datetime
    """When the key was created."""
    last_used_at: datetime | None
    """When the key was last used, to the minute. Null if never."""
    expires_at: datetime | None
    """When the key stops working. Null if never."""
    created_by: Actor
    """Who created the key."""


class ReviewItem(Model):
    """Something that a person decides: a tool call, or an output."""

    id: str
    """The ID of the item, unique within the task. Use it in `decisions`."""
    tool: str | None
    """The tool that the agent wants to call. Null at an output gate."""
    server: str | None
    """The name of the tool server. Null for an output and for built-in tools."""
    summary: str
    """What the call will do, in one sentence of at most 200 characters. Rota builds it from the
    agent's file, the tool and the arguments. The model does not write it.
    """
    arguments: dict[str, Any] | None
    """The arguments of the call. At an output gate, the `output`, or the data itself if the task
    has an `outputSchema`.
    """
    arguments_schema: dict[str, Any] | None
    """The JSON Schema that changed arguments must match. Null if unknown."""
    reason: str | None
    """Why a person must decide."""
    decision: ItemDecision | None
    """The decision. Null while the item waits."""
    decided_by: Actor | None
    """Who decided. Null while the item waits."""
    decided_at: datetime | None
    """When it was decided. Null while the item waits."""
    server_id: str | None = None
    """The ID of the tool server that gets the call. Null like `server`."""
    server_revision: int | None = None
    """The revision of the tool server, which changes with its URL and credentials. Null like
    `server`.
    """
    server_url: str | None = None
    """Where the call is sent. Null like `server`."""
    tool_description: str | None = None
    """What the tool does, as its server says. Null for an output."""
    tool_title: str | None = None
    """The title of the tool, as its server says. Null if it has none."""
    annotations: dict[str, Any] | None = None
    """What the server says about the effects of the tool, such as `readOnlyHint` and
    `destructiveHint`. Null if it says nothing.
    """
    definition_hash: str | None = None
    """The hash of the tool's definition in this review, as the tool server's page shows it. Null
    for an output, for built-in tools and for reviews of earlier versions.
    """
    definition_accepted: bool | None = None
    """Whether this is still the accepted definition of the tool. Null like `definitionHash`."""
    accepted_by: Actor | None = None
    """Who accepted this definition. Null if it is not accepted or unknown."""
    accepted_at: datetime | None = None
    """When this definition was accepted. Null like `acceptedBy`."""
    agent_says: str | None = None
    """What the model wrote beside the call, at most 2,000 characters. It can be wrong. Null if it
    wrote nothing.
    """
    edited: bool = False
    """Whether a person has changed the arguments."""
    edited_by: Actor | None = None
    """Who changed the arguments before this review, so that a second person approves them. Null
    otherwise.
    """
    digest: str | None = None
    """The SHA-256 of the call with these arguments. The call is made only if it still has this
    digest. Null for reviews of earlier versions.
    """


class TimelineStep(Model):
    """One step of a task: a model call, a tool call or an approval."""

    id: str
    """The ID of the step, unique within the task."""
    kind: StepKind
    """What kind of step it is."""
    run: int
    """The run, from 1."""
    step: int | None
    """The step of the run, from 1. Null for an approval."""
    name: str | None
    """The name of the model or tool; for an approval, its gate. Null for an approval of a task that
    the service does not run.
    """
    server: str | None
    """The name of the tool server. Null for other steps and built-in tools."""
    state: StepState
    """The state of the step."""
    outcome: StepOutcome | None
    """How the call ended. Null before that and for an approval."""
    arguments: Any
    """The arguments of a tool call, or the items of an approval. A model call can have
    `throughStep`, the last step that a summary replaces; `insteadOf`, the models before this one
    in the chain; and `bytesPerToken`, the new estimate of the bytes per token, if it is lower
    than before. Null otherwise.
    """
    result: Any
    """For a model call, its `text` and the names of the `toolCalls` it requested. For a tool call,
    its result. For an approval, the reason, or null.
    """
    child_task_id: str | None
    """The subtask, for a tool call that delegates. Otherwise null."""
    input_tokens: int
    """Tokens sent to the model; 0 for other steps."""
    output_tokens: int
    """Tokens received from the model; 0 for other steps."""
    cached_input_tokens: int
    """The part of `inputTokens` that the provider read from its cache."""
    cache_write_tokens: int
    """The part of `inputTokens` that the provider wrote to its cache."""
    reasoning_tokens: int
    """The part of `outputTokens` that the model spent on reasoning."""
    estimated: bool
    """Whether Rota counted tokens itself because the provider did not report them."""
    cost_usd: str
    """US dollars with six decimals, as a string to keep it exact."""
    price_version: str | None
    """The price list that was used. Null except for a model call."""
    started_at: datetime
    """When the step started, or when it was planned if it has not started."""
    finished_at: datetime | None
    """When the step ended. Null before that."""
    duration_ms: int | None
    """How long the step took, in milliseconds. Null before it ended."""
    decided_by: Actor | None
    """Who decided. Null except for a decided approval."""
    note: str | None
    """What the model was told after its answer: why the answer cannot be used, or why a person
    rejected it. Null otherwise.
    """
    copied: bool
    """Whether the step was copied from the task that this one was forked from. It was made and
    charged there, so it has no cost here.
    """
    truncated: list[StepCut]
    """What is cut, because the page would be larger than 1 MiB: the value is the beginning of its
    text. A page of one step (`limit=1`) is always whole.
    """


class Agent(Model):
    """An agent of the catalog, as the selected account sees it."""

    name: str
    """The unique name. Use it as `agent` when you create a task."""
    display_name: str
    """The display name."""
    initials: str
    """Two letters that stand for the agent where its name does not fit."""
    description: str
    """What the agent does."""
    department: str
    """The name of the department."""
    tier: int
    """The rank of the agent: 1 Director, 2 Lead, 3 Specialist."""
    tags: list[str]
    """What the agent can do."""
    premium: bool
    """Whether it is a premium agent."""
    required_tier: Tier
    """The lowest account tier that can use the agent."""
    locked: bool
    """True if the tier of the selected account is too low for the agent."""
    tools: list[str]
    """The tools that it can use, as patterns `server/tool`."""
    approval: ApprovalPolicy
    """What a person must approve."""
    budget_cents: int
    """The most that one run can cost, in US cents. It is held before the start."""
    model: str | None = None
    """The model that the agent uses. Absent if your tier does not include this field."""


class Version(Model):
    """A version of an agent. Versions never change."""

    version: int
    """The number of the version, from 1."""
    created_at: datetime
    """When it was added."""
    current: bool
    """Whether new tasks use it."""
    instructions: str | None
    """What the agent is told to do. Null if it is locked."""
    tools: list[str]
    """The tools that it can use, as patterns `server/tool`."""
    approval: ApprovalPolicy
    """What a person must approve."""
    budget_cents: int
    """The most that one run can cost, in US cents. It is held before the start."""
    max_steps: int
    """The maximum number of model calls in one run."""
    max_concurrent: int | None
    """How many of the agent's tasks can run at the same time in your account. Null: no limit."""
    output_schema: dict[str, Any] | None
    """The JSON Schema of the agent's output. Null if the output is text, or if the agent is locked."""
    model: str | None = None
    """The model that the agent uses. Absent if your tier does not include this field."""


class StatisticsResponse(Model):
    """The statistics of an agent."""

    statistics: AgentStatistics
    """The statistics."""


class ApproveTask(Body):
    """What to approve. An empty object approves everything that waits."""

    review: ReviewRef | None = None
    """The review that you decide about: its `number` and `digest`. If a different review is pending
    by then, the response is 409 with that review, and nothing is decided. Default: the review
    that waits, except when you repeat a decision within 10 seconds.
    """
    decisions: list[Decision] | None = None
    """The items to approve, at most 100. Default: every pending item."""


class RejectTask(Body):
    """Why a task is rejected, and whether it continues."""

    review: ReviewRef | None = None
    """The review that you decide about: its `number` and `digest`. If a different review is pending
    by then, the response is 409 with that review, and nothing is decided. Default: the review
    that waits, except when you repeat a decision within 10 seconds.
    """
    reason: str | None = None
    """The reason. With `resume`, the agent reads it. At most 2,000 characters."""
    resume: bool = False
    """True: the task continues, and its agent reads the reason. False: the task is cancelled."""


class AuditResponse(Model):
    """A page of the audit trail."""

    entries: list[AuditEntry]
    """The entries on this page, newest first."""
    total: int
    """The number of items on all pages, not only this one."""
    head: AuditHead
    """The newest entry of the whole trail, signed."""


class AuditKeysResponse(Model):
    """The keys that sign heads and receipts, including former keys."""

    keys: list[AuditKey]
    """The key that signs now is the first."""


class AuthConfigResponse(Model):
    """How to sign in."""

    variant: Variant
    """The variant of this deployment."""
    issuers: list[Issuer]
    """The identity providers that are accepted."""


class BalanceResponse(Model):
    """The credits of an account."""

    top_up_cents: int
    """Cents in the top-up balance, excluding the allowance."""
    total_available: int
    """Cents available: allowance plus top-up, minus holds."""
    total_loaded_cents: int
    """Cents paid in since the account was created, minus refunds and disputes. Allowances and
    grants are not included.
    """
    total_spent_cents: int
    """Cents spent since the account was created."""
    has_allowance: bool
    """Whether the account has a monthly allowance."""
    allow_overflow: bool
    """Whether runs use the top-up balance when the monthly allowance is used up."""
    usage_bar: UsageBar
    """How much of this month's allowance is used."""
    balance: BalanceAmounts
    """The same balance in dollars and cents."""
    owed_cents: int = 0
    """Cents that the account owes: for calls that ended after their hold, and for refunds and
    disputes of spent money. Absent when it owes nothing.
    """


class CreateTasks(Body):
    """Tasks to create with one request."""

    tasks: list[BatchTask]
    """The tasks, 1 to 1,000. The whole body has at most 2 MiB."""


class ConnectServer(Body):
    """A tool server to connect."""

    name: str
    """A short name, unique in the account. Agents call its tools as `name/tool`. Lowercase letters,
    digits and inner hyphens, at most 32 characters.
    """
    url: str
    """The URL of the MCP endpoint. The service connects to it before it saves anything, so replace
    the example with a server that exists. In production, it must use https. Private addresses
    are refused unless the operator allows them.
    """
    transport: Transport = "streamable-http"
    """The protocol of the server."""
    headers: dict[str, str] | None = None
    """Headers to send with every request, at most 20. Values are stored encrypted and never
    returned.
    """
    auth: Bearer | None = None
    """The credentials for the server. Default: none."""
    allowed_tools: list[str] | None = None
    """The tools that can be used, at most 500 names. Default: all."""


class UpdateServer(Body):
    """Changes to a tool server. Absent fields change nothing."""

    name: str | None = None
    """A new name. Null changes nothing."""
    url: str | None = None
    """A new URL. Stored credentials are not sent to a new URL, so send `auth` and `headers` again
    if the server has them. Null changes nothing.
    """
    transport: Transport | None = None
    """Null changes nothing."""
    headers: dict[str, str] | None = None
    """Replaces all headers except `Authorization`, which belongs to `auth`. Null removes them."""
    auth: Bearer | None = None
    """Replaces the credentials. Null removes them."""
    allowed_tools: list[str] | None = None
    """The tools that can be used, at most 500 names. Null means all."""


class BillingResponse(Model):
    """The connect pass after the change."""

    billing: PassBilling
    """The paid pass."""


class Transaction(Model):
    """A movement of money. Transactions never change."""

    id: str
    """The ID of the transaction, `txn_…`."""
    kind: TransactionKind
    """What kind of movement it is."""
    created_at: datetime
    """When it happened."""
    amount_micros: int
    """The amount in micro-dollars (one cent is 10,000). Negative when money was held, spent,
    expired, refunded or disputed.
    """
    amount_cents: int
    """The same amount in cents, rounded down."""
    changes: Changes
    """How it changed each part of the balance."""
    available_after_micros: int
    """What was available right after it, in micro-dollars: allowance plus top-up, minus holds."""
    available_after_cents: int
    """The same in cents, rounded down."""
    task_id: str | None
    """The task. Null unless a run held or spent the money."""
    task_name: str | None
    """The name of the task. Null without a task, or if the API key lacks the scope `tasks:read`."""
    agent: str | None
    """The agent of the task. Null if `taskName` is null."""
    run: int | None
    """The run of the task. Null without a task."""
    step: int | None
    """The step of the run. Null except for a charge."""
    model: str | None
    """The model that was called. Null except for a charge."""
    price_version: str | None
    """The price list that was used. Null except for a charge."""
    estimated: bool
    """Whether Rota counted the tokens of a charge, because the provider did not report them."""
    reference: str | None
    """The payment processor's ID. Null except for payments, refunds and disputes."""
    description: str
    """What happened, as readable text."""


class ChecksResponse(Model):
    """A page of checks."""

    checks: list[PastCheck]
    """The checks on this page, newest first."""
    total: int
    """The number of items on all pages, not only this one."""


class CreateRule(Body):
    """A rule to make."""

    expires_at: AwareDatetime
    """When the rule ends. A time in the future."""
    max_uses: int
    """How many calls the rule approves, at most 1,000,000."""
    from_review: ReviewedCall | None = None
    """The call that the rule is made from, instead of `serverId`, `tool` and `agent`. Without
    `arguments`, the rule covers calls with exactly the arguments of this one.
    """
    server_id: str | None = None
    """The ID of the tool server. Required without `fromReview`."""
    tool: str | None = None
    """The name of the tool. Required without `fromReview`."""
    agent: str | None = None
    """The name of the agent. Required without `fromReview`."""
    arguments: dict[str, Condition] | None = None
    """A condition for each argument. An argument that is not named must be absent. Required without
    `fromReview`.
    """


class CreateSchedule(Body):
    """A schedule to create."""

    name: str
    """A display name, 1 to 255 characters."""
    cron: str
    """When to create a task: minute, hour, day of month, month and day of week, as in cron."""
    time_zone: str
    """The time zone of `cron`, a name of the IANA database."""
    task: TaskBody
    """The task to create each time. The fields are those of `POST /api/tasks`, except `deadline`
    and `dryRun`.
    """
    overlap: Overlap = "skip"
    """What to do if an earlier task has not ended when the next time comes."""
    paused: bool = False
    """A paused schedule creates no tasks."""
    truncated: list[CutText] | None = None
    """As in the schedule that you read. A task that is incomplete cannot be sent back."""


class PatchSchedule(Body):
    """Changes to a schedule. Absent fields change nothing."""

    name: str | None = None
    """A display name, 1 to 255 characters."""
    cron: str | None = None
    """When to create a task: minute, hour, day of month, month and day of week, as in cron."""
    time_zone: str | None = None
    """The time zone of `cron`, a name of the IANA database."""
    task: TaskBody | None = None
    """The task to create each time. The fields are those of `POST /api/tasks`, except `deadline`
    and `dryRun`.
    """
    overlap: Overlap | None = None
    """What to do if an earlier task has not ended when the next time comes."""
    paused: bool | None = None
    """A paused schedule creates no tasks."""
    truncated: list[CutText] | None = None
    """As in the schedule that you read. A task that is incomplete cannot be sent back."""


class SettingsResponse(Model):
    """The credit settings of an account."""

    settings: CreditSettings
    """The settings."""


class Tool(Model):
    """A tool of a tool server."""

    name: str
    """The name of the tool."""
    title: str | None
    """The display title. Null if the server provides none."""
    description: str | None
    """What the tool does. Null if the server provides none."""
    input_schema: dict[str, Any]
    """The JSON Schema of the arguments."""
    output_schema: dict[str, Any] | None
    """The JSON Schema of the structured result. Null if the server provides none."""
    annotations: dict[str, Any] | None
    """Hints from the server, such as `readOnlyHint`. Null if it provides none."""
    hash: str
    """Identifies this definition. Send it to accept the tool."""
    allowed: bool
    """Whether `allowedTools` of the server permits it."""
    accepted: bool
    """Whether a person accepted this definition. Only accepted tools are used."""
    changed: bool
    """Whether the definition differs from the one that was accepted."""
    difference: list[DefinitionChange]
    """What differs from the accepted definition; everything for a new tool."""
    accepted_by: Actor | None
    """Who accepted the accepted definition. Null if the tool was never accepted, or before
    acceptances were recorded.
    """
    accepted_at: datetime | None
    """When the accepted definition was accepted."""


class Delivery(Model):
    """One attempt to deliver one event."""

    id: str
    """The ID of the attempt, `dlv_…`."""
    event_id: str
    """The event. Also sent in the webhook-id header."""
    sequence: int
    """The number of the event. 0: a test."""
    type: str
    """The type of the event."""
    attempt: int
    """Which attempt it was, starting at 1."""
    delivered: bool
    """Whether the endpoint confirmed the event."""
    error: str | None
    """Why the attempt failed, and what to do."""
    sent_at: datetime
    """When it was sent."""
    duration_ms: int
    """How long it took, in milliseconds."""
    request: DeliveryRequest
    """The request to the endpoint."""
    response: DeliveryResponse | None
    """The response of the endpoint. Null: none arrived."""


class DepartmentsResponse(Model):
    """All departments."""

    departments: list[Department]
    """The departments, by name."""
    total: int
    """The number of items on all pages, not only this one."""


class ErasureResponse(Model):
    """The erasure that has begun."""

    erasure: Erasure
    """The erasure."""


class EventsResponse(Model):
    """A page of stored events."""

    events: list[Event]
    """The events on this page, oldest first."""
    total: int
    """The number of items on all pages, not only this one."""
    last_sequence: int
    """The number of the account's newest event, whether or not you see it. If the page has all
    matching events, continue with it as `after`.
    """


class ForecastResponse(Model):
    """A forecast."""

    forecast: Forecast
    """The forecast."""


class ForkOptionsResponse(Model):
    """How a task can be forked."""

    fork: ForkOptions
    """How the task can be forked."""


class ReviewedWork(Model):
    """What a person approves at a run gate: the work, and who does it with what."""

    name: str
    """The name of the task."""
    description: str | None
    """The description of the task. Null if it has none."""
    input: str
    """What the agent works on."""
    agent: str
    """The name of the agent."""
    version: int
    """The version of the agent that will run."""
    model: str
    """The model that the agent uses."""
    budget_cents: int
    """The most that the run can cost, in cents."""
    output_schema: dict[str, Any] | None = None
    """The JSON Schema of the output. Null if the output is text."""
    forked_from: ForkOrigin | None = None
    """The task, run and step that a fork continues from. Null otherwise."""


class HoldsResponse(Model):
    """A page of holds."""

    holds: list[Hold]
    """The holds on this page, the largest first."""
    total: int
    """The number of items on all pages, not only this one."""
    held_usd: str
    """US dollars that all holds have on hold."""


class InvitationsResponse(Model):
    """A page of open invitations."""

    invitations: list[Invitation]
    """The invitations, newest first."""
    total: int
    """The number of items on all pages, not only this one."""


class InvitedResponse(Model):
    """An invitation and its link."""

    invitation: Invitation
    """The invitation."""
    url: str | None
    """The link to send to the person. It is shown only once: a repeated request with the same
    Idempotency-Key gets null.
    """


class InvokedResponse(Model):
    """The result of a tool call."""

    result: ToolResult
    """What the tool returned."""
    latency_ms: int | float
    """How long the call took, in milliseconds."""


class MeResponse(Model):
    """The caller."""

    user: User
    """The user behind the credential."""
    account: Account
    """The selected account."""
    accounts: list[Account]
    """Every account that the user belongs to. For an API key, only its account."""
    effective_tier: Tier
    """The tier of the selected account."""
    user_tier: Tier
    """The tier of the user's personal account."""
    variant: Variant
    """The variant of this deployment."""


class MemberResponse(Model):
    """A member."""

    member: Member
    """The member."""


class MembersResponse(Model):
    """A page of members."""

    members: list[Member]
    """The members, in the order in which they joined."""
    total: int
    """The number of items on all pages, not only this one."""


class NotificationsResponse(Model):
    """What you are notified about in the selected account, and the state of your messages."""

    content: MessageContent
    """What messages contain."""
    mail: MailNotifications
    """Messages by email."""
    chat: ChatNotifications
    """Messages in a chat."""
    digest_minutes: int
    """After a message, what happens within this many minutes waits for one message about all of it."""
    deliveries: list[NotificationDelivery]
    """The delivery status of your messages."""


class PassBillingResponse(Model):
    """The connect pass and the trial of a personal account."""

    billing: PassBilling | None
    """The paid pass. Null if the account never bought one."""
    trial: Trial | None
    """The trial. Null if the account had none."""


class PatchTask(Body):
    """Changes to a task. Absent fields change nothing. Null clears `description`, `output`,
    `projectId`, `parentTaskId` and `deadline`; for other fields it changes nothing.
    """

    name: str | None = None
    """A display name, 1 to 1,000 characters."""
    description: str | None = None
    """What the task is about, for people and for the agent. At most 50,000 characters."""
    priority: int | float | None = None
    """From 0 (lowest) to 10 (highest)."""
    project_id: str | None = None
    """Your own label for grouping tasks."""
    parent_task_id: str | None = None
    """The ID of the new parent. Only while the task is `PENDING` and the service does not run it;
    otherwise 409. The rules for a new subtask apply.
    """
    error: ReportedError | None = None
    """Why the task failed. Only for a task that the service does not run, and only if the task is
    or becomes `FAILED`.
    """
    status: TaskStatus | None = None
    """The new state. A task that the service runs can only become `CANCELLED`. A transition that is
    not allowed returns 409.
    """
    output: str | None = None
    """Replaces the output. At most 50,000 characters. Only for a task that the service does not
    run.
    """
    logs: str | None = None
    """Text to append to the output. Output and logs together have at most 50,000 characters. Only
    for a task that the service does not run.
    """
    actions: list[str] | None = None
    """Entries to append to the action log. A task keeps at most 1,000 entries and 256 KiB."""
    deadline: AwareDatetime | None = None
    """The new deadline, a time in the future. Only for a task that the service runs and that is not
    `COMPLETED` or `CANCELLED`; otherwise 409.
    """
    truncated: list[CutText] | None = None
    """As in the task that you read. A text that it names cannot be sent back."""


class PingResponse(Model):
    """The result of a check."""

    ok: bool
    """Whether the server responds."""
    status: ServerStatus
    """The status after the check."""
    latency_ms: int | float
    """How long the check took, in milliseconds."""
    server: ToolServer
    """The server after the check."""


class ServerResponse(Model):
    """A tool server."""

    server: ToolServer
    """The server."""


class ServersResponse(Model):
    """All tool servers of the account."""

    servers: list[ToolServer]
    """The servers, oldest first."""
    total: int
    """The number of items on all pages, not only this one."""


class PlansResponse(Model):
    """What this deployment sells."""

    plans: list[PlanOffer]
    """The tiers, from the lowest to the highest."""
    connect_pass: PassOffer | None
    """The connect pass. Null if this deployment does not sell it."""
    takes_payments: bool
    """Whether the balance can be topped up and plans can be bought. If not, the operator grants
    credit and sets tiers.
    """


class PutNotifications(Body):
    """Everything in the selected account that you want to be notified about."""

    content: MessageContent
    """What messages contain."""
    mail: PutMail
    """Messages by email."""
    chat: PutChat
    """Messages in a chat."""


class PutPolicies(Body):
    """All policies of the account."""

    approvals: PutApprovals
    """The policy for approvals."""
    retention: PutRetention | None = None
    """How long data is kept. Without it, or with null, this stays as it is."""


class Quote(Model):
    """What a task can cost, which tools it can use and which approvals it needs."""

    agent: QuotedAgent
    """The agent."""
    budget_cents: int
    """The budget of the run, in US cents. It is held."""
    maximum_cost_usd: str
    """The most that the run can cost. For a task without a parent, this includes the subtasks that
    it delegates. A retry is another run.
    """
    typical_cost: TypicalCost | None
    """What is typical. Null if the agent has not completed a task of this account."""
    max_steps: int
    """The maximum number of model calls in the run."""
    deadline: datetime | None
    """The deadline that you sent. Null if none."""
    opens_gates: list[Gate]
    """The gates that the run opens, apart from questions of the agent: `run` for certain, `tool` if
    it makes a call that needs approval, `output` if it gets that far.
    """
    tools: list[QuotedTool]
    """The tools of connected servers that the agent can use now, at most 200."""
    tool_count: int
    """How many tools it can use now."""
    missing_tools: list[str]
    """Patterns of the agent that no connected tool matches."""
    balance: QuotedBalance
    """Who would pay, and whether that is enough."""


class ReceivedInvitationResponse(Model):
    """An invitation that you have received."""

    invitation: ReceivedInvitation
    """The invitation."""


class RetryQuote(Model):
    """Whether a task can be retried, and how."""

    available: bool
    """Whether the task can be retried now."""
    reason: str | None
    """Why it cannot be retried. Null if it can."""
    options: list[RetryOption]
    """The ways to retry. Empty if there is none, and for a task that its client runs."""


class RuleResponse(Model):
    """One rule."""

    rule: Rule
    """The rule."""


class RulesResponse(Model):
    """A page of rules."""

    rules: list[Rule]
    """The rules on this page, newest first."""
    total: int
    """The number of items on all pages, not only this one."""


class Schedule(Model):
    """A task that is created again and again, at the times of a cron expression."""

    id: str
    """The ID of the schedule, `sched_…`."""
    name: str
    """The display name."""
    cron: str
    """Minute, hour, day of month, month and day of week, as in cron."""
    time_zone: str
    """The time zone of `cron`."""
    task: ScheduledTask
    """The task that is created each time."""
    overlap: Overlap
    """What happens at a time at which an earlier task has not ended."""
    paused: bool
    """A paused schedule creates no tasks."""
    next_at: datetime | None
    """When the next task is created. A time in the past waits until an earlier task ends. Null
    while the schedule is paused.
    """
    last_due_at: datetime | None
    """The last time that the schedule handled."""
    last_outcome: ScheduleOutcome | None
    """The outcome of the last scheduled time."""
    last_error: ScheduleError | None
    """Why the last task could not be created. Null after a task was created."""
    created_at: datetime
    """When the schedule was created."""
    updated_at: datetime
    """When it was last changed."""
    truncated: list[CutText]
    """The fields of `task` that are incomplete. Empty except in a list whose page would be larger
    than 1 MiB. `GET /api/schedules/{id}` returns the whole task.
    """


class SessionsResponse(Model):
    """The sessions of the user."""

    sessions: list[Session]
    """The sessions, the one used last first."""
    total: int
    """The number of items on all pages, not only this one."""


class Webhook(Model):
    """An endpoint that receives the events of the account."""

    id: str
    """The ID of the webhook, `wh_…`."""
    url: str
    """Where events are sent. An API key without `webhooks:write` gets only its origin, such as
    `https://example.com/…`: the rest is often a secret.
    """
    description: str | None
    """What it is for."""
    events: list[str] | None
    """The types of events that it receives. Null: all."""
    families: list[str] | None
    """It sends only types that begin with one of these: what the API key that set `events` can
    read. Null: a session set them, so there is no such limit.
    """
    enabled: bool
    """Whether events are sent."""
    state: WebhookState
    """Whether deliveries succeed."""
    disabled_reason: WebhookDisabledReason | None
    """Why it is disabled. Null if it is enabled."""
    disabled_at: datetime | None
    """When it was disabled. Null if it is enabled."""
    confirmed_sequence: int
    """Every event up to this number has been confirmed by the endpoint, or is not for it."""
    skipped: SkippedEvents | None
    """The events that retention deleted before they could be delivered. Null: none since the last
    replay.
    """
    failing_since: datetime | None
    """When deliveries began to fail. Null if they succeed."""
    next_attempt_at: datetime | None
    """When a failed delivery is tried again."""
    last_error: str | None
    """Why the last delivery failed."""
    last_delivered_at: datetime | None
    """When an event was last confirmed."""
    old_secret_until: datetime | None
    """Until when secrets from before the last rotation also sign. The latest time, if there are
    several.
    """
    created_at: datetime
    """When the webhook was created."""
    updated_at: datetime
    """When it was last changed."""


class SubscribeResponse(Model):
    """A checkout to pay at, or the subscription if nothing is to be paid now."""

    checkout_url: str | None = None
    """The page of the payment processor. Send the user there. Nothing changes before the payment is
    complete.
    """
    plan: Tier | None = None
    """The plan to pay for."""
    seats: int | None = None
    """The number of seats to pay for. Null if the plan has no seats."""
    subscription: Subscription | None = None
    """The subscription. `downgradeTarget` is the next plan."""


class SubscriptionResponse(Model):
    """The subscription after the change."""

    subscription: Subscription
    """The subscription."""


class SubscriptionsResponse(Model):
    """The subscription and tier of the selected account."""

    subscription: Subscription | None
    """The subscription. Null if the account never had one, and in variants that do not sell plans."""
    effective_tier: Tier
    """The tier of the selected account."""
    user_tier: Tier
    """The tier of the user's personal account."""


class Task(Model):
    """A unit of work."""

    id: str
    """The ID of the task, `task_…`."""
    name: str
    """The display name."""
    assigned_agent: str | None
    """The name of the agent. Null for a task without one."""
    status: TaskStatus
    """The current state."""
    input: str
    """What the agent works on. Empty if none was given."""
    output: str | None
    """The result. With `outputSchema`, it is JSON. Null until there is one."""
    output_data: dict[str, Any] | None
    """The result as an object that matches `outputSchema`. Null without a schema, until there is a
    result, and in a list that has cut `output` or `outputSchema`.
    """
    output_schema: dict[str, Any] | None
    """The JSON Schema of the result: the one that the task was created with, or else the one of its
    agent. Null if the result is text.
    """
    created_at: datetime
    """When the task was created."""
    updated_at: datetime
    """When it last changed."""
    description: str | None
    """What the task is about. Null if none was given."""
    priority: int | float
    """From 0 (lowest) to 10 (highest)."""
    project_id: str | None
    """Your own label for grouping tasks. Null if none was given."""
    parent_task_id: str | None
    """The ID of the parent. Null unless this is a subtask."""
    budget_cents: int | None
    """What you allow for one run, in US cents. Null: the budget of the agent. `usage.budgetUsd` is
    what applies.
    """
    deadline: datetime | None
    """The time at which the task fails if it has not ended. Null if it has no deadline."""
    agent_version: int | None
    """The version of the agent that the current run uses. Null without an agent."""
    model: str | None
    """The name of the model that a fork uses instead of its agent's. Null otherwise."""
    forked_from: ForkOrigin | None
    """The task, run and step that a fork continues from. Null otherwise."""
    queue_position: int | None
    """The task's position in the queue of its agent, 1 for the next, at most 1000. Null if the task
    is not queued.
    """
    metadata: TaskMetadata
    """Additional data."""
    error: TaskError | None
    """Why the task failed. Null unless it did."""
    usage: TaskUsage
    """What the task has used so far."""
    started_at: datetime | None
    """When the current run started. Null before that."""
    finished_at: datetime | None
    """When the task ended. Null before that."""
    truncated: list[CutText]
    """The texts that are incomplete. Empty except in a list whose page would be larger than 1 MiB.
    `GET /api/tasks/{id}` returns the whole task.
    """


class UsageResponse(Model):
    """Usage of a span of days."""

    usage: list[Usage]
    """One entry for each group. Days in order; others most expensive first."""
    from_: date
    """The first day, in UTC."""
    to: date
    """The last day, in UTC."""
    group_by: GroupBy
    """What the entries are grouped by."""
    totals: UsageTotals
    """The sum of all entries."""


class WebhookKeysResponse(Model):
    """The keys of the service that sign webhooks."""

    keys: list[WebhookKey]
    """The newest first. Each of them signs."""


class CompanyResponse(Model):
    """A company."""

    account: Company
    """The company."""


class KeyCreatedResponse(Model):
    """A new API key and its secret."""

    key: ApiKey
    """The key."""
    secret: str | None
    """The secret to send as `Authorization: Bearer`. It is shown only once: a repeated request with
    the same Idempotency-Key gets null.
    """


class KeysResponse(Model):
    """All API keys of the account."""

    keys: list[ApiKey]
    """The keys, newest first."""
    total: int
    """The number of items on all pages, not only this one."""


class PastReview(Model):
    """A review that has ended."""

    number: int
    """The number of the review, from 1 for each task."""
    digest: str
    """The SHA-256 of everything that the decision is about, in hexadecimal."""
    state: ReviewState
    """How the review ended."""
    gate: Gate | None
    """Where the task waited. Null for a task that the service does not run."""
    requested_at: datetime
    """When the task began to wait."""
    expires_at: datetime
    """When the task is cancelled if no decision is made."""
    decided_by: Actor | None
    """Who decided. Null if no person has, for example when the review expired."""
    decided_at: datetime | None
    """When the review ended."""
    reason: str | None
    """The reason for a rejection. Null if none was given."""
    items: list[ReviewItem]
    """What was decided. Empty at a run gate. If the items of the history are larger than 1 MiB
    together, those of older reviews are left out.
    """


class TimelineResponse(Model):
    """A page of the timeline."""

    steps: list[TimelineStep]
    """The steps on this page, oldest first."""
    total: int
    """The number of items on all pages, not only this one."""


class AgentDetails(Agent):
    """An agent of the catalog, with what it can use and spend."""

    version: int
    """The current version. New tasks use it."""
    instructions: str | None
    """What the agent is told to do. Null if it is locked."""
    max_steps: int
    """The maximum number of model calls in one run."""
    max_concurrent: int | None
    """How many of the agent's tasks can run at the same time in your account. Null: no limit."""
    aliases: list[str]
    """Other names that find the agent."""
    use_for: list[str]
    """The work that the agent is for."""
    output_schema: dict[str, Any] | None
    """The JSON Schema of the agent's output. Null if the output is text, or if the agent is locked."""


class AgentsResponse(Model):
    """A page of agents."""

    agents: list[Agent]
    """The agents on this page."""
    departments: list[str]
    """The names of all departments, sorted."""
    total: int
    """The number of items on all pages, not only this one."""
    page: int
    """The page number, from 1."""
    limit: int
    """The maximum number of agents on a page."""


class Candidate(Model):
    """An agent that fits a description of work."""

    agent: Agent
    """The agent, as lists show it."""
    score: int | float
    """How well the agent fits the description of work, from 0 to 1."""


class CatalogSection(Model):
    """The agents of one department."""

    department: str
    """The name of the department."""
    agents: list[Agent]
    """The agents of the department, by rank and name."""


class VersionsResponse(Model):
    """A page of versions."""

    versions: list[Version]
    """The versions on this page, newest first."""
    total: int
    """The number of items on all pages, not only this one."""


class TransactionsResponse(Model):
    """A page of transactions."""

    transactions: list[Transaction]
    """The transactions on this page, newest first."""
    total: int
    """The number of items on all pages, not only this one."""


class ServerToolsResponse(Model):
    """A tool server and its tools."""

    server: ToolServer
    """The server."""
    tools: list[Tool]
    """Its tools."""


class ToolsResponse(Model):
    """All tools of a tool server."""

    tools: list[Tool]
    """The tools, in the order of the server."""
    total: int
    """The number of items on all pages, not only this one."""


class DeliveredResponse(Model):
    """One attempt."""

    delivery: Delivery
    """The attempt. `delivered` says whether it succeeded."""


class DeliveriesResponse(Model):
    """A page of deliveries."""

    deliveries: list[Delivery]
    """The attempts on this page, newest first."""
    total: int
    """The number of items on all pages, not only this one."""


class QuoteResponse(Model):
    """A quote."""

    quote: Quote
    """The quote."""


class RetryQuoteResponse(Model):
    """What a retry would do."""

    retry: RetryQuote
    """What a retry would do."""


class ScheduleResponse(Model):
    """One schedule."""

    schedule: Schedule
    """The schedule."""


class SchedulesResponse(Model):
    """A page of schedules."""

    schedules: list[Schedule]
    """The schedules on this page, newest first."""
    total: int
    """The number of items on all pages, not only this one."""
    truncated: bool
    """Whether texts of tasks were cut after 2,000 characters, and their actions and schemas left
    out, because the page would be larger than 1 MiB. `truncated` of each schedule says what is
    missing.
    """


class WebhookResponse(Model):
    """One webhook."""

    webhook: Webhook
    """The webhook."""


class WebhookSecretResponse(Model):
    """A webhook and its new secret."""

    webhook: Webhook
    """The webhook."""
    secret: str | None
    """The secret that signs deliveries. It is shown only once: a repeated request with the same
    Idempotency-Key gets null.
    """


class WebhooksResponse(Model):
    """The webhooks of an account."""

    webhooks: list[Webhook]
    """All webhooks, newest first."""
    total: int
    """The number of items on all pages, not only this one."""


class ScheduleDetailsResponse(Model):
    """One schedule, with its next times and its last tasks."""

    schedule: Schedule
    """The schedule."""
    next_times: list[datetime]
    """The next five times. Empty while the schedule is paused."""
    last_tasks: list[Task]
    """The last ten tasks of the schedule, newest first."""


class TaskResponse(Model):
    """One task."""

    task: Task
    """The task."""


class TaskResult(Model):
    """The outcome of one task of a batch."""

    task: Task | None = None
    """The task."""
    error: ErrorBody | None = None
    """What went wrong."""


class TasksResponse(Model):
    """A page of tasks."""

    tasks: list[Task]
    """The tasks on this page, newest first."""
    total: int
    """The number of items on all pages, not only this one."""


class Review(Model):
    """What waits for a person, and what was decided before."""

    task_id: str
    """The ID of the task, `task_…`."""
    number: int | None
    """The number of the newest review, from 1. Null without a review."""
    digest: str | None
    """The SHA-256 of everything that the decision is about, in hexadecimal. Send it back with
    `number` when you decide. Null without a review.
    """
    state: ReviewState
    """The state of the newest review."""
    gate: Gate | None
    """Where the task waits. Null without a review and for a task that the service does not run."""
    requested_at: datetime | None
    """When the task began to wait. Null without a review."""
    expires_at: datetime | None
    """When the task is cancelled if no decision is made, or the deadline of the task if that is
    earlier. Null without a review.
    """
    work: ReviewedWork | None
    """What will run. Null except at a run gate."""
    summary: str | None
    """What is decided, in one sentence that no model writes. Null without a review."""
    items: list[ReviewItem]
    """What a person decides. Empty at a run gate and without a review."""
    second_person: bool
    """Whether a second person must approve: users cannot approve what they shaped. False if nothing
    waits.
    """
    shaped: list[Shaping]
    """How you shaped it, if a second person has to approve. If it is not empty, you cannot approve
    everything that waits.
    """
    history: list[PastReview]
    """Those of the newest 100 reviews of this task that have ended, newest first."""


class AgentResponse(Model):
    """One agent."""

    agent: AgentDetails
    """The agent."""


class ResolvedResponse(Model):
    """The best match."""

    agent: Agent
    """The agent."""
    score: int | float | None = None
    """How well the agent fits the description of work, from 0 to 1. Absent if you searched by name."""
    candidates: list[Candidate] | None = None
    """Up to five agents that fit the description of work, including `agent`. Agents that your
    account can use come first, then the best match. Absent if you searched by name.
    """


class CatalogResponse(Model):
    """The whole catalog."""

    catalog: list[CatalogSection]
    """The departments and their agents."""
    total: int
    """The number of agents in all departments."""


class CreateTasksResponse(Model):
    """What became of each task of a batch."""

    results: list[TaskResult]
    """One result for each task of the request, in the same order: the `task`, or the `error` that
    `POST /api/tasks` would return for it.
    """


class Approval(Model):
    """A task that waits for a person."""

    task: Task
    """The task that waits."""
    review: Review
    """What to decide."""
    snoozed_until: datetime | None
    """When the review returns to your inbox. Null if you have not snoozed it, or if that time has
    passed.
    """
    truncated: bool
    """Whether texts, arguments or items are left out, because the page would be larger than 1 MiB.
    Read the task and its review before you decide.
    """


class DecisionResponse(Model):
    """A task after a decision, and its review."""

    task: Task
    """The task after the decision."""
    review: Review
    """The review after the decision."""


class ReviewResponse(Model):
    """The review of a task."""

    review: Review
    """The review."""


class ApprovalsResponse(Model):
    """A page of tasks that wait for a person."""

    approvals: list[Approval]
    """The tasks on this page, longest wait first."""
    total: int
    """The number of items on all pages, not only this one."""
