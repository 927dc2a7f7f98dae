"""`rota serve` and `rota worker`: what cannot work is refused with one line."""

import asyncio
import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from rota.cli.runtime import exit_on_error, load_settings


def serve() -> None:
    """Serve the HTTP API.

    The settings come from ROTA_* environment variables.
    """
    with _without_collector():
        from rota.app import create_app
        from rota.platform.http.server import run
        from rota.platform.telemetry import observe, serve_metrics
        from rota.platform.temporal import forward_logs

    settings = load_settings()
    with exit_on_error():
        observe(settings, "rota-serve")
        forward_logs()
        serve_metrics(settings)
        app = create_app(settings)
        run(app, settings, on_stop=app.state.streams.close)


def worker() -> None:
    """Run the agents' tasks.

    Start as many workers as you need: they share the work. The settings come from ROTA_*
    environment variables.
    """
    with _without_collector():
        import uvloop

        from rota.platform.telemetry import observe
        from rota.platform.temporal import forward_logs
        from rota.worker import run_worker

    settings = load_settings()

    async def work() -> None:
        stop = asyncio.Event()
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
        await run_worker(settings, stop)

    with exit_on_error():
        observe(settings, "rota-worker")
        forward_logs()
        uvloop.run(work())


@contextmanager
def _without_collector() -> Iterator[None]:
    """Modules leave no garbage, and looking for it takes a fifth of the time of loading them."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
