"""The collector skips what was loaded at the start, and finds what becomes garbage later."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from rota.platform import collector


class Node:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def threshold() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("threshold")
def test_later_garbage_is_collected_and_earlier_objects_are_not_visited() -> None:
    loaded = [Node() for _ in range(10)]
    collector.settle()
    visited = {id(each) for each in gc.get_objects()}
    assert not visited & {id(each) for each in loaded}
    later = weakref.ref(Node())
    # More new objects than the collector waits for.
    kept = [[] for _ in range(collector.NEW_OBJECTS + 1_000)]  # type: ignore[var-annotated]
    assert later() is None
    assert len(kept) > collector.NEW_OBJECTS
