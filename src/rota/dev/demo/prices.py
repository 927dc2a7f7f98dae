"""The names of the demonstration model and what its calls cost."""

from typing import Any

NAMES = {
    "fast": "demonstration-model-fast",
    "default": "demonstration-model",
    "strong": "demonstration-model-strong",
}
# Dollars for a million tokens of input and output. Most calls cost between $0.002 and $0.02.
PRICES = {"fast": (1, 5), "default": (3, 15), "strong": (5, 25)}
MAX_OUTPUT_TOKENS = 4_000


def settings(base_url: str) -> dict[str, dict[str, Any]]:
    """ROTA_MODELS for this model: the names that agents use, each with its price."""
    return {
        alias: {
            "provider": "openai",
            "model": name,
            "baseUrl": base_url,
            "apiKey": "none",
            "inputUsdPerMillion": PRICES[alias][0],
            "outputUsdPerMillion": PRICES[alias][1],
            "maxOutputTokens": MAX_OUTPUT_TOKENS,
        }
        for alias, name in NAMES.items()
    }
