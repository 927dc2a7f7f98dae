"""The format and checksum of API key secrets."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.auth import secrets
from rota.auth.authenticator import Authenticator
from rota.auth.errors import ApiKeyInvalid
from rota.auth.tokens import KeyRing, SessionTokens
from rota.platform.crypto import Vault
from rota.platform.db import Database

FORMAT = re.compile(r"rota_[0-9A-Za-z]{32}[0-9A-Za-z]{6}")
BASE62 = string.digits + string.ascii_letters

new_secrets = st.builds(secrets.new_secret)


class NoDatabase(Database):
    """Raises an exception when it is queried."""

    class Queried(Exception):
        pass

    def directory(self):  # type: ignore[no-untyped-def]
        raise self.Queried


@given(new_secrets)
def test_a_secret_has_the_documented_format(secret: str) -> None:
    assert FORMAT.fullmatch(secret)
    assert secrets.is_well_formed(secret)
    assert len(secrets.hash_of(secret)) == 32
    assert secret.startswith(secrets.visible_prefix(secret))
    assert len(secrets.visible_prefix(secret)) < 16


@given(new_secrets, st.integers(0, 42), st.integers(1, 61))
def test_one_wrong_character_is_detected(secret: str, at: int, further: int) -> None:
    other = BASE62[(BASE62.find(secret[at]) + further) % 62]
    assert not secrets.is_well_formed(secret[:at] + other + secret[at + 1 :])


@given(new_secrets, st.integers(5, 41))
def test_two_exchanged_characters_are_detected(secret: str, at: int) -> None:
    swapped = secret[:at] + secret[at + 1] + secret[at] + secret[at + 2 :]
    assert secrets.is_well_formed(swapped) == (swapped == secret)


@given(new_secrets, st.integers(0, 42))
def test_a_truncated_or_longer_secret_is_detected(secret: str, length: int) -> None:
    assert not secrets.is_well_formed(secret[:length])
    assert not secrets.is_well_formed(secret + secret[:1])


@given(st.text(alphabet=st.characters(), min_size=32, max_size=32))
def test_only_base_62_is_well_formed(body: str) -> None:
    whole = secrets.PREFIX + body
    # A correct checksum, even if the rest is invalid.
    whole += secrets._checksum(whole) if whole.isascii() else "000000"
    assert secrets.is_well_formed(whole) == bool(FORMAT.fullmatch(whole))


@pytest.fixture(scope="module")
def authenticator() -> Authenticator:
    db = NoDatabase("", pool_size=1)
    ring = KeyRing(db, Vault(bytes(32)))
    return Authenticator(db, SessionTokens(ring, "http://127.0.0.1"), idle_days=30)


async def test_a_wrong_checksum_is_refused_without_a_database_query(
    authenticator: Authenticator,
) -> None:
    for _ in range(1000):
        secret = secrets.new_secret()
        wrong = secret[:-1] + ("0" if secret[-1] != "0" else "1")
        with pytest.raises(ApiKeyInvalid):
            await authenticator.authenticate(f"Bearer {wrong}", None)


async def test_a_secret_with_a_correct_checksum_is_looked_up(authenticator: Authenticator) -> None:
    with pytest.raises(NoDatabase.Queried):
        await authenticator.authenticate(f"Bearer {secrets.new_secret()}", None)
