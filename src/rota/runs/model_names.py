"""The names of the models that a deployment has, for processes that do not call them."""

from collections.abc import Iterable

# Names that the local model serves. ROTA_MODELS can define any others.
ALIASES = ("default", "fast", "strong")


def configured(choices: Iterable[str], local_url: str | None) -> tuple[str, ...]:
    """The names that an agent or a fork can use: those of ROTA_MODELS, or of the local model."""
    names = tuple(sorted(choices))
    return names or (ALIASES if local_url else ())
