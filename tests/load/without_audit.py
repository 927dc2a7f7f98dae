"""`rota serve` without audit entries, to measure what they cost."""

from rota.cli.start import serve
from rota.platform.db import AccountTransaction

if __name__ == "__main__":
    AccountTransaction.record = lambda *_: None  # type: ignore[method-assign]
    serve()
