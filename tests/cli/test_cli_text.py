"""Bytes as the command line shows them."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlite_pubsub.cli import secrets
from rlite_pubsub.cli.text import escaped
from rlite_pubsub.engine.settings.directives import DIRECTIVES


@given(st.binary())
def test_what_is_shown_is_one_printable_line_that_says_which_bytes_it_stands_for(data: bytes) -> None:
    shown = escaped(data)
    assert shown.isprintable()
    assert _bytes_of(shown) == data


def _bytes_of(shown: str) -> bytes:
    found, at = b"", 0
    while at < len(shown):
        if shown[at] != "\\":
            found, at = found + shown[at].encode(), at + 1
            continue
        size = {"x": 4, "u": 6, "U": 10}.get(shown[at + 1], 2)
        word = shown[at : at + size]
        meant = codecs.decode(word, "unicode_escape")
        found += bytes([ord(meant)]) if size == 4 else meant.encode()
        at += size
    return found


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"plain text", "plain text"),
        ("é 漢 🙂".encode(), "é 漢 🙂"),
        (b"a\tb\r\n", "a\\tb\\r\\n"),
        (b"\x1b[2J\x07", "\\x1b[2J\\x07"),
        (b"\xff\xc3", "\\xff\\xc3"),
        ("\x85\u202e".encode(), "\\u0085\\u202e"),
        (b"C:\\new", "C:\\\\new"),
    ],
)
def test_text_stays_and_what_is_none_is_escaped(data: bytes, shown: str) -> None:
    assert escaped(data) == shown


def test_every_directive_with_a_password_is_hidden_in_the_list_of_processes() -> None:
    secret = {f"--{name}" for name, directive in DIRECTIVES.items() if "secret" in directive.flags}
    assert secret - set(secrets.SECRET_FLAGS) == {"--cold-store", "--register", "--register-as", "--backup-to"}
    words = ["x.conf", "--masterauth", "a", "--REQUIREPASS 'b'", "--cold-store", "s3://k:c@h?secret_key=d&x=1"]
    words += ["--user", "ann", "on", ">e", "--port", "1", "--backup-to", "/folder"]
    assert sorted(secrets.in_flags(words)) == [b">e", b"a", b"b", b"c", b"d"]
    assert secrets.in_flags([]) == [], "`serve` alone"
