"""Shows API keys without their secrets."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from rota.cli.output import print_json, print_table
from rota.cli.text import moment


class ShownKey(Protocol):
    """A key as the service or its client describes it."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def prefix(self) -> str: ...
    @property
    def scopes(self) -> Sequence[str]: ...
    @property
    def last_used_at(self) -> datetime | None: ...
    @property
    def expires_at(self) -> datetime | None: ...


def print_keys(keys: Sequence[ShownKey], *, as_json: bool) -> None:
    if as_json:
        print_json({"keys": keys, "total": len(keys)})
        return
    rows = [
        (
            each.id,
            each.name,
            each.prefix,
            ", ".join(each.scopes),
            moment(each.last_used_at),
            moment(each.expires_at),
        )
        for each in keys
    ]
    columns = ("ID", "Name", "Begins with", "Scopes", "Last used", "Expires")
    print_table(columns, rows, "There are no API keys.")
