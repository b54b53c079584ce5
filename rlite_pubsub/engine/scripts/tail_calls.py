"""Compiled Lua without tail calls.

A function that is called last ("return redis.call(...)") takes the place of its caller: the line from which it was
called is forgotten, and errors cannot name it. In Redis the called function is mostly in C, for which Lua keeps the
caller. Here it is in Lua, so tail calls must not happen.

The output of string.dump in Lua 5.1:

    "\\x1bLua" | 0x51 | 0 | little endian? | size of an int | a size_t | an instruction | a number | integral?
    function: name (string) | line, last line (ints) | 4 bytes | code | constants | functions | lines | locals | outer

All lists begin with an int, their length; a string with a size_t, that of its text and a zero byte, or 0.
"""

from __future__ import annotations

from typing import Final, Literal

_HEADER_BYTES: Final = 12
_OPCODE: Final = 0x3F  # the lowest six bits of an instruction
_CALL: Final = 28
_TAILCALL: Final = 29
_NIL, _BOOLEAN, _NUMBER, _STRING = 0, 1, 3, 4


class _Reader:
    def __init__(self, binary: bytes) -> None:
        self.binary = bytearray(binary)
        order = binary[6]
        self._order: Literal["little", "big"] = "little" if order == 1 else "big"
        self._int, self._size, self._instruction, self._number = binary[7], binary[8], binary[9], binary[10]
        self._lowest = 0 if order == 1 else self._instruction - 1  # the byte of an instruction with its opcode
        self._at = _HEADER_BYTES
        self.found = False

    def function(self) -> None:
        self._string()
        self._at += 2 * self._int + 4
        for _ in range(self._integer(self._int)):
            place = self._at + self._lowest
            if self.binary[place] & _OPCODE == _TAILCALL:
                self.binary[place] = self.binary[place] & ~_OPCODE & 0xFF | _CALL
                self.found = True
            self._at += self._instruction
        for _ in range(self._integer(self._int)):
            self._constant()
        for _ in range(self._integer(self._int)):
            self.function()
        self._skip(self._integer(self._int) * self._int)
        for _ in range(self._integer(self._int)):
            self._string()
            self._at += 2 * self._int
        for _ in range(self._integer(self._int)):
            self._string()

    def _constant(self) -> None:
        kind = self.binary[self._at]
        self._at += 1
        if kind == _STRING:
            self._string()
        else:
            self._at += {_NIL: 0, _BOOLEAN: 1, _NUMBER: self._number}[kind]

    def _string(self) -> None:
        self._skip(self._integer(self._size))

    def _skip(self, size: int) -> None:
        self._at += size

    def _integer(self, size: int) -> int:
        value = int.from_bytes(self.binary[self._at : self._at + size], self._order)
        self._at += size
        return value


def without_tail_calls(binary: bytes) -> bytes:
    """Return the same function with each call returning to its caller; the very same bytes if that is so already."""
    reader = _Reader(binary)
    reader.function()
    return bytes(reader.binary) if reader.found else binary
