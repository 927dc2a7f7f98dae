from pathlib import Path

import pytest

from tools.site.build import build


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation site, as `make docs` builds it."""
    built = build(tmp_path_factory.mktemp("site"))
    assert built.code == 0, built.printed
    return built.folder
