"""`python -m rota.dev` is `rota dev`; the detached one is started like this."""

import typer

from rota.dev.command import dev

if __name__ == "__main__":
    typer.run(dev)
