"""A second parser of requests, plain and slow, and the ways in which the real one can be asked the same question.

It follows what redis-server 7.0.15 does with its query buffer, step by step and with no other aim: it keeps all that
came in, looks at it from the start of the request, and never reads ahead. What the two disagree about is a bug in one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rlite_pubsub.protocol.batch import BatchReader, Run
from rlite_pubsub.protocol.errors import ProtocolError
from rlite_pubsub.protocol.parser import Parser

Outcome = tuple[list[list[bytes]], bytes | None]
"""The requests, and the error that came after them."""

LONGEST_LINE = 65536
SPACES = " \t\n\v\f\r"
ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "a": "\a"}


class Refused(Exception):
    """Redis answers with an error and closes."""


class NeedsMore(Exception):
    """Redis waits for more bytes."""


class ReferenceParser:
    """One connection to Redis, as far as it parses."""

    def __init__(self, trusted: bool = True, max_bulk_bytes: int = 512 * 1024 * 1024) -> None:
        self.trusted = trusted
        self.max_bulk_bytes = max_bulk_bytes
        self.buffer = b""
        self.args: list[bytes] = []
        self.missing = 0
        self.bulk_length: int | None = None

    def feed(self, chunk: bytes) -> list[list[bytes]]:
        """The requests that the chunk completes. A Refused carries those before it as its second argument."""
        self.buffer += chunk
        requests: list[list[bytes]] = []
        try:
            while self.buffer or self.missing:
                request = self.request()
                if request:
                    requests.append(request)
        except NeedsMore:
            pass
        except Refused as refused:
            raise Refused(refused.args[0], requests) from None
        return requests

    def request(self) -> list[bytes]:
        if not self.missing and self.buffer[:1] != b"*":
            return self.inline()
        if not self.missing:
            digits = self.header("too big mbulk count string")
            count = integer(digits[1:])
            if count is None or count > 2**31 - 1:
                raise Refused("invalid multibulk length")
            if count > 10 and not self.trusted:
                raise Refused("unauthenticated multibulk length")
            self.drop(len(digits) + 2)
            self.missing = max(0, count)
        while self.missing:
            self.args.append(self.argument())
            self.missing -= 1
        args, self.args = self.args, []
        return args

    def argument(self) -> bytes:
        if self.bulk_length is None:
            line = self.header("too big bulk count string")
            if line[:1] != "$":
                got = (line + "\r")[0]
                raise Refused(f"expected '$', got '{got}'")
            length = integer(line[1:])
            if length is None or length < 0 or length > self.max_bulk_bytes:
                raise Refused("invalid bulk length")
            if length > 16384 and not self.trusted:
                raise Refused("unauthenticated bulk length")
            self.drop(len(line) + 2)
            self.bulk_length = length
        if len(self.buffer) < self.bulk_length + 2:
            raise NeedsMore
        argument = self.buffer[: self.bulk_length]
        self.drop(self.bulk_length + 2)
        self.bulk_length = None
        return argument

    def header(self, too_long: str) -> str:
        """The text before the first CR, if a byte stands behind the CR; a NUL ends what is searched."""
        searched = self.buffer.split(b"\0")[0].decode("latin-1")
        if "\r" not in searched:
            if len(self.buffer) > LONGEST_LINE:
                raise Refused(too_long)
            raise NeedsMore
        line = searched.split("\r")[0]
        if len(self.buffer) < len(line) + 2:
            raise NeedsMore
        return line

    def inline(self) -> list[bytes]:
        searched = self.buffer.split(b"\0")[0].decode("latin-1")
        if "\n" not in searched:
            if len(self.buffer) > LONGEST_LINE:
                raise Refused("too big inline request")
            raise NeedsMore
        line = searched.split("\n")[0]
        words = Words(line.removesuffix("\r")).all()
        self.drop(len(line) + 1)
        return [word.encode("latin-1") for word in words]

    def drop(self, count: int) -> None:
        self.buffer = self.buffer[count:]


class Words:
    """The words of a line, taken from its front one character at a time."""

    def __init__(self, line: str) -> None:
        self.rest = line

    def all(self) -> list[str]:
        words = []
        while self.rest.lstrip(SPACES):
            self.rest = self.rest.lstrip(SPACES)
            words.append(self.word())
        return words

    def word(self) -> str:
        word = ""
        while self.rest and self.rest[0] not in " \n\r\t":
            character = self.take(1)
            if character not in "\"'":
                word += character
                continue
            word += self.quoted(character)
            if self.rest and self.rest[0] not in SPACES:
                raise Refused("unbalanced quotes in request")
            break
        return word

    def quoted(self, quote: str) -> str:
        text = ""
        while self.rest:
            character = self.take(1)
            if character == quote:
                return text
            if character == "\\" and self.rest:
                character = self.escaped(quote)
            text += character
        raise Refused("unbalanced quotes in request")

    def escaped(self, quote: str) -> str:
        if quote == "'":
            return self.take(1) if self.rest[0] == "'" else "\\"
        digits = self.rest[1:3]
        if self.rest[0] == "x" and len(digits) == 2 and all(digit in "0123456789abcdefABCDEF" for digit in digits):
            self.take(3)
            return chr(int(digits, 16))
        character = self.take(1)
        return ESCAPED.get(character, character)

    def take(self, count: int) -> str:
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken


def integer(text: str) -> int | None:
    """A decimal in its only spelling, within 64 bits."""
    digits = text.removeprefix("-")
    if len(text) > 20 or not digits or any(digit not in "0123456789" for digit in digits):
        return None
    number = int(text)
    return number if str(number) == text and -(2**63) <= number < 2**63 else None


def by_reference(chunks: Iterable[bytes], trusted: bool = True, max_bulk_bytes: int = 2**29) -> Outcome:
    """What Redis makes of these reads."""
    parser = ReferenceParser(trusted, max_bulk_bytes)
    requests: list[list[bytes]] = []
    for chunk in chunks:
        try:
            requests += parser.feed(chunk)
        except Refused as refused:
            return requests + refused.args[1], b"ERR Protocol error: " + refused.args[0].encode("latin-1")
    return requests, None


def by_next(chunks: Iterable[bytes], trusted: bool = True, max_bulk_bytes: int = 2**29) -> Outcome:
    """The requests one by one, as an unauthenticated peer's are taken."""
    parser = Parser(BatchReader(), max_bulk_bytes, trusted)
    requests: list[list[bytes]] = []
    for chunk in chunks:
        parser.feed(chunk)
        try:
            while (request := parser.next()) is not None:
                requests.append(request)
        except ProtocolError as failure:
            return requests, failure.text
    return requests, None


def by_take(chunks: Iterable[bytes], trusted: bool = True, max_bulk_bytes: int = 2**29) -> Outcome:
    """All complete requests of each chunk at once."""
    return taken(Parser(BatchReader(), max_bulk_bytes, trusted), chunks)


def by_take_with_a_run_expected(chunks: Iterable[bytes], trusted: bool = True, max_bulk_bytes: int = 2**29) -> Outcome:
    """The same, on a connection that has learned to expect requests with the head of the first one."""
    chunks = list(chunks)
    parser = Parser(BatchReader(), trusted=trusted)
    whole = by_next([b"".join(chunks)])[0]
    if whole:
        for _ in range(2):
            parser.take(written([[*whole[0][:-1], b"learn"]]))
    parser.max_bulk_bytes = max_bulk_bytes
    return taken(parser, chunks)


def taken(parser: Parser, chunks: Iterable[bytes]) -> Outcome:
    requests: list[list[bytes]] = []
    for chunk in chunks:
        for item in parser.take(chunk):
            requests += item.commands() if isinstance(item, Run) else [item]
        if parser.failure is not None:
            return requests, parser.failure.text
    return requests, None


WAYS: list[Callable[..., Outcome]] = [by_next, by_take, by_take_with_a_run_expected]


def written(requests: Iterable[list[bytes]]) -> bytes:
    """The requests as a client writes them."""
    return b"".join(
        b"*%d\r\n" % len(request) + b"".join(b"$%d\r\n%b\r\n" % (len(arg), arg) for arg in request)
        for request in requests
    )


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    """`data` in pieces that end at these places."""
    edges = [0, *sorted(places), len(data)]
    return [data[start:end] for start, end in zip(edges, edges[1:], strict=False)]


def assert_all_ways_agree(chunks: list[bytes], trusted: bool = True, max_bulk_bytes: int = 2**29) -> Outcome:
    """Ask the parser every way, and the reference; what they agree on is returned."""
    expected = by_reference(chunks, trusted, max_bulk_bytes)
    for way in WAYS:
        if way is by_next or trusted:
            outcome = way(chunks, trusted, max_bulk_bytes)
            assert outcome == expected, (way.__name__, chunks)
            assert all(type(argument) is bytes for request in outcome[0] for argument in request)
    return expected
