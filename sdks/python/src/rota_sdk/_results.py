"""Values that are easier to use than what the API sends."""

from dataclasses import dataclass

from rota_sdk import errors, models


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The outcome of one task of a batch: the task, or the error that `create` would raise."""

    task: models.Task | None
    error: errors.APIError | None


def task_result(found: models.TaskResult) -> TaskResult:
    if found.error is None:
        return TaskResult(found.task, None)
    return TaskResult(found.task, errors.api_error(found.error.model_dump(by_alias=True)))


def review_shown(
    review: models.Review | models.PastReview | models.ReviewRef,
) -> models.ReviewRef:
    """The number and the digest of what a person looked at."""
    if review.number is None or review.digest is None:
        raise ValueError("This review has nothing to decide: no number and no digest.")
    return models.ReviewRef(number=review.number, digest=review.digest)
