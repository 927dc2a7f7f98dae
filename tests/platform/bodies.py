"""Hostile request bodies. Every route must refuse all of them."""

from collections.abc import Iterator, Mapping
from typing import Any

LIMIT = 2 * 1024 * 1024


def hostile_bodies() -> Mapping[str, bytes]:
    """The bodies, by a name that says what is wrong."""
    deep = 100_000
    return {
        "empty": b"",
        "only spaces": b" " * LIMIT,
        "a raw NUL": b'{"name": "a\x00b"}',
        "an escaped NUL": b'{"name": "a\\u0000b"}',
        "an escaped NUL in a key": b'{"na\\u0000me": 1}',
        "only a NUL": b"\x00",
        "a control character in a string": b'{"name": "a\nb"}',
        "a lone surrogate, raw": b'{"name": "\xed\xa0\x80"}',
        "a lone surrogate, escaped": b'{"name": "\\ud800"}',
        "surrogates in the wrong order": b'{"name": "\\udc00\\ud800"}',
        "a lone surrogate in a key": b'{"\\udfff": 1}',
        "a nested lone surrogate": b'{"a": [{"b": [[{"c": "\\uD83D"}]]}]}',
        "invalid UTF-8": b'{"name": "\xff\xfe"}',
        "overlong UTF-8": b'{"name": "\xc0\xaf"}',
        "UTF-16": '{"name": "a"}'.encode("utf-16"),
        "UTF-32": '{"name": "a"}'.encode("utf-32"),
        "a byte order mark": b'\xef\xbb\xbf{"name": "a"}',
        "arrays 100,000 deep": b"[" * deep,
        "arrays 100,000 deep and closed": b"[" * deep + b"]" * deep,
        "objects 100,000 deep": b'{"a":' * deep + b"1" + b"}" * deep,
        "arrays and objects 100,000 deep": b'[{"a":' * deep + b"1" + b"}]" * deep,
        "arrays 65 deep in a field": b'{"name": "a", "x": ' + b"[" * 64 + b"]" * 64 + b"}",
        "arrays 900 deep": b'{"x": ' + b"[" * 900 + b"]" * 900 + b"}",
        "an integer of a million digits": b'{"name": ' + b"9" * 1_000_000 + b"}",
        "an integer of 401 digits": b'{"name": ' + b"9" * 401 + b"}",
        "a fraction of a million digits": b'{"name": 0.' + b"3" * 1_000_000 + b"}",
        "1e999999": b'{"name": 1e999999}',
        "-1e999999": b'{"name": -1e999999}',
        "NaN": b'{"name": NaN}',
        "Infinity": b'{"name": Infinity}',
        "-Infinity": b'{"name": -Infinity}',
        "-0": b"-0",
        "a hexadecimal number": b'{"name": 0x10}',
        "a number with a leading zero": b'{"name": 01}',
        "duplicate keys": b'{"name": "a", "name": "b"}',
        "nested duplicate keys": b'{"name": "a", "x": [{"y": {"k": 1, "k": 1}}]}',
        "duplicate keys, one escaped": b'{"name": "a", "n\\u0061me": "b"}',
        "duplicate keys a megabyte long": b'{"%b": 1, "%b": 2}'
        % (b"k" * 1_000_000, b"k" * 1_000_000),
        "one byte above the limit": b'{"name": "a"}'.ljust(LIMIT + 1),
        "trailing garbage": b'{"name": "a"} x',
        "two documents": b'{"name": "a"}{"name": "a"}',
        "half a document": b'{"name": "a',
        "a trailing comma": b'{"name": "a",}',
        "top-level null": b"null",
        "a top-level string": b'"name"',
        "a top-level number": b"1",
        "a top-level boolean": b"true",
        "a top-level array": b'[{"name": "a"}]',
        "an array of a million zeros": b"[" + b"0," * 1_000_000 + b"0]",
        "a field of a million zeros": b'{"name": [' + b"0," * 1_000_000 + b"0]}",
        "half a million fractions": b"[" + b"1.5," * 500_000 + b"0]",
        "a quarter of a million objects": b"[" + b'{"":0},' * 280_000 + b"0]",
        "half a million empty arrays": b"[" + b"[]," * 600_000 + b"0]",
        "15,000 deep arrays": b"[" + (b"[" * 60 + b"]" * 60 + b",") * 15_000 + b"0]",
        "200,000 keys": b"{" + b",".join(b'"%d":1' % i for i in range(200_000)) + b"}",
        "a key a megabyte long twice": b'{"%b": {"%b": ' % (b"a" * 1_000_000, b"b" * 1_000_000),
        "a million empty strings": b'""' * 1_000_000,
        "only quotes": b'"' * LIMIT,
        "only backslashes": b'"' + b"\\" * (LIMIT - 1),
        "only escaped quotes": b'"' + b'\\"' * 1_000_000,
        "only commas": b"," * LIMIT,
        "only opening braces": b"{" * LIMIT,
        "a comment": b'{/* name */ "name": "a"}',
        "a line comment": b'{"name": "a"} // a',
        "single quotes": b"{'name': 'a'}",
        "keys without quotes": b"{name: 1}",
        "a form": b"name=a&idToken=b",
        "HTML": b"<html></html>",
        "a pickle": b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94.",
        "a gzip file": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xabV*I-.\x01",
    }


def field_floods(schema: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """For each field of a body, as many invalid values as the limits allow."""
    for name in schema.get("properties", {}):
        yield f"{name} is 9,000 wrong items", {name: [0] * 9_000}
        yield f"{name} is 4,000 wrong objects", {name: [{"id": 0}] * 4_000}
        yield (
            f"{name} is an object of 9,000 wrong fields",
            {name: {str(i): [] for i in range(9_000)}},
        )
        # Names that are similar to known ones take the longest to describe.
        unknown = {f"{known[:7]}{i}": 0 for i, known in enumerate(("maximum", "name", "const") * 6)}
        yield f"{name} is 500 objects of unknown fields", {name: [unknown] * 500}
        yield (
            f"{name} is an object of 500 objects of unknown fields",
            {name: {str(i): unknown for i in range(500)}},
        )
