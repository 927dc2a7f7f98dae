"""Endpoints: credits and usage."""

from datetime import date, timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from rota.auth.caller import Caller
from rota.auth.routing import allowed, secured_router
from rota.credits import schemas
from rota.credits.queries import GroupBy
from rota.credits.schemas import (
    BalanceResponse,
    Day,
    PatchCreditSettings,
    SettingsResponse,
    TopUp,
    TopUpResponse,
    TransactionsResponse,
    UsageResponse,
    UsageTotals,
)
from rota.credits.service import Credits
from rota.platform import clock
from rota.platform.errors import FieldError, ValidationFailed
from rota.platform.http.description import documented
from rota.platform.http.responses import respond
from rota.platform.http.schemas import QueryInt
from rota.platform.idempotency import IdempotencyKey

Reader = Annotated[Caller, Depends(allowed("billing:read"))]
Writer = Annotated[Caller, Depends(allowed("billing:write"))]

DEFAULT_DAYS = 30
MAX_DAYS = 366


def credit_routes(credits_: Credits) -> APIRouter:
    router = secured_router("Credits")

    @router.get("/api/credits/balance", summary="What the account has")
    async def get_balance(caller: Reader) -> BalanceResponse:
        return BalanceResponse.of(await credits_.balance(caller))

    @router.patch(
        "/api/credits/settings",
        summary="Choose whether top-up money is spent when the allowance is used up",
    )
    async def patch_credit_settings(caller: Writer, body: PatchCreditSettings) -> SettingsResponse:
        await credits_.set_overflow(caller, body.allow_overflow)
        return SettingsResponse(settings=schemas.CreditSettings(allow_overflow=body.allow_overflow))

    @router.post(
        "/api/credits/topup",
        response_model=TopUpResponse,
        summary="Buy credits on the payment processor's page",
        responses=documented(402, 409),
    )
    async def top_up(
        caller: Writer, body: TopUp, idempotency_key: IdempotencyKey = None
    ) -> Response:
        return respond(await credits_.top_up(caller, body, idempotency_key))

    @router.get("/api/credits/transactions", summary="Every movement of money, newest first")
    async def list_transactions(
        caller: Reader,
        limit: Annotated[QueryInt, Query(ge=1, le=100)] = 50,
        offset: Annotated[QueryInt, Query(ge=0, le=2**31 - 1)] = 0,
    ) -> TransactionsResponse:
        found, total = await credits_.movements(caller, limit, offset)
        return TransactionsResponse(
            transactions=[schemas.Transaction.of(each) for each in found], total=total
        )

    @router.get("/api/usage", summary="What was used, by day, agent or model")
    async def get_usage(
        caller: Reader,
        from_: Annotated[Day | None, Query(alias="from")] = None,
        to: Day | None = None,
        group_by: Annotated[GroupBy, Query(alias="groupBy")] = "day",
    ) -> UsageResponse:
        """Days are UTC; both ends count. Without them: the last 30 days."""
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
