"""Public schemas of notifications."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from rota.notifications import model, smtp
from rota.platform.http import examples
from rota.platform.http.schemas import Body, Timestamp, Wire, doc, example_of, resource_of

_URL = "https://hooks.slack.com/services/T0000/B0000/abcdefghijklmnopqrstuvwx"
_SHOWN_URL = "https://hooks.slack.com/…uvwx"

NotificationKind = TypeAliasType(
    "NotificationKind",
    Annotated[
        model.Kind,
        doc(
            "What a message is about. `approval_waiting`: a task waits for an approval that you "
            "can give. `task_failed`: a task that you created has failed. `balance_low`: the "
            "balance fell below the amount of `alertBelowCents` or is used up; for those who can "
            "pay. `webhook_disabled`: a webhook was disabled; for those who can manage webhooks.",
            "approval_waiting",
        ),
    ],
)
NotificationChannel = TypeAliasType(
    "NotificationChannel",
    Annotated[model.Channel, doc("How a message reaches you: by email or in a chat.", "mail")],
)
MessageContent = TypeAliasType(
    "MessageContent",
    Annotated[
        model.Content,
        doc(
            "What messages contain. `full`: the agent, the task and what it wants to do. "
            "`minimal`: only that something waits, and a link.",
            "full",
        ),
    ],
)
ChatService = TypeAliasType(
    "ChatService",
    Annotated[model.ChatService, doc("The chat service that a webhook belongs to.", "slack")],
)
MailTransport = TypeAliasType(
    "MailTransport",
    Annotated[
        smtp.Transport,
        doc(
            "How this service sends email. `log`: it writes emails to its log, in development. "
            "`off`: it sends no email.",
            "smtp",
        ),
    ],
)
DeliveryState = TypeAliasType(
    "DeliveryState",
    Annotated[
        Literal["idle", "waiting", "retrying", "failed"],
        doc(
            "`waiting`: the next message is sent at `nextAt`. `retrying`: the last attempt "
            "failed. `failed`: Rota stopped retrying the last message. `idle`: nothing waits.",
            "idle",
        ),
    ],
)

Kinds = Annotated[
    list[NotificationKind],
    doc("What you want to be notified about this way.", ["approval_waiting"], max_length=20),
]


class PutMail(Body):
    """What you want to be notified about by email."""

    kinds: Kinds


class PutChat(Body):
    """What you want to be notified about in a chat."""

    model_config = example_of("kinds", "url", "service")

    kinds: Kinds
    url: Annotated[
        Annotated[str, Field(max_length=2_048)] | None,
        doc(
            "The URL of an incoming webhook. It is a secret and is not shown again. Without this "
            "field, or with the shortened URL that you have read, it stays as it is. Null removes "
            "it.",
            _URL,
        ),
    ] = None
    service: Annotated[
        ChatService | None, doc("The chat service of the webhook. Needed with a URL.", "slack")
    ] = None


class PutNotifications(Body):
    """Everything in the selected account that you want to be notified about."""

    content: Annotated[MessageContent, doc("What messages contain.")]
    mail: Annotated[PutMail, doc("Messages by email.")]
    chat: Annotated[PutChat, doc("Messages in a chat.")]


@resource_of(PutMail)
class MailNotifications(Wire):
    """What you are notified about by email."""

    kinds: Annotated[
        list[NotificationKind], doc("What you are notified about.", ["approval_waiting"])
    ]
    address: Annotated[
        str | None,
        doc(
            "Where emails go: the last address that your identity provider has verified. Null if "
            "there is none.",
            "ada@example.com",
        ),
    ]
    transport: Annotated[MailTransport, doc("How this service sends email.")]


@resource_of(PutChat)
class ChatNotifications(Wire):
    """What you are notified about in a chat."""

    kinds: Annotated[
        list[NotificationKind], doc("What you are notified about.", ["approval_waiting"])
    ]
    url: Annotated[
        str | None, doc("The URL of the webhook, shortened. Null if there is none.", _SHOWN_URL)
    ]
    service: Annotated[
        ChatService | None, doc("The chat service of the webhook. Null if there is none.", "slack")
    ]


class NotificationDelivery(Wire):
    """What has become of the messages of one kind in one channel."""

    kind: Annotated[NotificationKind, doc("What the messages are about.")]
    channel: Annotated[NotificationChannel, doc("How they reach you.")]
    state: Annotated[DeliveryState, doc("Whether something waits to be sent.")]
    waiting: Annotated[int, doc("How many things the next message is about.", 0)]
    next_at: Annotated[
        Timestamp | None, doc("When the next message is sent. Null if nothing waits.", None)
    ]
    last_sent_at: Annotated[
        Timestamp | None, doc("When the last message was sent.", examples.CREATED)
    ]
    failed_at: Annotated[
        Timestamp | None,
        doc("When Rota stopped retrying the last message. Null after one was sent.", None),
    ]
    error: Annotated[
        str | None,
        doc(
            "Why the last attempt failed. Null after a message was sent.",
            None,
            "The webhook returned status 404.",
        ),
    ]

    @classmethod
    def of(cls, queue: model.Queue) -> "NotificationDelivery":
        state: Literal["idle", "waiting", "retrying", "failed"] = "idle"
        if queue.due_at is not None:
            state = "retrying" if queue.first_failed_at else "waiting"
        elif queue.failed_at is not None:
            state = "failed"
        return cls(
            kind=queue.kind,
            channel=queue.channel,
            state=state,
            waiting=queue.waiting,
            next_at=queue.due_at,
            last_sent_at=queue.last_sent_at,
            failed_at=queue.failed_at,
            error=queue.error,
        )


@resource_of(PutNotifications)
class NotificationsResponse(Wire):
    """What you are notified about in the selected account, and the state of your messages."""

    content: Annotated[MessageContent, doc("What messages contain.")]
    mail: Annotated[MailNotifications, doc("Messages by email.")]
    chat: Annotated[ChatNotifications, doc("Messages in a chat.")]
    digest_minutes: Annotated[
        int,
        doc(
            "After a message, what happens within this many minutes waits for one message about "
            "all of it.",
            15,
        ),
    ]
    deliveries: Annotated[list[NotificationDelivery], doc("The delivery status of your messages.")]


class SendTest(Body):
    """Where to send a test message."""

    channel: Annotated[NotificationChannel, doc("The channel to test.")]


class TestNotificationResponse(Wire):
    """What became of a test message."""

    delivered: Annotated[
        bool,
        doc("Whether the mail server or the chat service has accepted the message.", True),
    ]
    error: Annotated[
        str | None,
        doc("Why not. Null if it was delivered.", None, "The webhook times out."),
    ]


class UnsubscribeResponse(Wire):
    """The emails that a link turns off."""

    kind: Annotated[NotificationKind, doc("What the emails are about.")]
    subscribed: Annotated[bool, doc("Whether such emails are sent.", False)]
