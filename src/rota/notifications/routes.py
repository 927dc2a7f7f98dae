"""Endpoints: notifications."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response
from starlette.requests import Request
from starlette.responses import RedirectResponse

from rota.auth.caller import Caller
from rota.auth.routing import allowed, public_router, secured_router
from rota.notifications.schemas import (
    ChatNotifications,
    MailNotifications,
    NotificationDelivery,
    NotificationsResponse,
    PutNotifications,
    SendTest,
    TestNotificationResponse,
    UnsubscribeResponse,
)
from rota.notifications.service import Notifications, Overview
from rota.platform.http import examples
from rota.platform.http.description import documented
from rota.platform.http.schemas import Text, shared

User = Annotated[Caller, Depends(allowed(session=True))]
Token = Annotated[
    Text,
    Path(
        description="The token of the link in an email.",
        examples=[examples.UNSUBSCRIBE_TOKEN],
        json_schema_extra=shared("UnsubscribeToken"),
    ),
]


def notification_routes(notifications: Notifications) -> APIRouter:
    router = secured_router("Notifications")

    def shown(found: Overview) -> NotificationsResponse:
        wanted = found.preferences
        return NotificationsResponse(
            content=wanted.content,
            mail=MailNotifications(
                kinds=list(wanted.mail_kinds),
                address=found.address,
                transport=notifications.transport,
            ),
            chat=ChatNotifications(
                kinds=list(wanted.chat_kinds),
                url=wanted.chat_url_shown,
                service=wanted.chat_service,
            ),
            digest_minutes=notifications.digest_minutes,
            deliveries=[NotificationDelivery.of(queue) for queue in found.queues],
        )

    @router.get("/api/me/notifications", summary="Get your notifications")
    async def get_notifications(caller: User) -> NotificationsResponse:
        """Returns what you are notified about in the selected account, how, and the state of your
        messages. At first you are notified about nothing."""
        return shown(await notifications.get(caller))

    @router.put(
        "/api/me/notifications", summary="Change your notifications", responses=documented(409)
    )
    async def put_notifications(caller: User, body: PutNotifications) -> NotificationsResponse:
        """Replaces what you are notified about in the selected account. Every member has settings
        of their own. Emails need an address that your identity provider has verified
        (409)."""
        return shown(await notifications.put(caller, body))

    @router.post(
        "/api/me/notifications/test",
        summary="Send a test message",
        responses=documented(409),
    )
    async def test_notifications(caller: User, body: SendTest) -> TestNotificationResponse:
        """Sends a test message to you, at most every 10 seconds (429). The response says whether it
        was delivered, and why not."""
        error = await notifications.test(caller, body.channel)
        return TestNotificationResponse(delivered=error is None, error=error)

    return router


def unsubscribe_routes(notifications: Notifications) -> APIRouter:
    router = public_router("Notifications")

    @router.get(
        "/api/unsubscribe/{token}",
        summary="Get what an unsubscribe link turns off",
        response_model=UnsubscribeResponse,
        responses=documented(404),
    )
    async def get_unsubscribe(request: Request, token: Token) -> Response | UnsubscribeResponse:
        """Returns which emails the link in an email turns off. It changes nothing, however often
        it is opened. A browser is sent to a page that asks first. No authentication."""
        if "text/html" in request.headers.get("accept", ""):
            return RedirectResponse(f"/unsubscribe#{token}", status_code=303)
        found, subscribed = await notifications.subscription(token)
        return UnsubscribeResponse(kind=found.kind, subscribed=subscribed)

    @router.post(
        "/api/unsubscribe/{token}",
        summary="Unsubscribe with the link from an email",
        responses=documented(404),
    )
    async def unsubscribe(token: Token) -> UnsubscribeResponse:
        """Turns off the emails of one kind about one account, as RFC 8058 wants it: mail programs
        send this request with one click. The body is ignored. No authentication: the link is
        signed, and it can do nothing else."""
        found = await notifications.unsubscribe(token)
        return UnsubscribeResponse(kind=found.kind, subscribed=False)

    return router
