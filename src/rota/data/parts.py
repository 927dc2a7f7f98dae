"""The parts of the service that retention, export and erasure need, built from the settings."""

from functools import cached_property

from rota.companies.members import Members
from rota.data import queries
from rota.data.erasing import Erasing
from rota.data.erasure import Erasures
from rota.data.export import Exports
from rota.data.retention import Retention
from rota.data.sweep import DataSweep
from rota.notifications.queries import forget as forget_notifications
from rota.outbound import Outbound
from rota.payments.port import Processor
from rota.payments.processor import processor_of
from rota.platform.signatures import Signer
from rota.policies.retention import RetentionRules
from rota.policies.service import Policies
from rota.schedules import pausing
from rota.tasks.withdrawal import withdraw_approvals
from rota.webhooks.leaving import disable_webhooks_of


class DataParts(Outbound):
    @cached_property
    def members(self) -> Members:
        return Members(
            self.db,
            self.authenticator,
            end_work=(forget_notifications, pausing.pause_of),
            end_management=disable_webhooks_of,
            withdraw_approvals=withdraw_approvals,
            announce=self.fanout.announce_removal,
        )

    @cached_property
    def processor(self) -> Processor:
        processor = processor_of(self.settings)
        self._closes(processor.close)
        return processor

    @cached_property
    def signer(self) -> Signer:
        return Signer(self.settings.audit_key_bytes, self.settings.audit_keys_old)

    @cached_property
    def retention_rules(self) -> RetentionRules:
        settings = self.settings
        return RetentionRules(
            settings.retention_days, settings.retention_min_days, settings.retention_max_days
        )

    @cached_property
    def policies(self) -> Policies:
        return Policies(self.db, self.retention_rules, queries.make_due_now, withdraw_approvals)

    @cached_property
    def exports(self) -> Exports:
        return Exports(self.db)

    @cached_property
    def erasures(self) -> Erasures:
        return Erasures(
            self.db, self.authenticator, self.members, announce=self.fanout.announce_removal
        )

    @cached_property
    def data_sweep(self) -> DataSweep:
        settings = self.settings
        return DataSweep(
            self.db,
            Retention(self.db, self.signer, settings.public_url, rules=self.retention_rules),
            Erasing(
                self.db,
                self.temporal,
                self.redis,
                self.processor,
                leave_companies=self.erasures.leave_companies,
            ),
            self.wakes,
            every_s=settings.retention_check_minutes * 60,
        )
