"""Serves a component of the development environment on 127.0.0.1."""

from typing import Any

import uvicorn
from starlette.types import ASGIApp


def serve(app: ASGIApp, port: int, **options: Any) -> None:
    """Runs until the process is told to stop. `options` are further options of uvicorn."""
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=port,
        log_level="warning",
        # Longer than any client keeps an idle connection, or a request could meet a closing one.
        timeout_keep_alive=75,
        **options,
    )
