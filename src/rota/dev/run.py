"""The work of `rota dev`: starts the components, migrates, loads the catalog and supervises."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rota.dev import model_choice, ports
from rota.dev.components import Service, Worker
from rota.dev.demo import first_use
from rota.dev.directory import DataDirectory, Running
from rota.dev.model_choice import CONFIGURED, DESCRIPTIONS, ModelName
from rota.dev.processes import ComponentError, ComponentState, Status, run_to_end
from rota.dev.stack import ALL, TEMPORAL_UI, Endpoints, Stack, start_group

MIGRATIONS = "migrations"
CATALOG = "catalog"
HISTORY = "history"
# The port of each component is the port of the service plus this number.
OFFSETS = {
    "postgres": 1,
    "redis": 2,
    "temporal": 3,
    TEMPORAL_UI: 4,
    "model": 5,
    "idp": 6,
    "stripe": 8,
    "demo": 9,
}
WORKER_OFFSET = 7
STOP_WITHIN_S = 60.0


@dataclass(frozen=True)
class Options:
    data: Path
    variant: str = "a"
    port: int = 8080
    fresh: bool = False
    without: tuple[str, ...] = ()
    # The name of the model, and whether to add the company with its history.
    model: str = ModelName.DEMO
    demo: bool = False
    migrate: Sequence[str] = (sys.executable, "-m", "rota.cli", "admin", "migrate")
    # The agents that the developer has added stay.
    sync: Sequence[str] = (
        *(sys.executable, "-m", "rota.cli", "admin", "agents", "sync", "--add-only"),
    )
    serve: Sequence[str] = (sys.executable, "-m", "rota.cli", "serve")
    work: Sequence[str] = (sys.executable, "-m", "rota.cli", "worker")
    history: Sequence[str] = (sys.executable, "-m", "rota.dev.demo.fill")


async def run(
    options: Options,
    environ: Mapping[str, str],
    on_change: Callable[[ComponentState], None],
    on_ready: Callable[[str], None],
) -> None:
    """Runs everything until the task is cancelled or a component keeps crashing."""
    directory = DataDirectory(options.data)
    await directory.claim(fresh=options.fresh)
    stack = Stack(
        directory,
        components=[name for name in ALL if name not in left_out(options, environ)],
        on_change=on_change,
        ports={name: options.port + offset for name, offset in OFFSETS.items()},
        environ={**environ, "ROTA_VARIANT": options.variant},
    )
    try:
        await stack.start()
        service = await _serve(stack, options, on_change)
        if options.demo and (demo_url := stack.endpoints.demo_url):
            command = [*options.history, f"--demo-url={demo_url}"]
            await _run_once(stack, HISTORY, command, service.environment(), on_change)
        text = greeting(service.url, stack.endpoints, directory.path, model_line(options))
        directory.announce(Running(os.getpid(), service.url, text))
        on_ready(text)
        await stack.supervise()
    finally:
        await stack.stop()
        directory.release()


def left_out(options: Options, environ: Mapping[str, str]) -> set[str]:
    """The components that do not start. The tiny local model starts only if it is used."""
    external = options.model == CONFIGURED and environ.get("ROTA_MODEL_URL")
    uses_component = options.model == ModelName.LOCAL or external
    return {*options.without, *(() if uses_component else ("model",))}


def model_line(options: Options) -> str:
    has_no_model = "model" in options.without or (
        options.model == ModelName.DEMO and "demo" in options.without
    )
    return "none" if has_no_model else DESCRIPTIONS[options.model]


async def _serve(
    stack: Stack, options: Options, on_change: Callable[[ComponentState], None]
) -> Service:
    taken = {stack.component(name).port for name in stack.names}
    port = ports.find(options.port, taken=taken)
    environment = stack.environment() | {
        "ROTA_ENV": "development",
        "ROTA_VARIANT": options.variant,
        "ROTA_HOST": "127.0.0.1",
        "ROTA_PORT": str(port),
        "ROTA_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "ROTA_LOG_FORMAT": "console",
        # Every account gets an allowance, so the first task needs no payment.
        "ROTA_ALLOWANCES": stack.site.environ.get("ROTA_ALLOWANCES", '{"basic": 1000}'),
        # Developers test with tool servers on this machine.
        "ROTA_EGRESS_ALLOW": stack.site.environ.get("ROTA_EGRESS_ALLOW", "127.0.0.0/8"),
    }
    if "stripe" in stack.names:
        await stack.stripe.send_webhooks_to(f"http://127.0.0.1:{port}/webhooks/stripe")
    await _run_once(stack, MIGRATIONS, options.migrate, environment, on_change)
    await _run_once(stack, CATALOG, options.sync, environment, on_change)
    models = None
    if "model" not in options.without:
        models = await asyncio.to_thread(
            model_choice.settings, options.model, stack.site.environ, stack.endpoints.demo_url
        )
    # Only the worker gets the key of a model.
    named = environment | model_choice.as_variable(model_choice.without_keys(models))
    stack.directory.publish(named)
    service = Service(stack.site, port, options.serve, named)
    if port != options.port:
        service.note = f"port {options.port} is in use"
    worker_port = ports.find(options.port + WORKER_OFFSET, taken={*taken, port})
    metrics = {"ROTA_METRICS_PORT": str(worker_port)}
    variables = environment | metrics | model_choice.as_variable(models)
    worker = Worker(stack.site, worker_port, options.work, variables)

    async def serve_and_connect() -> None:
        # The service is ready before the worker, so the people's tools take no extra time.
        await stack.add(service)
        await first_use.prepare(stack, service.url, on_change)

    async with start_group() as group:
        group.create_task(serve_and_connect())
        group.create_task(stack.add(worker))
    return service


async def _run_once(
    stack: Stack,
    name: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    on_change: Callable[[ComponentState], None],
) -> None:
    began = time.monotonic()
    log = stack.directory.log(name)
    log.write_bytes(b"")
    on_change(ComponentState(name, Status.STARTING, log))
    try:
        await run_to_end(stack.site, name, command, environment)
    except ComponentError as error:
        on_change(ComponentState(name, Status.FAILED, log, detail=error.reason))
        raise
    took_s = time.monotonic() - began
    on_change(ComponentState(name, Status.DONE, log, took_s=took_s))


def greeting(service_url: str, at: Endpoints, data: Path, model: str) -> str:
    addresses = {
        "Model": model,
        "API": service_url,
        "API docs": f"{service_url}/docs",
        "Temporal": at.temporal_ui_url,
        "Sign-in": at.issuer_url,
        "Checkout": at.stripe_url,
        "Logs": str(data / "logs"),
    }
    who = " and sign in as Ada" if at.issuer_url else ""
    lines = [f"Open {service_url}{who}.", ""]
    lines += [f"  {name:<10}{where}" for name, where in addresses.items() if where]
    if at.issuer_url:
        lines += ["", "The same with curl:", "", *_first_calls(service_url, at)]
    return "\n".join(lines)


def _first_calls(service_url: str, at: Endpoints) -> list[str]:
    def post(url: str, body: str, field: str) -> str:
        pick = f"python3 -c 'import json,sys; print(json.load(sys.stdin)[\"{field}\"])'"
        return f"$(curl -s {url} -H 'Content-Type: application/json' -d {body} | {pick})"

    ada = """'{"sub": "ada"}'"""
    id_token = '''"{\\"idToken\\": \\"$ID_TOKEN\\"}"'''
    return [
        f"  ID_TOKEN={post(f'{at.issuer_url}/dev/token', ada, 'idToken')}",
        f"  TOKEN={post(f'{service_url}/api/auth/session', id_token, 'token')}",
        f'  curl -s {service_url}/api/me -H "Authorization: Bearer $TOKEN"',
    ]


async def until_signalled(work: asyncio.Task[None], on_abort: Callable[[], object]) -> None:
    """Waits for the work. The first signal stops it in order, the second immediately."""
    loop = asyncio.get_running_loop()
    stopping = False

    def stop(number: int) -> None:
        nonlocal stopping
        if stopping:
            # The guards notice that this process ends, and stop the components.
            on_abort()
            os._exit(128 + number)
        stopping = True
        work.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop, number)
    try:
        await work
    except asyncio.CancelledError:
        if not stopping:
            raise


def stop_other(directory: DataDirectory) -> bool:
    """Stops the `rota dev` that uses the directory, and waits until all its processes end.

    Returns False if the directory is not in use.
    """
    if not directory.in_use():
        return False
    running = directory.running()
    if running and running.alive:
        os.kill(running.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_WITHIN_S
    while directory.in_use():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.1)
    return True
