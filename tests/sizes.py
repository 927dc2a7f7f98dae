"""How much a proof tries. CI runs a short form, and `make proofs` the full size."""

import os

FULL = bool(os.environ.get("ROTA_TEST_FULL"))


def size(ci: int, full: int) -> int:
    return full if FULL else ci
