"""The models behind one name, in the order in which they take over from each other."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from prometheus_client import Counter

if TYPE_CHECKING:
    from rota.runs.models import PricedModel

FAILED_ATTEMPTS = Counter(
    "rota_run_model_failed_attempts_total",
    "Failed attempts of model calls, except those that fail the run at once.",
    ["model"],
)

# After an outage, a worker does not ask a model for this long, unless the others fail too. Without
# it, every call of a run would first wait for a provider that is down.
AVOIDED_S = 30.0


@dataclass(slots=True)
class _State:
    """What a worker knows about a model of a chain."""

    failed_at_s: float = -math.inf
    # When its provider wants to be asked again, if it said so.
    retry_at_s: float | None = None
    # Until when the other models are asked first.
    avoided_until_s: float = -math.inf


class ModelChain:
    """One model or several. The first is asked unless it has failed a moment ago."""

    def __init__(
        self, models: "Sequence[PricedModel]", now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._models = list(models)
        self._now_s = now_s
        # By index and not by name: two providers can have a model of the same name.
        self._states = [_State() for _ in self._models]

    def __len__(self) -> int:
        return len(self._models)

    def choose(self, attempts: int = 0, without: "Sequence[PricedModel]" = ()) -> "PricedModel":
        """The model to ask after this many failed attempts of the call.

        Each failed attempt moves the call on to the next model, on every worker. Among the models
        that this worker avoids, it picks the one that can be retried soonest.
        """
        now_s, first = self._now_s(), attempts % len(self)
        indexes = [*range(first, len(self)), *range(first)]
        left = [index for index in indexes if not _has(without, self._models[index])]

        def key(index: int) -> tuple[bool, float]:
            state = self._states[index]
            if state.avoided_until_s <= now_s:
                return False, 0.0
            return True, now_s if state.retry_at_s is None else max(now_s, state.retry_at_s)

        # `min` returns the first of equal ones.
        return self._models[min(left, key=key)]

    def failed(
        self, model: "PricedModel", after: timedelta | None, *, avoided: bool = True
    ) -> None:
        """Remembers a failed attempt, and after an outage avoids the model for a while."""
        FAILED_ATTEMPTS.labels(model.name).inc()
        now_s, state = self._now_s(), self._states[self._index(model)]
        state.failed_at_s = now_s
        state.retry_at_s = now_s + after.total_seconds() if after else None
        if avoided:
            state.avoided_until_s = now_s + (after.total_seconds() if after else AVOIDED_S)

    def pause_s(self, backoff_s: float, without: "Sequence[PricedModel]" = ()) -> float:
        """How long it takes until a model can be asked. 0 if one can be asked now.

        A model can be asked when its provider wants it, or else this long after it has failed.
        """
        now_s = self._now_s()
        due_s = (
            state.failed_at_s + backoff_s if state.retry_at_s is None else state.retry_at_s
            for model, state in zip(self._models, self._states, strict=True)
            if not _has(without, model)
        )
        return max(0.0, min(due_s, default=now_s + backoff_s) - now_s)

    def is_first(self, model: "PricedModel") -> bool:
        return model is self._models[0]

    def before(self, model: "PricedModel") -> list[str]:
        """The models that come before this one, by name."""
        return [each.name for each in self._models[: self._index(model)]]

    def _index(self, model: "PricedModel") -> int:
        return next(index for index, each in enumerate(self._models) if each is model)


def _has(models: "Sequence[PricedModel]", model: "PricedModel") -> bool:
    return any(each is model for each in models)
