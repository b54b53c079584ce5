"""The table of requests: one row per promise, fed to every parser, every way, and to the real redis-server."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """What a stream means. `open` is a stream that ends within a request, so that nothing may follow it."""

    name: str
    data: bytes
    requests: list[list[bytes]]
    error: bytes | None = None
    trusted: bool = True
    open: bool = False


PING = [b"PING"]
PING_BYTES = b"*1\r\n$4\r\nPING\r\n"


def expected(got: bytes) -> bytes:
    return b"expected '$', got '" + got + b"'"


COUNT, BULK = b"invalid multibulk length", b"invalid bulk length"
QUOTES = b"unbalanced quotes in request"

WELL_FORMED = [
    Case("one request", PING_BYTES, [PING]),
    Case("a pipeline", PING_BYTES * 3, [PING] * 3),
    Case("arguments", b"*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n", [[b"ECHO", b"hello"]]),
    Case("an empty argument", b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", [[b"ECHO", b""]]),
    Case("an empty name", b"*1\r\n$0\r\n\r\n", [[b""]]),
    Case("newlines in an argument", b"*2\r\n$4\r\nECHO\r\n$6\r\n\r\n*1\r\n\r\n", [[b"ECHO", b"\r\n*1\r\n"]]),
    Case("a request in an argument", b"*2\r\n$4\r\nECHO\r\n$14\r\n" + PING_BYTES + b"\r\n", [[b"ECHO", PING_BYTES]]),
    Case(
        "NUL and high bytes in an argument", b"*2\r\n$4\r\nECHO\r\n$3\r\n\x00\xff\x80\r\n", [[b"ECHO", b"\x00\xff\x80"]]
    ),
    Case("ten arguments", b"*10\r\n" + b"$1\r\na\r\n" * 10, [[b"a"] * 10]),
    Case("many arguments", b"*1200\r\n" + b"$1\r\na\r\n" * 1200, [[b"a"] * 1200]),
]
ODD = [
    Case("no arguments", b"*0\r\n" + PING_BYTES, [PING]),
    Case("minus ten arguments", b"*-10\r\n" + PING_BYTES, [PING]),
    Case("the least number of arguments", b"*-9223372036854775808\r\n" + PING_BYTES, [PING]),
    Case("a terminator that is none", b"*2\r\n$4\r\nECHOxx$1\r\nayy", [[b"ECHO", b"a"]]),
    Case("a header that ends in CR and anything", b"*1\rx$4\ryPING\r\n", [PING]),
    Case("a terminator that hides an inline request", b"*1\r\n$4\r\nPINGxx+x\r\n", [PING, [b"+x"]]),
    Case("a terminator that hides an integer", b"*1\r\n$4\r\nPINGxx:0\r\n", [PING, [b":0"]]),
    Case("a terminator that hides an empty request", b"*1\r\n$4\r\nPINGxx*0\r\n" + PING_BYTES, [PING, PING]),
    Case("a false value between requests", PING_BYTES + b"#f\r\n" + PING_BYTES, [PING, [b"#f"], PING]),
    Case("a bare bulk string", b"$4\r\nPING\r\n", [[b"$4"], PING]),
    Case(
        "an empty argument whose terminator is the next request's header",
        b"*2\r\n$4\r\nECHO\r\n$0\r\n*2\r\n$4\r\nECHO\r\n",
        [[b"ECHO", b""], [b"$4"], [b"ECHO"]],
    ),
    Case("a bare empty bulk string that its end is due to", PING_BYTES + b"$0\r\n", [PING, [b"$0"]]),
    Case("a bare bulk string of newlines", PING_BYTES + b"$3\r\n\r\n", [PING, [b"$3"]]),
    Case("a zero between requests", PING_BYTES + b",0\r\n" + PING_BYTES, [PING, [b",0"], PING]),
    Case("a null", b"_\r\n", [[b"_"]]),
]
INLINE = [
    Case("a line", b"PING\r\n", [PING]),
    Case("a line that ends in LF alone", b"PING\n", [PING]),
    Case("an empty line", b"\r\n" + PING_BYTES, [PING]),
    Case("blank lines", b"\n \t\v\f\r\n\r\r\n" + PING_BYTES, [PING]),
    Case("a CR within a line", b"ECHO\ra\r\n", [[b"ECHO", b"a"]]),
    Case("blanks around words", b" \tECHO  a \r\n", [[b"ECHO", b"a"]]),
    Case("a vertical tab within a word", b"ECHO a\vb\fc\v d\r\n", [[b"ECHO", b"a\vb\fc\v", b"d"]]),
    Case("double quotes", b'ECHO "a b"\r\n', [[b"ECHO", b"a b"]]),
    Case("escapes", rb'ECHO "\n\r\t\b\a\"\\\q\x41\xfF\xg1\x4"' + b"\r\n", [[b"ECHO", b'\n\r\t\b\a"\\qA\xffxg1x4']]),
    Case("single quotes", rb"ECHO 'a \' \n b'" + b"\r\n", [[b"ECHO", rb"a ' \n b"]]),
    Case("empty quotes", b"ECHO \"\" ''\r\n", [[b"ECHO", b"", b""]]),
    Case("quotes that open within a word", b'ECHO a"b c"\r\n', [[b"ECHO", b"ab c"]]),
    Case("a backslash outside of quotes", b"ECHO \\n\r\n", [[b"ECHO", b"\\n"]]),
    Case("a star within a line", b"ECHO *1\r\n", [[b"ECHO", b"*1"]]),
    Case("a star after a blank", b" *1\r\n", [[b"*1"]]),
    Case("lines between requests", PING_BYTES + b"PING\n" + PING_BYTES, [PING] * 3),
    Case("quotes that do not end", b'ECHO "a\r\n', [], QUOTES),
    Case("single quotes that do not end", b"ECHO 'a\r\n", [], QUOTES),
    Case("a backslash last", b'ECHO "a\\\r\n', [], QUOTES),
    Case("an escaped quote last", b'ECHO "a\\"\r\n', [], QUOTES),
    Case("a word glued to quotes", b'ECHO "a"b\r\n', [], QUOTES),
    Case("quotes glued to quotes", b'set """test-key""" test-value\r\n', [], QUOTES),
    Case("unbalanced quotes after requests", PING_BYTES * 2 + b"'\r\n", [PING] * 2, QUOTES),
]
REFUSED = [
    Case("too many arguments", b"*2147483648\r\n", [], COUNT),
    Case("three billion arguments", b"*3000000000\r\n", [], COUNT),
    Case("more arguments than 64 bits", b"*9223372036854775808\r\n", [], COUNT),
    Case("fewer arguments than 64 bits", b"*-9223372036854775809\r\n", [], COUNT),
    Case("no number", b"*\r\n", [], COUNT),
    Case("words for a number", b"*abc\r\n", [], COUNT),
    Case("a plus sign", b"*+1\r\n", [], COUNT),
    Case("a leading zero", b"*01\r\n", [], COUNT),
    Case("minus zero", b"*-0\r\n", [], COUNT),
    Case("a minus alone", b"*-\r\n", [], COUNT),
    Case("a blank in a number", b"*1 \r\n", [], COUNT),
    Case("an LF in a number", b"*1\n\r\n", [], COUNT),
    Case("a bad count after requests", PING_BYTES * 5 + b"*x\r\n", [PING] * 5, COUNT),
    Case("an argument without a dollar", b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n", [], expected(b"f")),
    Case("only an argument without a dollar", b"*1\r\nfoo\r\n", [], expected(b"f")),
    Case("an integer for an argument", b"*1\r\n:5\r\n", [], expected(b":")),
    Case("a nested array", b"*1\r\n*1\r\n$4\r\nPING\r\n", [], expected(b"*")),
    Case("an empty line for an argument", b"*1\r\n\r\n", [], expected(b"\r")),
    Case("an LF for an argument", b"*1\r\n\n\r\n", [], expected(b"\n")),
    Case("a high byte for an argument", b"*1\r\n\xff\r\n", [], expected(b"\xff")),
    Case("a hidden integer", b"*2\r\n$4\r\nECHOxx:5\r\n", [], expected(b":")),
    Case("a hidden status", b"*2\r\n$4\r\nECHOxx+5\r\n", [], expected(b"+")),
    Case("a hidden error", b"*2\r\n$4\r\nECHOxx-\xff\r\n", [], expected(b"-")),
    Case("a hidden array", b"*2\r\n$4\r\nECHOxx*1\r\n$1\r\na\r\n", [], expected(b"*")),
    Case("a hidden verbatim string", b"*2\r\n$4\r\nECHOxx=5\r\ntxt:a\r\n", [], expected(b"=")),
    Case("a hidden map that nothing can hash", b"*2\r\n$4\r\nECHOxx%1\r\n*0\r\n*0\r\n", [], expected(b"%")),
    Case("a hidden set that nothing can hash", b"*2\r\n$4\r\nECHOxx~1\r\n*0\r\n", [], expected(b"~")),
    Case("a hidden big number", b"*2\r\n$4\r\nECHOxx(" + b"1" * 5000 + b"\r\n", [], expected(b"(")),
    Case("a hidden null", b"*2\r\n$4\r\nECHOxx$-1\r\n", [], BULK),
    Case("a null argument", b"*2\r\n$4\r\nECHO\r\n$-1\r\n", [], BULK),
    Case("a negative length", b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$-10\r\n", [], BULK),
    Case("a length that is too large", b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$2000000000\r\n", [], BULK),
    Case("one byte too long", b"*1\r\n$536870913\r\n", [], BULK),
    Case("a length in words", b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$blabla\r\n", [], BULK),
    Case("no length", b"*1\r\n$\r\n", [], BULK),
    Case("a length with a leading zero", b"*1\r\n$04\r\nPING\r\n", [], BULK),
    *(
        Case(f"a {kind} for an argument", b"*1\r\n" + data, [], expected(data[:1]))
        for kind, data in {
            "null": b"_\r\n",
            "boolean": b"#t\r\n",
            "double": b",1.5\r\n",
            "big number": b"(1\r\n",
            "map": b"%0\r\n",
            "set": b"~0\r\n",
            "push": b">0\r\n",
            "attribute": b"|0\r\n",
            "verbatim string": b"=4\r\ntxt:\r\n",
            "blob error": b"!1\r\na\r\n",
            "status": b"+a\r\n",
            "error": b"-a\r\n",
        }.items()
    ),
]
OPEN = [
    Case("nothing", b"", [], open=True),
    Case("half a header", b"*", [], open=True),
    Case("a header without the byte after its CR", b"*1\r", [], open=True),
    Case("a header alone", b"*1\r\n", [], open=True),
    Case("the largest header", b"*2147483647\r\n", [], open=True),
    Case("a million arguments announced", b"*1000000\r\n$1\r\na\r\n", [], open=True),
    Case("the largest length", b"*1\r\n$536870912\r\n", [], open=True),
    Case("half a terminator", b"*1\r\n$4\r\nPING\r", [], open=True),
    Case("half an argument", PING_BYTES + b"*2\r\n$4\r\nECHO\r\n$5\r\nhel", [PING], open=True),
    Case("half a line", b"PIN", [], open=True),
    Case("a NUL before a line's end", b"a\x00b\r\n", [], open=True),
    Case("a NUL first", b"\x00" + PING_BYTES, [], open=True),
    Case("a NUL in a header", b"*1\x00\r\n", [], open=True),
    Case("a NUL in an argument's header", b"*1\r\n$\x004\r\n", [], open=True),
    Case("a NUL in place of a dollar", b"*1\r\n\x00\r\n", [], open=True),
]
UNTRUSTED = [
    Case("ten arguments while a password is due", b"*10\r\n" + b"$1\r\na\r\n" * 10, [[b"a"] * 10], trusted=False),
    Case("eleven arguments while a password is due", b"*11\r\n", [], b"unauthenticated multibulk length", False),
    Case(
        "16 KB while a password is due", b"*1\r\n$16384\r\n" + b"a" * 16384 + b"\r\n", [[b"a" * 16384]], trusted=False
    ),
    Case("one byte more while a password is due", b"*1\r\n$16385\r\n", [], b"unauthenticated bulk length", False),
    Case("a bad count while a password is due", b"*2147483648\r\n", [], COUNT, False),
    Case("a bad length while a password is due", b"*1\r\n$-1\r\n", [], BULK, False),
    Case("a long line of words while a password is due", b"a " * 11 + b"\r\n", [[b"a"] * 11], trusted=False),
    Case(
        "a request before the refused one", PING_BYTES + b"*11\r\n", [PING], b"unauthenticated multibulk length", False
    ),
]
CASES = [*WELL_FORMED, *ODD, *INLINE, *REFUSED, *OPEN, *UNTRUSTED]
