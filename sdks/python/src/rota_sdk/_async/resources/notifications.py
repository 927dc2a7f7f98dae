"""What you are notified about in an account, by email and in a chat."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from rota_sdk import models
from rota_sdk._async.resource import AsyncResource
from rota_sdk._generated import operations
from rota_sdk._requests import creation

Mail: TypeAlias = models.PutMail | Mapping[str, Any]
Chat: TypeAlias = models.PutChat | Mapping[str, Any]


class Notifications(AsyncResource):
    """Your notifications. They need a session: pass its token as `api_key`."""

    async def get(self) -> models.NotificationsResponse:
        """What you are notified about, how, and the state of your messages."""
        return await self._call(operations.get_notifications)

    async def replace(
        self, *, content: models.MessageContent, mail: Mail, chat: Chat
    ) -> models.NotificationsResponse:
        """Replaces what you are notified about. Without `url`, the webhook of the chat stays."""
        body = creation(models.PutNotifications, content=content, mail=mail, chat=chat)
        return await self._call(operations.put_notifications, body=body)

    async def test(self, channel: models.NotificationChannel) -> models.TestNotificationResponse:
        """Sends a test message to you. The response says whether it was delivered."""
        body = creation(models.SendTest, channel=channel)
        return await self._call(operations.test_notifications, body=body)

    async def get_unsubscribe(self, token: str) -> models.UnsubscribeResponse:
        """Which emails the link in an email turns off. It changes nothing."""
        return await self._call(operations.get_unsubscribe, {"token": token})

    async def unsubscribe(self, token: str) -> models.UnsubscribeResponse:
        """Turns off the emails that the link in an email is about."""
        return await self._call(operations.unsubscribe, {"token": token})
