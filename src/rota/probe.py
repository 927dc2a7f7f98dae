"""`python -m rota.probe URL`: exits with 0 if the URL responds with 200.

For health checks in an image that has no shell. It imports nothing else of Rota, so it is fast.
"""

import sys
import urllib.error
import urllib.request

TIMEOUT_S = 5


def main() -> int:
    try:
        # Without the proxy that the environment may name: it does not reach this container.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(sys.argv[1], timeout=TIMEOUT_S) as answer:
            return 0 if answer.status == 200 else 1
    except (urllib.error.URLError, OSError, IndexError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
