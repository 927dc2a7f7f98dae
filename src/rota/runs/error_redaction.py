"""Keeps error messages out of Temporal, which receives only the error's type.

A message can contain text of a task, and Temporal stores what it receives. The worker's log has
the full error.
"""

from typing import Any

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError, FailureError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

log = structlog.get_logger()


class RedactErrors(Interceptor):
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        return _RedactingInbound(next)


class _RedactingInbound(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002
        try:
            return await super().execute_activity(input)
        except FailureError:
            raise  # Made for Temporal, without text of a task.
        except Exception as error:
            log.exception("activity_failed", activity=activity.info().activity_type)
            raise ApplicationError("An activity failed.", type=type(error).__name__) from None
