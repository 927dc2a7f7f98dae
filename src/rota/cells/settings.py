"""The settings of `rota router`: it needs no database and no key."""

from collections.abc import Iterator
from typing import Self

from pydantic import model_validator

from rota.platform.settings import Settings


class RouterSettings(Settings):
    @model_validator(mode="after")
    def _has_cells(self) -> Self:
        if not self.cells:
            raise ValueError(
                "ROTA_CELLS must name the cells, such as eu1=https://eu1.internal.example.com"
            )
        if unknown := [name for name in self.cells_full if name not in self.cells]:
            raise ValueError(f"ROTA_CELLS_FULL names cells that are not in ROTA_CELLS: {unknown}")
        if len(self.cells_full) >= len(self.cells):
            raise ValueError("ROTA_CELLS_FULL must leave at least one cell open for new accounts")
        return self

    def _production_problems(self) -> Iterator[str]:
        if self.metrics_port is None:
            yield "ROTA_METRICS_PORT must be set in production: /metrics needs no authentication"
        plain = [name for name, url in self.cells.items() if url.startswith("http://")]
        if plain and not self.allow_plaintext:
            yield (
                f"ROTA_CELLS must have https:// in production ({', '.join(plain)}), or set "
                "ROTA_ALLOW_PLAINTEXT=true if the network is private"
            )

    def _public_keys(self) -> Iterator[str]:
        # The router has no secrets.
        yield from ()
