"""Reads agents as tests need them."""

from pathlib import Path

from rota.agents.files import read_files
from rota.agents.model import Definition


def read_catalog(folder: Path) -> list[Definition]:
    """Every agent below the folder. Raises CatalogInvalid with all problems."""
    return [file.definition for file in read_files(folder)]
