"""What can go wrong with the model of a run, and what an error of its provider means."""

from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
)

from rota.credits.money import exact_usd

if TYPE_CHECKING:
    from rota.runs.models import PricedModel

# After this many unreadable answers to the same call, the run fails.
_MAX_MALFORMED_ANSWERS = 3
_MAX_RETRY_AFTER = timedelta(minutes=5)
# Anthropic: "input length and `max_tokens` exceed context limit: …"
_TOO_LONG = "exceed context limit"


class GiveUp(Exception):
    """The run cannot continue. The task shows the code and the message."""

    code: ClassVar[str]
    # Whether the same task can succeed unchanged.
    retryable: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ModelNotConfigured(GiveUp):
    code = "MODEL_NOT_CONFIGURED"
    retryable = True

    def __init__(self, name: str) -> None:
        super().__init__(f"ROTA_MODELS has no model {name!r}. Add it, then retry the task.")


class ModelWithoutPrice(GiveUp):
    code = "MODEL_WITHOUT_PRICE"
    retryable = True

    def __init__(self, model: str) -> None:
        super().__init__(
            f"The price of the model {model!r} is unknown. Set inputUsdPerMillion and "
            "outputUsdPerMillion in ROTA_MODELS, then retry the task."
        )


class ModelAuthenticationFailed(GiveUp):
    code = "MODEL_AUTHENTICATION_FAILED"
    retryable = True

    def __init__(self) -> None:
        super().__init__(
            "The model provider refused the API key. Correct it in ROTA_MODELS, then retry the "
            "task from the failed step."
        )


class ModelQuotaExceeded(GiveUp):
    code = "MODEL_QUOTA_EXCEEDED"
    retryable = True

    def __init__(self) -> None:
        super().__init__(
            "The quota at the model provider is used up. Raise it, then retry the task from the "
            "failed step."
        )


class ModelNotFound(GiveUp):
    code = "MODEL_NOT_FOUND"
    retryable = True

    def __init__(self) -> None:
        super().__init__(
            "The model provider does not have this model. Correct its name in ROTA_MODELS, then "
            "retry the task from the failed step."
        )


class ContextTooLong(GiveUp):
    code = "CONTEXT_TOO_LONG"

    def __init__(self) -> None:
        super().__init__(
            "The conversation no longer fits into the model's context. Shorten the task's input, "
            "or divide the task."
        )


class ContentFiltered(GiveUp):
    code = "CONTENT_FILTERED"

    def __init__(self) -> None:
        super().__init__(
            "The provider's content filter stopped the answer. Change the task's input."
        )


class ModelRefusedRequest(GiveUp):
    code = "MODEL_REFUSED_REQUEST"

    def __init__(self, error: Exception) -> None:
        super().__init__(
            f"The model provider refused the request ({error}). Check the model in ROTA_MODELS, "
            "or change the task's input."
        )


class ModelAnswerMalformed(GiveUp):
    code = "MODEL_ANSWER_MALFORMED"
    retryable = True

    def __init__(self) -> None:
        super().__init__(
            "The model provider's answers are unreadable. Check baseUrl in ROTA_MODELS, then retry "
            "the task from the failed step."
        )


class ModelAnswerUnusable(GiveUp):
    code = "MODEL_ANSWER_UNUSABLE"
    retryable = True

    def __init__(self) -> None:
        super().__init__(
            "The model's answer cannot be processed. The answer is charged. Retry the task from "
            "the failed step to ask the model again."
        )


class BudgetExceeded(GiveUp):
    code = "BUDGET_EXCEEDED"
    retryable = True

    def __init__(self, needed_micros: int, left_micros: int) -> None:
        super().__init__(
            f"The next model call needs at least ${exact_usd(needed_micros)}, but only "
            f"${exact_usd(left_micros)} of the run's hold is left. Retry the task from the failed "
            "step to continue with a new budget."
        )
        self.needed_micros = needed_micros
        self.left_micros = left_micros


class TryAgain(Exception):
    """A temporary error: the same call can succeed later."""

    def __init__(
        self, message: str, after: timedelta | None = None, *, is_outage: bool = True
    ) -> None:
        super().__init__(message)
        # How long the provider asks to wait, if it does.
        self.after = after
        # Whether the provider is not available. Otherwise only this call has failed.
        self.is_outage = is_outage
        # The models of the chain that are too expensive for the run.
        self.without: list[PricedModel] = []


def classify_error(error: Exception, attempt: int = 1) -> Exception:
    """What a provider's error on this attempt means for the run."""
    match error:
        case ModelAuthenticationError():
            return ModelAuthenticationFailed()
        case ModelQuotaExceededError():
            return ModelQuotaExceeded()
        case ModelNotFoundError():
            return ModelNotFound()
        case ModelContextWindowExceededError() | ModelHTTPError(status_code=413):
            return ContextTooLong()
        case ModelRequestRejectedError() if _TOO_LONG in str(error).lower():
            return ContextTooLong()
        case ContentFilterError():
            return ContentFiltered()
        case ModelRequestRejectedError():
            return ModelRefusedRequest(error)
        case ModelAPIError():
            wait = timedelta(seconds=error.retry_after) if error.retry_after else None
            after = min(wait, _MAX_RETRY_AFTER) if wait else None
            return TryAgain(_describe(error), after, is_outage=_is_outage(error))
        case OSError() | TimeoutError():
            return TryAgain(_describe(error))
    # All other errors come from an answer that the client library cannot read.
    if attempt < _MAX_MALFORMED_ANSWERS:
        return TryAgain(_describe(error), is_outage=False)
    return ModelAnswerMalformed()


def _is_outage(error: ModelAPIError) -> bool:
    """Whether a request of another run would fail too. An error without a status broke off."""
    if not isinstance(error, ModelHTTPError):
        return True
    return error.status_code in (408, 429) or error.status_code >= 500


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
