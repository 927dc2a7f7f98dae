"""The public schema of a receipt."""

from typing import Annotated, Any

from rota.platform.http import examples
from rota.platform.http.schemas import Wire, doc


class ReceiptResponse(Wire):
    """What a task did, who decided about it and what it cost, in one signed document."""

    receipt: Annotated[
        dict[str, Any],
        doc(
            "The document, to read: `decisions`, `calls`, `ledger` and `audit`, each item with its "
            "hash. It has IDs, times, amounts and hashes, and no texts.",
            {"version": 1, "task": examples.TASK_ID, "status": "COMPLETED", "spentMicros": 11_700},
        ),
    ]
    jws: Annotated[
        str,
        doc(
            "The same document, signed with a key in /.well-known/audit-keys.json. `rota receipt "
            "verify` checks it.",
            "eyJhbGciOiJFZDI1NTE5In0.eyJ2ZXJzaW9uIjoxfQ.c2lnbmF0dXJl",
        ),
    ]
