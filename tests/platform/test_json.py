"""The strict parser reads the same with its fast decoder and with its slow one."""

import json as standard
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rota.platform import json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=20,
)
TEXTS = st.builds(
    lambda value, ascii_only: standard.dumps(value, ensure_ascii=ascii_only),
    VALUES,
    st.booleans(),
)


def outcome(raw: bytes, read: Any) -> Any:
    try:
        # Equal values of different types, such as 1 and 1.0, are not the same.
        return repr(read(raw))
    except json.InvalidJson as error:
        return f"InvalidJson: {error}"


@given(text=TEXTS, at=st.integers(0, 60), instead=st.binary(max_size=3))
@example(text='{"a": 1, "a": 2}', at=60, instead=b"")
@example(text='{"a": {"b": 1}, "b": {"a": [{}, {}, []]}}', at=60, instead=b"")
@example(text='["\\u0000", "\\\\u0000"]', at=60, instead=b"")
@example(text='["\\ud800"]', at=60, instead=b"")
@example(text="[1e999]", at=60, instead=b"")
@example(text="[1E3, 1e+3, -0, -0.0, 5.]", at=60, instead=b"")
@example(text="[Infinity, NaN]", at=60, instead=b"")
@example(text=f"[{'1' * 400}, 1]", at=60, instead=b"")
@example(text=f"[{'1' * 401}]", at=60, instead=b"")
@example(text=f"[1.{'1' * 400}]", at=600, instead=b"")
@example(text=f"[1{'0' * 312}.0]", at=600, instead=b"")
@example(text=f"[-1{'0' * 308}.5]", at=600, instead=b"")
@example(text="[" * 64 + "]" * 64, at=600, instead=b"")
@example(text="[" * 65 + "]" * 65, at=600, instead=b"")
@example(text='{"a":' * 64 + "{}" + "}" * 64, at=600, instead=b"")
@example(text="[" * 300 + "]" * 300, at=600, instead=b"")
@example(text='\ufeff{"a": 1}', at=600, instead=b"")
@example(text='["a\tb"]', at=3, instead=b"\xff")
def test_both_decoders_agree(text: str, at: int, instead: bytes) -> None:
    raw = text.encode(errors="surrogatepass")
    # Mostly not valid any more.
    raw = raw[:at] + instead + raw[at + len(instead) :]
    assert outcome(raw, json.loads) == outcome(raw, json._slow_loads)


@pytest.mark.parametrize("size", [json.MAX_FAST_BYTES - 10, json.MAX_FAST_BYTES + 10])
def test_large_texts_are_read(size: int) -> None:
    text = "x" * size
    assert json.loads(standard.dumps([text]).encode()) == [text]
