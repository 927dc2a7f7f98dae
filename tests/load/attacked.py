"""`rota serve` or `rota worker` on a machine whose name server is slow for some names.

    TEST_NAME_SERVER=127.0.0.1:5300 python -m tests.load.attacked serve

The product uses the name servers of the system. Only their address is replaced.
"""

import importlib
import importlib.util
import os
from typing import Any

from rota.cli import main


def use_name_server(address: str) -> None:
    if importlib.util.find_spec("aiodns") is None:
        return
    aiodns: Any = importlib.import_module("aiodns")
    resolver = aiodns.DNSResolver
    aiodns.DNSResolver = lambda _, **options: resolver([address], **options)


if __name__ == "__main__":
    use_name_server(os.environ["TEST_NAME_SERVER"])
    main()
