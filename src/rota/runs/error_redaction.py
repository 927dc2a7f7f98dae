"""What the engine is told of an error: the name of it, never its words.

An error's text can hold a piece of a task, and the engine keeps what it is
told. The words go to our own log.
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
            raise  # Ours, and made for the engine.
        except Exception as error:
            log.exception("activity failed", activity=activity.info().activity_type)
            raise ApplicationError("An activity failed.", type=type(error).__name__) from None
