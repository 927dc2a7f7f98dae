"""Tasks and reviews as the service sends them, with a text in every part."""

from typing import Any

from rota_sdk import models

WORK = {
    "name": "work-name",
    "description": "work-description",
    "input": "work-input",
    "agent": "work-agent",
    "version": 41_001,
    "model": "work-model",
    "budgetCents": 41_002,
    "outputSchema": {"const": "work-schema"},
    "forkedFrom": {"taskId": "task_origin", "run": 41_003, "step": 41_004},
}


def task(**changes: Any) -> models.Task:
    texts = {"name": "Answer Ada", "description": None, "input": "", "output": None}
    cost: dict[str, Any] = {"cost_usd": "0.10"}
    usage = models.TaskUsage.model_construct(**cost)
    about = {"id": "task_1", "status": "WAITING_APPROVAL", "assigned_agent": "careful"}
    result = {"error": None, "output_data": None, "usage": usage}
    return models.Task.model_construct(**(texts | about | result | changes))


def item(**changes: Any) -> models.ReviewItem:
    sent = dict.fromkeys(("tool", "server", "argumentsSchema", "reason", "decision"))
    decided = {"decidedBy": None, "decidedAt": None}
    texts = {"id": "call-1", "summary": "Send it", "arguments": {"ref": "first"}}
    return models.ReviewItem.model_validate({**sent, **decided, **texts, **changes})


def review(**changes: Any) -> models.Review:
    sent = dict.fromkeys(("gate", "requestedAt", "expiresAt", "work", "summary"))
    about: dict[str, Any] = {"taskId": "task_1", "number": 1, "digest": "d" * 64}
    about |= {"state": "pending", "secondPerson": False}
    lists: dict[str, Any] = {"items": [], "history": [], "shaped": []}
    return models.Review.model_validate({**sent, **about, **lists, **changes})
