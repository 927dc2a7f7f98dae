"""`make docs` and `make docs-serve` run this."""

import signal
import subprocess
import sys
import time

from tools.site.build import ZENSICAL, build, source_of
from tools.site.pages import ROOT, copy_to


def serve() -> int:
    """Serves the site on this machine, and copies pages when they change."""
    # As Ctrl-C, so that the server ends too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    copy_to(source_of(ROOT))
    server = subprocess.Popen((ZENSICAL, "serve"), cwd=ROOT)
    try:
        while server.poll() is None:
            time.sleep(1)
            copy_to(source_of(ROOT))
    except KeyboardInterrupt:
        pass
    finally:
        server.terminate()
    return server.wait()


if __name__ == "__main__":
    if sys.argv[1:] == ["build"]:
        built = build(ROOT)
        print(built.printed)
        sys.exit(built.code)
    elif sys.argv[1:] == ["serve"]:
        sys.exit(serve())
    sys.exit("Use: python -m tools.site build, or serve")
