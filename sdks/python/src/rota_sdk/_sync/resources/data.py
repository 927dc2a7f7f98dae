# Generated from rota_sdk/_async: do not edit.
"""All data of the account: its export and its erasure."""

from collections.abc import Iterator

from rota_sdk import models
from rota_sdk._generated import operations
from rota_sdk._requests import Request, creation
from rota_sdk._sync.resource import Resource


class Data(Resource):
    """Export and erasure. They need the session of an owner: pass its token as `api_key`."""

    def export(self) -> Iterator[bytes]:
        """Everything that the account owns, as lines of JSON, in pieces as they arrive.

        The last line has `end`. Without it, the export is not complete.
        """
        request = Request.of(operations.export_account)
        with self._transport.stream(request, None, "application/x-ndjson") as response:
            for piece in response.iter_bytes():
                yield piece

    def erase(self, *, name: str) -> models.Erasure:
        """Erases the account for good. `name` is its name, to confirm that it is the right one.

        The session must be younger than 10 minutes.
        """
        body = creation(models.EraseAccount, name=name)
        return (self._call(operations.erase_account, body=body)).erasure
