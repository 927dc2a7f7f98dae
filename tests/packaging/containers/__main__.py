"""Runs the container image as a deployment does, and the clients' scenarios against it.

    make image-test

PostgreSQL, PgBouncer, Redis and Temporal have containers of their own. The tests run in the network
of Rota's containers, so that models, tool servers, Stripe and the identity provider of the tests
can stay on 127.0.0.1. Needs podman, nsenter and root.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.packaging.containers import parts


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, parts.started(Path(folder)) as started:
        addresses = {
            "postgres": started.postgres.address(parts.NETWORK),
            "temporal": started.temporal.address(parts.NETWORK),
            "place": started.place.name,
        }
        return subprocess.run(
            [
                *("nsenter", f"--net=/proc/{started.place.pid}/ns/net"),
                *(sys.executable, "-m", "pytest", "--durations=5", str(parts.FOLDER)),
                *sys.argv[1:],
            ],
            env=os.environ | {"ROTA_TEST_CONTAINERS": json.dumps(addresses)},
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
