"""Requests as the declarations of commands have them, with bad words in every place, and now and then maimed."""

from __future__ import annotations

from random import Random

import bad_words

import rlite_pubsub.commands.all  # noqa: F401
from rlite_pubsub.engine.table import TABLE, Arg, Command

_REPEATS = (1, 1, 1, 2, 2, 3, 5, 40)


def commands(excluded: frozenset[bytes]) -> list[Command]:
    """All that can be called, subcommands among them, in the order of their names."""
    found = []
    for command in TABLE.commands.values():
        found += [each for each in (command, *command.subcommands.values()) if each.handler is not None]
    return sorted((each for each in found if each.name not in excluded), key=lambda each: each.name)


def request_of(chance: Random, command: Command) -> list[bytes]:
    """A request that names this command."""
    words = [word for arg in command.arguments for word in _words(chance, arg)]
    if chance.random() < 0.15:
        words = _maimed(chance, words)
    lack = command.fewest - len(words) - len(command.name.split(b"|"))
    if lack > 0 and chance.random() < 0.9:
        words += [bad_words.text(chance) for _ in range(lack)]
    return command.name.split(b"|") + words


def _words(chance: Random, arg: Arg) -> list[bytes]:
    if arg.optional and chance.random() < 0.6:
        return []
    words: list[bytes] = []
    times = chance.choice(_REPEATS) if arg.multiple else 1
    for repeat in range(times):
        if arg.token is not None and (repeat == 0 or arg.multiple_token):
            words.append(arg.token.encode())
        words += _value(chance, arg)
    if arg.name in ("numkeys", "numfields", "count") and arg.type == "integer" and chance.random() < 0.6:
        return words[:-1] + [b"%d" % chance.randrange(4)]
    return words


def _value(chance: Random, arg: Arg) -> list[bytes]:
    match arg.type:
        case "pure-token":
            return []
        case "oneof":
            return _words(chance, chance.choice(arg.arguments)) if arg.arguments else []
        case "block":
            return [word for inner in arg.arguments for word in _words(chance, inner)]
        case "key":
            return [bad_words.key(chance)]
    if arg.name in bad_words.BY_NAME and chance.random() < 0.7:
        return [chance.choice(bad_words.BY_NAME[arg.name])]
    match arg.type:
        case "integer" | "unix-time":
            return [bad_words.number(chance)]
        case "double":
            return [bad_words.double(chance)]
        case "pattern":
            return [chance.choice(bad_words.PATTERNS)]
    return [bad_words.text(chance)]


def _maimed(chance: Random, words: list[bytes]) -> list[bytes]:
    words = list(words)
    for _ in range(chance.randrange(1, 3)):
        at = chance.randrange(len(words) + 1)
        match chance.randrange(4):
            case 0:
                del words[at : at + chance.randrange(1, 3)]
            case 1:
                words.insert(at, bad_words.text(chance))
            case 2:
                words[at:at] = words[at : at + 2]
            case 3 if at < len(words):
                words[at] = bad_words.text(chance)
    return words
