"""Endpoint: the receipt of a task."""

from typing import Annotated

from fastapi import APIRouter, Depends

from rota.auth.caller import Caller
from rota.auth.routing import allowed, secured_router
from rota.platform import ids
from rota.platform.http.description import documented
from rota.receipts.schemas import ReceiptResponse
from rota.receipts.service import Receipts
from rota.tasks.routes import TaskId


def receipt_routes(receipts: Receipts) -> APIRouter:
    router = secured_router("Tasks")

    @router.get(
        "/api/tasks/{id}/receipt", summary="Get the receipt of a task", responses=documented(404)
    )
    async def task_receipt(
        caller: Annotated[Caller, Depends(allowed("tasks:read", "billing:read"))],
        id: TaskId,  # noqa: A002
    ) -> ReceiptResponse:
        """Returns the decisions, calls, ledger entries and audit entries of a task with their
        hashes, as one signed document. Anyone with the public keys can check it, without this
        service. A task that has not ended has a receipt of what happened so far."""
        built, signed = await receipts.get(caller, ids.from_wire("task", id))
        return ReceiptResponse(receipt=built, jws=signed)

    return router
