"""CI runs a test on one variant only if the variant cannot matter."""

import pytest

pytest_plugins = ["pytester"]

CONFTEST = """
import pytest
from tests import variant_choice

def pytest_configure(config):
    config.addinivalue_line("markers", variant_choice.MARKER)

def pytest_collection_modifyitems(config, items):
    items[:], left = variant_choice.choose(items)
    config.hook.pytest_deselected(items=left)

@pytest.fixture(params=["a", "b"])
def service(request):
    return request.param

@pytest.fixture
def rich(service):
    return service
"""

FILE = """
import pytest

HIGHEST = {"a": "enterprise", "b": "business"}
PLACES = ["one", "two", "three", "four", "five", "six", "seven", "eight"]

@pytest.fixture
def member_of_a_plan(service):
    return service

def upgraded(service):
    return HIGHEST_TIER

def changed(service):
    return upgraded(service)

HIGHEST_TIER = HIGHEST

@pytest.mark.parametrize("place", PLACES)
def test_a_place(service, place): ...

def test_without_a_service(): ...

def test_a_trial(service):
    assert "trial"

def test_through_what_it_uses(service):
    changed(service)

def test_through_a_fixture(member_of_a_plan): ...

@pytest.mark.both_variants
def test_that_asks_for_both(service): ...

@pytest.mark.parametrize("variant", ["a", "b"])
def test_that_has_two(service, variant): ...
"""


@pytest.fixture
def chosen(pytester: pytest.Pytester) -> list[str]:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_things=FILE)
    result = pytester.runpytest_inprocess("--collect-only", "-q", "-p", "no:asyncio")
    assert result.ret == 0
    return [line.partition("::")[2] for line in result.outlines if "::" in line]


def test_a_test_runs_on_one_variant_that_its_name_decides(chosen: list[str]) -> None:
    places = [name for name in chosen if name.startswith("test_a_place")]
    assert len(places) == 8
    # Each place once, and not all on the same variant.
    assert len({name.partition("-")[2] for name in places}) == 8
    assert {name[len("test_a_place[")] for name in places} == {"a", "b"}
    assert "test_without_a_service" in chosen


@pytest.mark.parametrize(
    "name",
    [
        "test_a_trial",
        "test_through_what_it_uses",
        "test_through_a_fixture",
        "test_that_asks_for_both",
    ],
)
def test_a_test_for_which_the_variant_can_matter_runs_on_both(chosen: list[str], name: str) -> None:
    assert [found for found in chosen if found.startswith(name)] == [f"{name}[a]", f"{name}[b]"]


def test_a_test_with_two_variants_is_complete(chosen: list[str]) -> None:
    assert len([name for name in chosen if name.startswith("test_that_has_two")]) == 4
