"""The endpoint that creates many tasks at once."""

from fastapi import APIRouter, Response
from starlette.requests import Request

from rota.auth.routing import SecuredRoute, secured_router
from rota.limits.guard import charge
from rota.platform.http.description import documented
from rota.platform.http.responses import respond
from rota.platform.idempotency import IdempotencyKey
from rota.tasks.batches import PATH, Batches, cost_of
from rota.tasks.bodies import CreateTasks
from rota.tasks.routes import Writer
from rota.tasks.schemas import CreateTasksResponse


class BatchRoute(SecuredRoute):
    """1,000 tasks have more values than other bodies."""

    max_values = 30_000


def batch_routes(batches: Batches) -> APIRouter:
    router = secured_router("Tasks", BatchRoute)

    @router.post(
        PATH,
        response_model=CreateTasksResponse,
        summary="Create many tasks",
        responses=documented(409),
    )
    async def create_tasks(
        request: Request,
        caller: Writer,
        body: CreateTasks,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        """Creates up to 1,000 tasks. The response has a result for each of them, in order: the task
        or an error. A task that cannot be created does not stop the others.

        Tasks are created in transactions of 100. If the request is interrupted, send it again with
        the same Idempotency-Key: tasks that exist are not created again, and tasks that got an
        error are tried again. If the body is not valid, the response is 400 and no task is created.

        A batch counts as one request for every 10 tasks, rounded up.
        """
        if (refusal := await charge(request.scope, cost_of(body))) is not None:
            return refusal
        return respond(await batches.create(caller, body, idempotency_key))

    return router
