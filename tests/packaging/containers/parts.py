"""PostgreSQL, PgBouncer, Redis and Temporal, each in a container, on one network.

They use the files of deploy/compose. Their image has the programs of all of them: `build_parts`
makes it on a machine that cannot pull the public images.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.packaging.containers.podman import LIMITS, Container, podman, variables

FOLDER = Path(__file__).parent
COMPOSE = FOLDER.parents[2] / "deploy" / "compose"
IMAGE = os.environ.get("ROTA_TEST_PARTS", "localhost/rota-parts:latest")
NETWORK = "rota-image-test"
PASSWORD = "word"
LOGINS = ("rota_owner", "rota_serve", "rota_worker")
DEADLINE_S = 120.0

TEMPORAL_DATABASE = {
    "SQL_PLUGIN": "postgres12",
    "SQL_HOST": "postgres",
    "SQL_PORT": "5432",
    "SQL_USER": "temporal",
    "SQL_PASSWORD": PASSWORD,
}
# Debian's version cannot keep prepared statements, so ROTA_DATABASE_STATEMENT_CACHE is 0.
PGBOUNCER = """
[databases]
* = host=postgres port=5432
[pgbouncer]
listen_addr = 0.0.0.0
listen_port = 6432
unix_socket_dir =
auth_type = scram-sha-256
auth_file = /pgbouncer/users.txt
pool_mode = transaction
default_pool_size = 10
max_client_conn = 500
"""


@dataclass(frozen=True)
class Parts:
    postgres: Container
    temporal: Container
    # All processes of Rota share the network of this one. So do the tests.
    place: Container


@contextmanager
def started(folder: Path) -> Iterator[Parts]:
    """`folder` is for files that the containers read."""
    with ExitStack() as opened:
        podman("network", "rm", "--force", NETWORK)
        podman("network", "create", NETWORK)
        opened.callback(podman, "network", "rm", "--force", NETWORK)

        def start(alias: str, *command: str, options: tuple[str, ...] = ()) -> Container:
            container = Container(f"{NETWORK}-{alias}")
            container.remove()
            opened.callback(container.remove)
            podman(
                "run",
                "--detach",
                "--name",
                container.name,
                *LIMITS,
                "--network",
                NETWORK,
                "--network-alias",
                alias,
                *options,
                IMAGE,
                *command,
            )
            return container

        postgres = start("postgres", "/bin/bash", "/parts/postgres", options=_postgres())
        ready = ("pg_isready", "--host=127.0.0.1", "--username=rota_owner", "--dbname=rota")
        _until(lambda: postgres.run(*ready).returncode == 0, postgres)
        start("pgbouncer", "pgbouncer", "/pgbouncer/pgbouncer.ini", options=_pgbouncer(folder))
        start("redis", "redis-server", "--bind", "0.0.0.0", "--requirepass", PASSWORD, "--save", "")
        temporal = _temporal(start)
        place = start("place", "sleep", "infinity")
        yield Parts(postgres, temporal, place)


def _until(holds: Callable[[], bool], container: Container) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{container.name} is not ready: {container.log()[-2000:]}")
        time.sleep(0.5)


def _file(source: Path, target: str) -> tuple[str, str]:
    return "--volume", f"{source}:{target}:ro"


def _postgres() -> tuple[str, ...]:
    logins = ("POSTGRES", "OWNER", "SERVE", "WORKER", "TEMPORAL")
    return (
        *variables({f"{name}_PASSWORD": PASSWORD for name in logins}),
        *_file(COMPOSE / "postgres.sh", "/docker-entrypoint-initdb.d/rota.sh"),
        *_file(FOLDER / "postgres", "/parts/postgres"),
    )


def _pgbouncer(folder: Path) -> tuple[str, ...]:
    folder.chmod(0o755)
    (folder / "pgbouncer.ini").write_text(PGBOUNCER)
    (folder / "users.txt").write_text("".join(f'"{name}" "{PASSWORD}"\n' for name in LOGINS))
    return ("--user", "postgres", *_file(folder, "/pgbouncer"))


def _temporal(start: Callable[..., Container]) -> Container:
    def run(script: str, **given: str) -> None:
        podman(
            "run",
            "--rm",
            *LIMITS,
            "--network",
            NETWORK,
            *variables(given),
            *_file(COMPOSE / script, f"/compose/{script}"),
            IMAGE,
            "/bin/sh",
            f"/compose/{script}",
        )

    run("temporal-schema.sh", **TEMPORAL_DATABASE)
    temporal = start(
        "temporal",
        "temporal-server",
        "--config-file",
        "/etc/temporal/rota.yaml",
        "--allow-no-auth",
        "start",
        options=(
            *variables(TEMPORAL_DATABASE),
            *_file(COMPOSE / "temporal.yaml", "/etc/temporal/rota.yaml"),
            *_file(COMPOSE / "temporal-limits.yaml", "/etc/temporal/limits.yaml"),
        ),
    )
    run("temporal-namespace.sh", TEMPORAL_ADDRESS="temporal:7233")
    return temporal
