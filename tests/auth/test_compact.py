"""Parsing tokens: every change to a token is detected."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OKPKey

from rota.auth import compact
from rota.auth.compact import BadToken

KEY = OKPKey.generate_key("Ed25519")
UNTRUSTED = OKPKey.generate_key("Ed25519")
HEADER = {"alg": "Ed25519", "kid": "one", "typ": "JWT"}
CHARACTERS = string.ascii_letters + string.digits + "-_.=+/ \n\0é"

claims = st.dictionaries(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53)),
    max_size=5,
)


def accepted(text: str) -> bool:
    try:
        compact.verify(compact.parse(text), KEY, ["Ed25519"])
    except BadToken:
        return False
    return True


@given(claims)
def test_a_signed_token_can_be_parsed(claims: dict[str, object]) -> None:
    token = compact.parse(compact.sign(HEADER, claims, KEY))
    compact.verify(token, KEY, ["Ed25519"])
    assert (token.header, token.claims) == (HEADER, claims)


@given(claims, st.data())
def test_a_changed_character_is_detected(claims: dict[str, object], data: st.DataObject) -> None:
    text = compact.sign(HEADER, claims, KEY)
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from(CHARACTERS).filter(lambda c: c != text[at]))
    assert not accepted(text[:at] + other + text[at + 1 :])


@given(claims, st.data())
def test_a_missing_or_additional_character_is_detected(
    claims: dict[str, object], data: st.DataObject
) -> None:
    text = compact.sign(HEADER, claims, KEY)
    at = data.draw(st.integers(0, len(text) - 1))
    assert not accepted(text[:at] + text[at + 1 :])
    assert not accepted(text[:at] + data.draw(st.sampled_from(CHARACTERS)) + text[at:])


@given(st.text())
def test_any_other_text_is_refused(text: str) -> None:
    assert not accepted(text)


@given(st.lists(st.text(string.ascii_letters + string.digits + "-_"), min_size=3, max_size=3))
def test_any_three_segments_are_refused(segments: list[str]) -> None:
    assert not accepted(".".join(segments))


@given(claims)
def test_the_signature_of_another_key_is_refused(claims: dict[str, object]) -> None:
    assert not accepted(compact.sign(HEADER, claims, UNTRUSTED))


def test_an_algorithm_that_is_not_allowed_is_refused() -> None:
    token = compact.parse(compact.sign(HEADER, {}, KEY))
    with pytest.raises(BadToken, match="algorithm"):
        compact.verify(token, KEY, ["ES256"])
