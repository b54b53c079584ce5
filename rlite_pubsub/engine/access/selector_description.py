"""A selector in words: rules that make it again, few and always the same, in the way of redis-server 7.0.15.

All or nothing, then the categories that fit best, one after the other, then single commands for what is left over.
Commands of ours are left out of account where the categories are chosen, so that the words are Redis's.
"""

from __future__ import annotations

from rlite_pubsub.engine.access.acl_vocabulary import EVERYTHING, NOTHING, Vocabulary, vocabulary
from rlite_pubsub.engine.access.selector import Selector


def selector_text(selector: Selector) -> bytes:
    """All of it, as ACL LIST says it."""
    channels = [] if selector.all_channels else [b"resetchannels"]
    said = (selector.keys_text, *channels, selector.channels_text, commands_text(selector))
    return b" ".join([part for part in said if part])


def commands_text(selector: Selector) -> bytes:
    """Its commands."""
    if selector.allowed in (EVERYTHING, NOTHING) and not selector.first_args:
        return b"+@all" if selector.allowed == EVERYTHING else b"-@all"
    words = vocabulary()
    narrows = selector.allowed < 0  # it began with +@all: what later versions have is allowed, too
    rules, reached = _categories(words, selector.allowed, narrows)
    return b" ".join([b"+@all" if narrows else b"-@all", *rules, *_single_commands(words, selector, reached)])


def _categories(words: Vocabulary, allowed: int, narrows: bool) -> tuple[list[bytes], int]:
    """The categories that fit best, as rules, and the commands that these rules allow."""
    rules: list[bytes] = []
    reached = EVERYTHING if narrows else NOTHING
    left = allowed  # as if what the chosen rules say had not been said
    free = list(words.counted)
    while True:
        best, fewest, most = b"", 0, 0
        for category in free:
            members = words.counted[category]
            on = (members & left).bit_count()
            off = members.bit_count() - on
            same, different = (off, on) if narrows else (on, off)
            if same > different and (not best or different < fewest or (different == fewest and same > most)):
                best, fewest, most = category, different, same
        if not best:
            return rules, reached
        free.remove(best)
        bits = words.categories[best]
        if narrows:
            rules.append(b"-@" + best)
            reached, left = reached & ~bits, left | bits
        else:
            rules.append(b"+@" + best)
            reached, left = reached | bits, left & ~bits


def _single_commands(words: Vocabulary, selector: Selector, reached: int) -> list[bytes]:
    """Rules for the commands that are not as the categories leave them. Containers come before their subcommands."""
    rules = []
    for word in words.words.values():
        allowed = selector.allowed & word.bit
        if allowed != reached & word.bit:
            rules.append((b"+" if allowed else b"-") + word.name)
            reached = reached | word.with_subcommands if allowed else reached & ~word.with_subcommands
        if not allowed:
            rules += [b"+%b|%b" % (word.name, arg) for arg in selector.first_args.get(word.name, ())]
    return rules
