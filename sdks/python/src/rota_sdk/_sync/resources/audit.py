# Generated from rota_sdk/_async: do not edit.
"""The audit trail: who did what to which resource."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from rota_sdk import models
from rota_sdk._generated import operations
from rota_sdk._requests import Request, parameters
from rota_sdk._sync.pages import Pages
from rota_sdk._sync.resource import Resource


class Audit(Resource):
    """The audit trail. A key needs the scope `audit:read`."""

    def list(
        self,
        *,
        action: str | Sequence[str] | None = None,
        actor: models.AuditActor | None = None,
        user_id: str | None = None,
        resource: str | None = None,
        from_: datetime | None = None,
        to: datetime | None = None,
        page_size: int | None = None,
    ) -> Pages[models.AuditEntry]:
        """The entries that match every filter, newest first.

        The part of an action before its dot stands for all actions of a family.
        """
        query = {
            **parameters(action=action, actor=actor, userId=user_id, resource=resource, to=to),
            **parameters(**{"from": from_}),
        }
        return self._offset_list(
            operations.list_audit,
            lambda r: r.entries,
            page_size,
            lambda entry: entry.sequence,
            query=query,
        )

    def head(self) -> models.AuditHead:
        """The newest entry, signed. Keep `jws`: it shows later whether the trail was changed."""
        return (self._call(operations.list_audit, query={"limit": "1"})).head

    def export(self) -> str:
        """The whole trail as lines of JSON, oldest first, with its signed head at the end.

        `rota admin audit verify --file` checks it.
        """
        request = Request.of(operations.list_audit)
        headers = {**request.headers, "Accept": "application/x-ndjson"}
        return (self._transport.send(replace(request, headers=headers))).text

    def public_keys(self) -> models.AuditKeysResponse:
        """The keys that sign heads and receipts. Needs no credentials."""
        return self._call(operations.audit_keys)
