"""The settings of deployments that share their accounts with others, the cells."""

import re
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode

from rota.platform.cell import NAME, is_name

_URL = re.compile(r"https?://([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?")


class CellSettings(BaseSettings):
    # The name of this deployment, if it is one of several cells.
    cell: Annotated[str, Field(pattern=f"^{NAME}$")] | None = None
    # The cells as name=URL, in the order in which they were added. The first one has what names no
    # cell. `rota router` needs them all. A cell that has them, too, creates no accounts for a
    # router that has others.
    cells: Annotated[dict[str, str], NoDecode] = {}
    # `rota router`: the cells that get no new accounts.
    cells_full: Annotated[tuple[str, ...], NoDecode] = ()

    @field_validator("cells", mode="before")
    @classmethod
    def _read_cells(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        found: dict[str, str] = {}
        for part in filter(None, map(str.strip, value.split(","))):
            name, _, url = part.partition("=")
            if name in found:
                raise ValueError(f"names the cell {name} twice")
            found[name] = url
        return found

    @field_validator("cells")
    @classmethod
    def _are_cells(cls, value: dict[str, str]) -> dict[str, str]:
        for name, url in value.items():
            if not is_name(name):
                raise ValueError(
                    f"{name!r} is not a valid cell name: use up to 16 lowercase letters and "
                    "digits, starting with a letter"
                )
            if not _URL.fullmatch(url):
                raise ValueError(
                    f"the URL of {name} must be a scheme and a host, such as "
                    f"{name}=https://{name}.internal.example.com"
                )
        return value

    @field_validator("cells_full", mode="before")
    @classmethod
    def _split_names(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(filter(None, map(str.strip, value.split(","))))
        return value

    @model_validator(mode="after")
    def _is_one_of_the_cells(self) -> Self:
        if self.cell is not None and self.cells and self.cell not in self.cells:
            raise ValueError(f"ROTA_CELLS does not name the cell of ROTA_CELL, {self.cell}")
        return self

    @property
    def is_first_cell(self) -> bool:
        """Whether this deployment has what names no cell, from before it had a name."""
        return self.cell is None or self.cell == next(iter(self.cells), self.cell)
