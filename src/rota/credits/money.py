"""Micro-dollars inside, cents on the wire. Available money rounds down, spent money rounds up."""

MICROS_PER_CENT = 10_000
MICROS_PER_USD = 1_000_000


def of_cents(cents: int) -> int:
    return cents * MICROS_PER_CENT


def available_cents(micros: int) -> int:
    return micros // MICROS_PER_CENT


def spent_cents(micros: int) -> int:
    return -(-micros // MICROS_PER_CENT)


def usd(cents: int) -> str:
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02d}"


def exact_usd(micros: int) -> str:
    """All six decimals, computed with integers: a float would round large amounts."""
    sign = "-" if micros < 0 else ""
    dollars, rest = divmod(abs(micros), MICROS_PER_USD)
    return f"{sign}{dollars}.{rest:06d}"
