"""Finding the keys among a request's arguments, by its command's key specs."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.table import Command, KeySpec
from rlite_pubsub.protocol.errors import CommandError


def has_keys(command: Command) -> bool:
    """Return whether the command takes keys."""
    return any("NOT_KEY" not in spec.flags for spec in command.key_specs)


def keys_of(command: Command, args: list[bytes]) -> list[tuple[bytes, KeySpec]] | None:
    """Return the keys, each with the spec that found it; None if the arguments do not allow it."""
    places = key_places(command, args)
    return None if places is None else [(args[place], spec) for place, spec in places]


def key_places(
    command: Command, args: list[bytes], *, without_optional: bool = False
) -> list[tuple[int, KeySpec]] | None:
    """Like `keys_of`, with the keys' places in the request. `without_optional`: a spec that begins behind the last
    argument finds nothing, where COMMAND GETKEYS, as Redis has it, refuses the request: PFMERGE without sources."""
    if command.find_keys is not None:
        return command.find_keys(args)
    found: list[tuple[int, KeySpec]] = []
    for spec in command.key_specs:
        if "NOT_KEY" in spec.flags:
            continue
        begin = _begin(spec, args)
        if begin is None or (without_optional and begin >= len(args)):
            continue
        positions = _positions(spec, begin, args)
        if not positions or positions[-1] >= len(args) or "INCOMPLETE" in spec.flags:
            return None
        found += [(position, spec) for position in positions]
    return found


def _begin(spec: KeySpec, args: list[bytes]) -> int | None:
    if spec.begin[0] == "index":
        return int(spec.begin[1])
    if spec.begin[0] != "keyword":
        return len(args)
    word, start = spec.begin[1].lower().encode(), spec.begin[2]
    places = range(start, len(args) - 1) if start > 0 else range(len(args) + start, 1, -1)
    return next((place + 1 for place in places if place < len(args) and args[place].lower() == word), None)


def _positions(spec: KeySpec, begin: int, args: list[bytes]) -> range:
    if spec.find[0] == "range":
        _, last, step, limit = spec.find
        if last >= 0:
            end = begin + last
        elif limit:
            end = begin + (len(args) - begin) // limit + last
        else:
            end = len(args) + last
    elif spec.find[0] == "keynum" and begin + spec.find[1] < len(args):
        _, count_at, first, step = spec.find
        try:
            count = integer(args[begin + count_at], 0)
        except CommandError:
            return range(0)
        begin += first
        end = begin + (count - 1) * step
    else:
        return range(0)
    return range(begin, end + 1, step)
