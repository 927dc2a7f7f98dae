"""How long an account keeps what is finished: its own policy, within the operator's limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rota.accounts.model import RETENTION_KINDS, Retention, RetentionKind
from rota.platform.errors import FieldError, ValidationFailed

# The most days that can be set: a hundred years.
MOST_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """In days, by kind. What has no default is kept for ever."""

    defaults: Mapping[RetentionKind, int] = field(default_factory=dict)
    least: Mapping[RetentionKind, int] = field(default_factory=dict)
    most: Mapping[RetentionKind, int] = field(default_factory=dict)

    def in_effect(self, retention: Retention) -> dict[RetentionKind, int | None]:
        """The days of each kind. None: for ever."""
        return {kind: self._days(retention, kind) for kind in RETENTION_KINDS}

    def _days(self, retention: Retention, kind: RetentionKind) -> int | None:
        days = retention.days(kind)
        if days is None:
            days = self.defaults.get(kind)
        most = self.most.get(kind)
        if most is not None:
            days = most if days is None else min(days, most)
        return days if days is None else max(days, self.least.get(kind, 1))

    def check(self, retention: Retention) -> None:
        """Refuses days that the operator does not allow."""
        wrong = []
        for kind in RETENTION_KINDS:
            days = retention.days(kind)
            least, most = self.least.get(kind, 1), self.most.get(kind, MOST_DAYS)
            if days is not None and not least <= days <= most:
                wrong.append(
                    FieldError(
                        f"retention.{kind}",
                        f"must be between {least} and {most} days on this service",
                    )
                )
        if wrong:
            raise ValidationFailed.of(*wrong)
