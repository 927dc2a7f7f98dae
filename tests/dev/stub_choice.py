"""Prints the model that `rota dev` would use, without starting anything."""

import sys

from rota.dev.command import choose_model
from rota.dev.model_choice import ModelName, ModelUnavailable

if __name__ == "__main__":
    asked = [ModelName(word) for word in sys.argv[1:] if word != "--demo"]
    try:
        print("chosen:", choose_model(asked[0] if asked else None, demo="--demo" in sys.argv))
    except ModelUnavailable as error:
        sys.exit(str(error))
