"""Limits the size of a page, so that a list with long texts needs little memory and time.

A page that fits is whole. Otherwise PostgreSQL cuts its long texts before they are read.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from rota.platform import json

T = TypeVar("T")

PAGE_BYTES = 1024 * 1024
# Where long texts of a page are cut, in characters.
CUT = 2_000


@dataclass(frozen=True, slots=True)
class Fit:
    """A page whose texts have at most `whole_bytes` together is whole. In others, a text has at
    most `cut` characters."""

    whole_bytes: int
    cut: int


# Cuts nothing.
WHOLE = Fit(2**62, CUT)


async def fitting(
    read: Callable[[Fit], Awaitable[list[T]]], texts: Callable[[T], object], page_bytes: int
) -> list[T]:
    """Reads a page whose texts have at most about `page_bytes` in JSON.

    JSON can be six times as large as the text itself, so a page may have to be cut again.
    """
    found = await read(Fit(page_bytes, CUT))
    for cut in (CUT, CUT // 5, CUT // 25):
        if len(json.dumps([texts(each) for each in found])) <= page_bytes:
            break
        found = await read(Fit(0, cut))
    return found
