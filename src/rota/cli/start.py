"""`rota serve`, `rota worker` and `rota router`: what cannot work is refused with one line."""

import asyncio
import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from rota.cli.runtime import exit_on_error, load_settings, named_problems


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
        lifespan = app.router.lifespan_context(app)
        run(app, settings, lifespan, on_stop=app.state.streams.close)


def router() -> None:
    """Send each request to the cell that has its account.

    For a deployment of several cells. It stores nothing: start as many as you need. The settings
    come from ROTA_* environment variables, mainly ROTA_CELLS.
    """
    with _without_collector():
        from rota.cells.router import Router
        from rota.cells.settings import RouterSettings
        from rota.platform.http.server import run
        from rota.platform.telemetry import observe, serve_metrics

    settings = named_problems(RouterSettings)
    with exit_on_error():
        observe(settings, "rota-router")
        serve_metrics(settings)
        app = Router(settings)
        run(app, settings, app, on_stop=app.end_streams)


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
