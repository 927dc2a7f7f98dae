"""The table of errors in docs/requests.md lists every status and code of the service."""

import importlib
import pkgutil
import re
from collections.abc import Iterator

import rota
from rota.platform.errors import CODES, ApiError
from tools.site.pages import DOCS

# The error format of its protocol.
OTHER_FORMATS = ("rota.a2a.",)


def below(kind: type[ApiError]) -> Iterator[type[ApiError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from below(each)


def test_every_error_is_in_the_table() -> None:
    for module in pkgutil.walk_packages(rota.__path__, "rota."):
        # The parts of `rota dev` do not respond to clients of the service.
        if not module.name.startswith("rota.dev") and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    kinds = [each for each in below(ApiError) if each.__module__.startswith("rota.")]
    wanted = {
        (each.status, str(each.code))
        for each in kinds
        if not each.__module__.startswith(OTHER_FORMATS)
    } | set(CODES.items())
    section = (DOCS / "requests.md").read_text().partition("\n## Errors\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d{3}) \| `([A-Z_]+)` \|", section, re.MULTILINE)
    assert {(int(status), code) for status, code in rows} == wanted
    assert len(rows) == len(wanted)
