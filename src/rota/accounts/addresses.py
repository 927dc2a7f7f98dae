"""Email addresses in the form in which they are stored and compared."""

from string import ascii_lowercase, ascii_uppercase

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


def normalized(email: str) -> str:
    """The address with its ASCII letters in lower case.

    Other letters stay as they are: some become ASCII letters in lower case (the Kelvin sign becomes
    k), and then the address of one person would match that of another.
    """
    return email.translate(_LOWER)
