"""Endpoints: credits and usage."""

from datetime import date, timedelta
from typing import Annotated, cast

from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field

from rota.auth.caller import Caller
from rota.auth.routing import allowed, secured_router
from rota.credits import schemas
from rota.credits.model import Kind
from rota.credits.queries import KINDS, MovementFilter
from rota.credits.schemas import (
    BalanceResponse,
    Day,
    ForecastResponse,
    GroupBy,
    PatchCreditSettings,
    SettingsResponse,
    TopUp,
    TopUpResponse,
    UsageResponse,
    UsageTotals,
)
from rota.credits.service import Credits
from rota.credits.transaction_schemas import Transaction, TransactionsResponse
from rota.platform import clock, ids
from rota.platform.errors import FieldError, ValidationFailed
from rota.platform.http import examples
from rota.platform.http.description import documented
from rota.platform.http.responses import respond
from rota.platform.http.schemas import Limit, Offset, Several, Text
from rota.platform.idempotency import IdempotencyKey

Reader = Annotated[Caller, Depends(allowed("billing:read"))]
Writer = Annotated[Caller, Depends(allowed("billing:write", right="billing"))]

TaskFilter = Annotated[Text, Field(max_length=255)]


Kinds = Annotated[list[str], Several.of(KINDS, "TransactionKind")]

DEFAULT_DAYS = 30
MAX_DAYS = 366


def credit_routes(credits_: Credits) -> APIRouter:
    router = secured_router("Credits")

    @router.get("/api/credits/balance", summary="Get the credit balance")
    async def get_balance(caller: Reader) -> BalanceResponse:
        """Returns the credits of the selected account. Available amounts are rounded down to cents,
        spent amounts up."""
        return BalanceResponse.of(await credits_.balance(caller))

    @router.get("/api/credits/settings", summary="Get the credit settings")
    async def get_credit_settings(caller: Reader) -> SettingsResponse:
        """Returns the settings of the selected account."""
        return SettingsResponse(settings=schemas.CreditSettings.of(await credits_.settings(caller)))

    @router.patch(
        "/api/credits/settings",
        summary="Update the credit settings",
    )
    async def patch_credit_settings(caller: Writer, body: PatchCreditSettings) -> SettingsResponse:
        """Sets whether runs use the top-up balance when the monthly allowance is used up, and
        below which amount the event `credits.low` is sent."""
        if not body.model_fields_set:
            fields = "allowOverflow or alertBelowCents"
            raise ValidationFailed.of(FieldError("body", f"Send {fields}."))
        changed = await credits_.change_settings(caller, body)
        return SettingsResponse(settings=schemas.CreditSettings.of(changed))

    @router.get("/api/credits/forecast", summary="Get a forecast of the balance")
    async def get_forecast(caller: Reader) -> ForecastResponse:
        """Returns how long the money lasts if the account keeps spending at the rate of the last
        seven days."""
        return ForecastResponse(forecast=schemas.Forecast.of(await credits_.forecast(caller)))

    @router.post(
        "/api/credits/topup",
        response_model=TopUpResponse,
        summary="Buy credits",
        responses=documented(402, 409),
    )
    async def top_up(
        caller: Writer, body: TopUp, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Creates a checkout page at the payment processor. Send the user to `checkoutUrl`. The
        balance changes when the payment is complete. Returns 402 if the processor does not respond
        or is not configured."""
        return respond(await credits_.top_up(caller, body, idempotency_key))

    @router.get("/api/credits/transactions", summary="List transactions")
    async def list_transactions(
        caller: Reader,
        kind: Annotated[
            Kinds | None,
            Query(
                description="Only transactions of this kind, or of one of several kinds separated "
                "by commas.",
                examples=[["charge", "release"]],
            ),
        ] = None,
        task_id: Annotated[
            TaskFilter | None,
            Query(
                alias="taskId",
                description="Only transactions of this task.",
                examples=[examples.TASK_ID],
            ),
        ] = None,
        from_: Annotated[
            Day | None,
            Query(
                alias="from",
                description="Only transactions on this day, in UTC, or later.",
                examples=["2026-11-01"],
            ),
        ] = None,
        to: Annotated[
            Day | None,
            Query(
                description="Only transactions on this day, in UTC, or earlier.",
                examples=["2026-11-30"],
            ),
        ] = None,
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> TransactionsResponse:
        """Returns the movements of money, newest first. Filters combine: a transaction must match
        all of them."""
        if from_ is not None and to is not None and from_ > to:
            raise ValidationFailed.of(FieldError("from", "must not be after `to`"))
        task = ids.from_wire("task", task_id) if task_id is not None else None
        if task_id is not None and task is None:
            return TransactionsResponse(transactions=[], total=0)
        # The validator has turned the texts into kinds.
        filters = MovementFilter(cast(tuple[Kind, ...], kind or ()), task, from_, to)
        found, total = await credits_.movements(caller, filters, limit, offset)
        return TransactionsResponse(
            transactions=[Transaction.of(each) for each in found], total=total
        )

    @router.get("/api/usage", summary="Get usage")
    async def get_usage(
        caller: Reader,
        from_: Annotated[
            Day | None,
            Query(
                alias="from",
                description="The first day, in UTC. Default: 29 days before `to`.",
                examples=["2026-11-01"],
            ),
        ] = None,
        to: Annotated[
            Day | None,
            Query(description="The last day, in UTC. Default: today.", examples=["2026-11-30"]),
        ] = None,
        group_by: Annotated[
            GroupBy, Query(alias="groupBy", description="What to group by.")
        ] = "day",
    ) -> UsageResponse:
        """Returns model calls, tokens and cost by day, agent or model, for at most 366 days. Days
        are in UTC, and both ends are included. Default: the last 30 days.

        `day,agent` and `day,model` return an entry for each day and each of the ten agents or
        models that cost the most, and one for all others together. They leave out days without
        usage."""
        first, last = _span(from_, to)
        usage = await credits_.usage(caller, first, last, group_by)
        return UsageResponse(
            usage=[schemas.Usage.of_one(each) for each in usage],
            from_=first,
            to=last,
            group_by=group_by,
            totals=UsageTotals.of(usage),
        )

    return router


def _span(first: date | None, last: date | None) -> tuple[date, date]:
    last = last or clock.now().date()
    if first is None:
        days = min(DEFAULT_DAYS - 1, (last - date.min).days)
        first = last - timedelta(days)
    if first > last:
        raise ValidationFailed.of(FieldError("from", "must not be after `to`"))
    if (last - first).days >= MAX_DAYS:
        raise ValidationFailed.of(
            FieldError("from", f"must be less than {MAX_DAYS} days before `to`")
        )
    return first, last
