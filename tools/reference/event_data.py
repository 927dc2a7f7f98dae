"""What `data` of each type of event contains.

Types are strings in the code, and their data is built where things happen. So the fields are
listed here. Tests compare the types with those of the API, and the fields with events of a running
service.
"""

from dataclasses import dataclass

# What `?` at the end of a field says: the field is not always there.
OPTIONAL = "?"


@dataclass(frozen=True)
class Data:
    when: str
    fields: dict[str, str]


BY = "The ID of the user who did it. Null: Rota itself or the operator."
TASK = {
    "status": "The status of the task after it.",
    "previousStatus": "The status before it. Null for a new task.",
    "by": BY,
    "reason?": "Why, if a reason was given.",
}
STEP = {
    "run": "The number of the run, from 1.",
    "step": "The number of the step in its run, from 1.",
    "call": "0 for the model call of the step, and from 1 for its tool calls.",
    "kind": "`model` or `tool`.",
    "tool": "The name of the tool. Null for a model call.",
    "server": "The name of the tool server. Null for a model call and for tools of Rota itself.",
}
SCHEDULE = {"scheduleId": "The ID of the schedule, `sched_…`.", "by": BY}
SERVER = {
    "serverId": "The ID of the tool server, `mcp_…`.",
    "name": "The name of the tool server.",
}
WEBHOOK = {"webhookId": "The ID of the webhook, `wh_…`.", "by": BY}
KEY = {"keyId": "The ID of the API key, `key_…`.", "by": BY}
SESSION = {"sessionId": "The ID of the session, `sess_…`.", "by": BY}
INVITATION = {"invitationId": "The ID of the invitation, `inv_…`.", "by": BY}
RULE = {"ruleId": "The ID of the standing rule, `rule_…`.", "by": BY}
MEMBER = {"userId": "The ID of the member, `user_…`.", "by": BY}
RIGHTS = {"role": "The role of the member.", "approver": "Whether the member can approve."}

DATA = {
    "task.created": Data("A task was created.", TASK),
    "task.started": Data("The run of a task started or continues.", TASK),
    "task.waiting_approval": Data("A task waits for a person.", TASK),
    "task.approved": Data("A person approved what waited.", TASK),
    "task.rejected": Data("A person rejected what waited.", TASK),
    "task.completed": Data("A task is done.", TASK),
    "task.failed": Data("A task failed.", TASK),
    "task.cancelled": Data("A task was cancelled.", TASK),
    "task.retried": Data("A failed task runs again.", TASK),
    "task.forked": Data(
        "A new task continues another one. It follows `task.created`.",
        TASK | {"forkedFrom": "`taskId`, `run` and `step` of the task that it continues."},
    ),
    "task.updated": Data(
        "Fields of a task were changed.", TASK | {"fields": "The names of the changed fields."}
    ),
    "step.started": Data("A model call or a tool call begins.", STEP),
    "step.finished": Data(
        "A model call or a tool call has ended.",
        STEP | {"outcome": "`ok`, `failed` or `rejected`."},
    ),
    "credits.topped_up": Data(
        "Money came in, or went back to the payer.",
        {
            "amountCents": "The amount. Negative for a refund or a dispute.",
            "reference": "The ID of the payment at the payment processor.",
        },
    ),
    "credits.granted": Data(
        "The operator gave the account money.", {"amountCents": "How much, in cents."}
    ),
    "credits.depleted": Data("All money is used. Sent once, until money comes in.", {}),
    "credits.low": Data(
        "The available money fell below the amount in the settings. Sent once, until it is above.",
        {
            "availableCents": "The money that is available.",
            "alertBelowCents": "The amount in the settings.",
        },
    ),
    "subscription.updated": Data(
        "A subscription changed.",
        {
            "product": "`plan` or `connect_pass`.",
            "…": "The fields of the subscription ([Plans](../plans.md)).",
        },
    ),
    "schedule.created": Data("A schedule was created.", SCHEDULE),
    "schedule.updated": Data("A schedule was changed.", SCHEDULE),
    "schedule.deleted": Data("A schedule was deleted.", SCHEDULE),
    "schedule.failed": Data(
        "A schedule could not create its task.",
        {"scheduleId": SCHEDULE["scheduleId"], "error": "`code` and `message`."},
    ),
    "mcp.connected": Data(
        "A tool server was connected, or responds again.",
        SERVER | {"status": "The result of the check.", "by?": BY},
    ),
    "mcp.disconnected": Data(
        "A tool server was removed, or does not respond.",
        SERVER
        | {"status?": "The result of the check.", "reason?": "Why the check failed.", "by?": BY},
    ),
    "mcp.changed": Data(
        "The settings or the tools of a tool server changed, or changes were accepted.",
        SERVER
        | {
            "status?": "The result of the check.",
            "tools?": "The names of the tools whose definitions changed.",
            "fields?": "The names of the changed settings.",
            "revision?": "The new revision of the connection.",
            "accepted?": "The names of the tools whose new definitions were accepted.",
            "by?": BY,
        },
    ),
    "key.created": Data("An API key was created.", KEY),
    "key.revoked": Data("An API key was revoked.", KEY),
    "company.created": Data("The company was created.", {"by": BY}),
    "company.updated": Data("The company was changed.", {"by": BY}),
    "company.seats_exceeded": Data(
        "The company has more members than its plan allows.",
        {"seats": "How many members the plan allows.", "members": "How many there are."},
    ),
    "member.added": Data(
        "A member was added.",
        MEMBER | RIGHTS | {"invitationId?": "The invitation that the member accepted."},
    ),
    "member.updated": Data("The role or the right of a member changed.", MEMBER | RIGHTS),
    "member.removed": Data("A member left or was removed.", MEMBER),
    "invitation.created": Data("Somebody was invited.", INVITATION),
    "invitation.deleted": Data("An invitation was deleted.", INVITATION),
    "policy.updated": Data(
        "The policies of the account were changed.",
        {
            "approvals": "The policy for approvals after it.",
            "retention": "How many days data is kept, after it.",
            "by": BY,
        },
    ),
    "rule.created": Data("A standing rule was created.", RULE),
    "rule.used": Data(
        "A standing rule approved a call.",
        {
            "ruleId": RULE["ruleId"],
            "call": "The item of the review that it approved.",
            "uses": "How often the rule was used so far.",
        },
    ),
    "rule.revoked": Data("A standing rule was deleted.", RULE),
    "webhook.created": Data("A webhook was created.", WEBHOOK),
    "webhook.updated": Data("The settings of a webhook were changed.", WEBHOOK),
    "webhook.enabled": Data("A webhook was enabled.", WEBHOOK),
    "webhook.disabled": Data(
        "A webhook was disabled.",
        WEBHOOK
        | {
            "reason": "`paused`, `failing`, `gone`, `member_removed`, `key_ended` or `restored`.",
            "error": "What the last attempt failed with. Null if none failed.",
        },
    ),
    "webhook.deleted": Data("A webhook was deleted.", WEBHOOK),
    "webhook.replayed": Data(
        "A webhook continues with another event.",
        WEBHOOK | {"fromSequence": "The number of the event that it continues with."},
    ),
    "webhook.secret_rotated": Data("A webhook has a new secret.", WEBHOOK),
    "webhook.skipped": Data(
        "Events were deleted before a webhook could deliver them.",
        WEBHOOK
        | {
            "fromSequence": "The number of the first event that is missing.",
            "toSequence": "The number of the last event that is missing.",
        },
    ),
    "account.restored": Data(
        "The operator has restored the database to an earlier point in time. Forget events with "
        "the lost numbers, and read again what they were about.",
        {
            "restoredTo": "The moment, as the operator named it.",
            "lostFrom": "The first number of an event that is lost.",
            "lostThrough": "The last number of an event that is lost.",
        },
    ),
    "session.created": Data("The user signed in.", SESSION),
    "session.revoked": Data("The user signed out, or ended a session.", SESSION),
}
