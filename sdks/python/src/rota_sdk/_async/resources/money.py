"""Credits, usage, subscriptions and the connect pass."""

from datetime import date, datetime

from rota_sdk import models
from rota_sdk._async.pages import AsyncPages
from rota_sdk._async.resource import AsyncResource
from rota_sdk._generated import operations
from rota_sdk._requests import UNSET, Unset, change, creation, parameters


class Credits(AsyncResource):
    async def balance(self) -> models.BalanceResponse:
        return await self._call(operations.get_balance)

    async def forecast(self) -> models.Forecast:
        """How long the money lasts at the pace of the last days."""
        return (await self._call(operations.get_forecast)).forecast

    async def settings(self) -> models.CreditSettings:
        return (await self._call(operations.get_credit_settings)).settings

    async def update_settings(
        self,
        *,
        allow_overflow: bool | Unset = UNSET,
        alert_below_cents: int | Unset | None = UNSET,
    ) -> models.CreditSettings:
        body = change(
            models.PatchCreditSettings,
            allow_overflow=allow_overflow,
            alert_below_cents=alert_below_cents,
        )
        return (await self._call(operations.patch_credit_settings, body=body)).settings

    async def top_up(
        self, *, amount_cents: int, idempotency_key: str | None = None
    ) -> models.TopUpResponse:
        """A checkout to pay at. The balance changes when the payment has arrived."""
        body = models.TopUp(amount_cents=amount_cents)
        return await self._call(operations.top_up, body=body, idempotency_key=idempotency_key)

    def transactions(
        self,
        *,
        kind: models.TransactionKind | None = None,
        task_id: str | None = None,
        from_: datetime | date | None = None,
        to: datetime | date | None = None,
        page_size: int | None = None,
    ) -> AsyncPages[models.Transaction]:
        """Every movement of money, newest first."""
        query = {
            **parameters(kind=kind, taskId=task_id, to=to),
            **parameters(**{"from": from_}),
        }
        return self._offset_list(
            operations.list_transactions,
            lambda r: r.transactions,
            page_size,
            lambda each: each.id,
            query=query,
        )

    def holds(self, *, page_size: int | None = None) -> AsyncPages[models.Hold]:
        """The money that is set aside for tasks."""
        return self._offset_list(
            operations.list_holds, lambda r: r.holds, page_size, lambda each: each.task_id
        )

    async def usage(
        self,
        *,
        from_: date | None = None,
        to: date | None = None,
        group_by: models.GroupBy | None = None,
    ) -> models.UsageResponse:
        """What model calls cost, by day, agent or model."""
        query = {**parameters(to=to, groupBy=group_by), **parameters(**{"from": from_})}
        return await self._call(operations.get_usage, query=query)


class Subscriptions(AsyncResource):
    """Changes need a deployment of Variant A. On others they raise NotFoundError."""

    async def get(self) -> models.SubscriptionsResponse:
        return await self._call(operations.get_subscription)

    async def plans(self) -> models.PlansResponse:
        """What each tier costs and gives."""
        return await self._call(operations.list_plans)

    async def subscribe(
        self, *, plan: str, seats: int | None = None, idempotency_key: str | None = None
    ) -> models.SubscribeResponse:
        """A checkout page, or the subscription if a lower plan starts next period."""
        body = creation(models.Subscribe, plan=plan, seats=seats)
        return await self._call(operations.subscribe, body=body, idempotency_key=idempotency_key)

    async def cancel(self, *, idempotency_key: str | None = None) -> models.Subscription:
        """Ends the subscription with its period."""
        response = await self._call(operations.cancel_subscription, idempotency_key=idempotency_key)
        return response.subscription

    async def resume(self, *, idempotency_key: str | None = None) -> models.Subscription:
        """Keeps a subscription that was cancelled and has not ended."""
        response = await self._call(operations.resume_subscription, idempotency_key=idempotency_key)
        return response.subscription


class ConnectPass(AsyncResource):
    """The connect pass of Variant B. On other deployments, every method raises NotFoundError."""

    async def billing(self) -> models.PassBillingResponse:
        return await self._call(operations.connect_pass_billing)

    async def checkout(self, *, idempotency_key: str | None = None) -> str:
        """The URL of a checkout to pay at."""
        response = await self._call(
            operations.checkout_connect_pass, idempotency_key=idempotency_key
        )
        return response.checkout_url

    async def cancel(self, *, idempotency_key: str | None = None) -> models.PassBilling:
        response = await self._call(operations.cancel_connect_pass, idempotency_key=idempotency_key)
        return response.billing

    async def resume(self, *, idempotency_key: str | None = None) -> models.PassBilling:
        response = await self._call(operations.resume_connect_pass, idempotency_key=idempotency_key)
        return response.billing
