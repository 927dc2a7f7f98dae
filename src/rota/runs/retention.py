"""Deletes the steps of finished tasks. Only background work can."""

from collections.abc import Sequence
from uuid import UUID

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.service import RPCError, RPCStatusCode

from rota.platform import ids
from rota.platform.db import AccountReader, AccountTransaction
from rota.platform.temporal import Temporal
from rota.platform.transactions import execute_count
from rota.runs.contracts import workflow_id


async def delete_steps(tx: AccountTransaction, task_ids: Sequence[UUID], limit: int) -> int:
    """Deletes some of the tasks' steps. Returns how many: fewer than the limit if none is left."""
    # All steps of an account are in one partition, so `ctid` identifies a row.
    return await execute_count(
        tx,
        """
        DELETE FROM steps WHERE account_id = $1 AND ctid = ANY (ARRAY(
            SELECT ctid FROM steps WHERE account_id = $1 AND task_id = ANY($2) LIMIT $3))
        """,
        tx.account_id,
        list(task_ids),
        limit,
    )


async def first_with_steps(tx: AccountReader, last: UUID) -> UUID | None:
    """The first task, up to this one, that has steps."""
    found: UUID | None = await tx.fetchval(
        """
        SELECT task_id FROM steps WHERE account_id = $1 AND task_id <= $2
        ORDER BY task_id LIMIT 1
        """,
        tx.account_id,
        last,
    )
    return found


async def delete_history(temporal: Temporal, task_id: UUID, run: int) -> None:
    """Ends a run in Temporal and deletes its history. Has no effect if there is none."""
    client = await temporal.client()
    request = DeleteWorkflowExecutionRequest(
        namespace=client.namespace,
        workflow_execution=WorkflowExecution(
            workflow_id=workflow_id(ids.to_wire("task", task_id), run)
        ),
    )
    try:
        await client.workflow_service.delete_workflow_execution(request)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
