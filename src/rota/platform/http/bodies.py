"""Limits the request bodies that one client has in progress, because they are kept in memory."""

from collections import Counter as Tally
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from prometheus_client import Counter

from rota.platform.errors import RateLimited

REFUSED = Counter(
    "rota_bodies_refused_total",
    "Requests that were refused because their client had too many bytes in progress.",
)

MAX_BODY_BYTES = 2 * 1024 * 1024
# Of one account, or of one address without authentication.
MAX_IN_PROGRESS_BYTES = 32 * 1024 * 1024


_NOTHING = nullcontext()


class Bodies:
    def __init__(self) -> None:
        self._in_progress: Tally[str] = Tally()

    def reserved(
        self, client: str | None, headers: Mapping[bytes, bytes]
    ) -> AbstractContextManager[None]:
        """Counts the body of a request until its response. Raises if the client has too many."""
        size = _size(headers)
        return self._counted(client, size) if client is not None and size else _NOTHING

    @contextmanager
    def _counted(self, client: str, size: int) -> Iterator[None]:
        if self._in_progress[client] + size > MAX_IN_PROGRESS_BYTES:
            REFUSED.inc()
            raise RateLimited(
                f"Your requests in progress would have more than {MAX_IN_PROGRESS_BYTES} bytes in "
                "total. Wait until some have finished, then try again."
            )
        self._in_progress[client] += size
        try:
            yield
        finally:
            self._in_progress[client] -= size
            if not self._in_progress[client]:
                del self._in_progress[client]


def _size(headers: Mapping[bytes, bytes]) -> int:
    """The announced size of the body. One that is not announced counts as the largest."""
    length = headers.get(b"content-length")
    if length is not None and length.isdigit():
        return min(int(length), MAX_BODY_BYTES)
    return MAX_BODY_BYTES if b"transfer-encoding" in headers else 0
