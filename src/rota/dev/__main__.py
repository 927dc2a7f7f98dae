"""`python -m rota.dev` is the same as `rota dev`. `rota dev --detach` starts it this way."""

import typer

from rota.dev.command import dev

if __name__ == "__main__":
    typer.run(dev)
