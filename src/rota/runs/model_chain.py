"""The models behind one name, in the order in which they take over from each other."""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from prometheus_client import Counter

if TYPE_CHECKING:
    from rota.runs.models import PricedModel

OUTAGES = Counter(
    "rota_run_model_outages_total", "Failed model calls that another call repeats.", ["model"]
)

# After an outage, a worker does not ask a model for this long, unless the others fail too. Without
# it, every call of a run would first wait for a provider that is down.
AVOIDED_S = 30.0


class ModelChain:
    """One model or several. The first is asked unless it has failed a moment ago."""

    def __init__(
        self, models: "Sequence[PricedModel]", now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._models = list(models)
        self._now_s = now_s
        # Until when each model is avoided, by its place.
        self._avoided_until_s = [0.0] * len(self._models)

    def __len__(self) -> int:
        return len(self._models)

    def choose(self) -> "PricedModel":
        """The first model that is not avoided, or else the one that is avoided the shortest."""
        now_s = self._now_s()
        for model, until_s in zip(self._models, self._avoided_until_s, strict=True):
            if until_s <= now_s:
                return model
        return self._models[self._avoided_until_s.index(min(self._avoided_until_s))]

    def failed(self, model: "PricedModel", after: timedelta | None) -> None:
        """Avoids a model after an outage, for as long as its provider asks."""
        OUTAGES.labels(model.name).inc()
        avoided_s = after.total_seconds() if after else AVOIDED_S
        # The place and not the name: two providers can have a model of the same name.
        self._avoided_until_s[self._place(model)] = self._now_s() + avoided_s

    def before(self, model: "PricedModel") -> list[str]:
        """The models that come before this one, by name."""
        return [each.name for each in self._models[: self._place(model)]]

    def _place(self, model: "PricedModel") -> int:
        return next(place for place, each in enumerate(self._models) if each is model)
