"""Derives the synchronous client from the asynchronous one, word by word."""

import re

WORDS = {
    "AsyncRota": "Rota",
    "AsyncTransport": "Transport",
    "AsyncEventStream": "EventStream",
    "AsyncTaskEvents": "TaskEvents",
    "AsyncAccountEvents": "AccountEvents",
    "AsyncPages": "Pages",
    "AsyncResource": "Resource",
    "AsyncClient": "Client",
    "AsyncIterator": "Iterator",
    "AsyncGenerator": "Generator",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "aclose": "close",
    "aiter_bytes": "iter_bytes",
    "aread": "read",
    "anext": "next",
    "StopAsyncIteration": "StopIteration",
    "asynccontextmanager": "contextmanager",
    "asyncio": "time",
    "_async": "_sync",
}
_WORD = re.compile(r"\b(?:" + "|".join(WORDS) + r")\b")


def synchronous(source: str) -> str:
    """The same module without `async` and `await`, in its code and in its texts."""
    without = re.sub(r"\b(?:async|await) ", "", source)
    # The rule is about coroutines.
    without = without.replace("  # noqa: ASYNC109", "")
    return _WORD.sub(lambda found: WORDS[found.group()], without)
