"""An entry's fields as one text: a JSON object of its names and values, in order, repeats kept.

    {"item": "tea", "price": "3.50"}

A value that is not UTF-8 is `{"base64": "…"}`, and of such a name each byte beyond ASCII is `\xff`. The HTTP API says
the same of an event without a body. expressions.py has Spark make the same bytes.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

_NOTHING = pa.scalar(b"", pa.binary())
_ESCAPES = str.maketrans({
    **{chr(code): f"\\u{code:04X}" for code in range(0x20)},
    "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\",
})  # fmt: skip
"""As Jackson has them, which is what Spark uses."""
_CONTROL = r"[\x00-\x1f]"


def json_of(fields: pa.ListArray, without: bytes | None = None) -> pa.BinaryArray:
    """Each entry's fields as a JSON object. `without`: a name that is left out."""
    flat = fields.flatten()
    names, values = flat.field(0), flat.field(1)
    edges = pc.subtract(fields.offsets, fields.offsets[0])
    if without is not None:
        is_kept = pc.not_equal(names, pa.scalar(without, pa.binary()))
        names, values = names.filter(is_kept), values.filter(is_kept)
        before = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(is_kept.cast(pa.int32()))])
        edges = before.take(edges)
    pairs = _joined(_quoted(names, name_text), b": ", _quoted(values, value_text))
    lists = pa.ListArray.from_arrays(edges, pairs)
    return _joined(b"{", pc.binary_join(lists, pa.scalar(b", ", pa.binary())), b"}")


def _quoted(texts: pa.BinaryArray, spell: Callable[[bytes], bytes]) -> pa.BinaryArray:
    """Return texts as JSON: all at once, or, if they are not text or have control characters, each distinct one by
    itself."""
    if not _is_readable(texts):
        encoded = texts.dictionary_encode()
        spelled = pa.array([spell(one.as_py()) for one in encoded.dictionary], pa.binary())
        return spelled.take(encoded.indices)
    for mark in ("\\", '"'):
        if pc.any(pc.match_substring(texts, mark)).as_py():
            texts = pc.replace_substring(texts, mark, f"\\{mark}")
    return _joined(b'"', texts, b'"')


def _is_readable(texts: pa.BinaryArray) -> bool:
    try:
        texts.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return not pc.any(pc.match_substring_regex(texts, _CONTROL)).as_py()


def name_text(name: bytes) -> bytes:
    """Return a name in JSON."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        text = name.decode("ascii", "backslashreplace")
    return _json(text)


def value_text(value: bytes) -> bytes:
    """Return a value in JSON."""
    try:
        return _json(value.decode())
    except UnicodeDecodeError:
        return json.dumps({"base64": b64encode(value).decode()}).encode()


def _json(text: str) -> bytes:
    return f'"{text.translate(_ESCAPES)}"'.encode()


def is_text(value: bytes) -> bool:
    """Return whether it is UTF-8."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _joined(*pieces: pa.Array | bytes) -> pa.Array:
    scalars = [pa.scalar(piece, pa.binary()) if isinstance(piece, bytes) else piece for piece in pieces]
    return pc.binary_join_element_wise(*scalars, _NOTHING)
