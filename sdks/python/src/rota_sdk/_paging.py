"""How the pages of a list follow one another."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    items: list[T]
    # How many items the whole list has.
    total: int


class Cursor(Protocol[T]):
    def query(self) -> dict[str, str]:
        """The parameters of the next page."""

    def go_to(self, number: int) -> None:
        """The next page is this one. The first is 1."""

    def take(self, page: Page[T]) -> list[T]:
        """The items of the page that are new, and moves on."""

    @property
    def is_done(self) -> bool: ...


class OnePage(Generic[T]):
    """A list that is always complete."""

    is_done = False

    def query(self) -> dict[str, str]:
        return {}

    def go_to(self, number: int) -> None:
        if number != 1:
            raise ValueError("This list has one page.")

    def take(self, page: Page[T]) -> list[T]:
        self.is_done = True
        return page.items


class Offsets(Generic[T]):
    """Pages by `offset`. Items are found once, even if the list changes while it is read.

    Where items are added in front, the next page begins with items that were seen. Where items
    leave the list, for example because the caller retries each failed task that it finds, the next
    page would skip some: then the cursor steps back by as many as are missing. If as many are added
    as leave, the total does not show it, and some can be skipped.
    """

    def __init__(self, size: int | None, key: Callable[[T], Hashable] | None) -> None:
        self._size = size
        self._key = key
        self._seen: set[Hashable] = set()
        self._offset = 0
        self._total: int | None = None
        self.is_done = False

    def query(self) -> dict[str, str]:
        size = {"limit": str(self._size)} if self._size is not None else {}
        return {"offset": str(self._offset), **size}

    def go_to(self, number: int) -> None:
        if self._size is None:
            raise ValueError("Pass page_size to the list to read a page by its number.")
        self._offset = (number - 1) * self._size

    def take(self, page: Page[T]) -> list[T]:
        missing = max(0, (self._total or 0) - page.total)
        self._total = page.total
        if missing and self._offset:
            self._offset = max(0, self._offset - missing)
            return []
        self._offset += len(page.items)
        self.is_done = not page.items or self._offset >= page.total
        if self._key is None:
            return page.items
        new = [item for item in page.items if self._key(item) not in self._seen]
        self._seen.update(map(self._key, new))
        return new


class Numbers(Generic[T]):
    """Pages by their number."""

    def __init__(self, size: int | None) -> None:
        self._size = size
        self._page = 1
        self._found = 0
        self.is_done = False

    def query(self) -> dict[str, str]:
        size = {"limit": str(self._size)} if self._size is not None else {}
        return {"page": str(self._page), **size}

    def go_to(self, number: int) -> None:
        self._page = number

    def take(self, page: Page[T]) -> list[T]:
        self._page += 1
        self._found += len(page.items)
        self.is_done = not page.items or self._found >= page.total
        return page.items


class Sequences(Generic[T]):
    """Pages of events, after the number of the last one."""

    def __init__(self, size: int | None, after: int, number: Callable[[T], int]) -> None:
        self._size = size
        self._after = after
        self._number = number
        self.is_done = False

    def query(self) -> dict[str, str]:
        size = {"limit": str(self._size)} if self._size is not None else {}
        return {"after": str(self._after), **size}

    def go_to(self, number: int) -> None:
        raise ValueError("Events have no numbered pages. Pass after to the list.")

    def take(self, page: Page[T]) -> list[T]:
        # `total` counts what comes after the cursor.
        self.is_done = len(page.items) >= page.total
        if page.items:
            self._after = self._number(page.items[-1])
        return page.items


def total_of(response: Any) -> int | None:
    found: int | None = getattr(response, "total", None)
    return found
