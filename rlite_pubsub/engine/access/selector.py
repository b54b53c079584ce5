"""A selector: commands, keys and channels that go together. A user may do whatever one of its selectors allows.

Never changed, only replaced, so that a rule that is refused leaves nothing behind. The rules and the texts of their
refusals are those of redis-server 7.0.15.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from rlite_pubsub.engine.access.acl_vocabulary import EVERYTHING, NOTHING, Vocabulary, Word, vocabulary
from rlite_pubsub.protocol.errors import c_string
from rlite_pubsub.protocol.glob import Glob

# -- A selector in words: rules that make it again, few and always the same, as redis-server 7.0.15 chooses them. All or
# nothing first, then the best-fitting categories, one after the other, then single commands for the rest. Commands of
# extensions are ignored when the categories are chosen, so that the words are the same as in Redis.

def selector_text(selector: Selector) -> bytes:
    """Return the whole selector as ACL LIST shows it."""
    channels = [] if selector.all_channels else [b"resetchannels"]
    said = (selector.keys_text, *channels, selector.channels_text, commands_text(selector))
    return b" ".join([part for part in said if part])


def commands_text(selector: Selector) -> bytes:
    """Return the rules for its commands."""
    if selector.allowed in (EVERYTHING, NOTHING) and not selector.first_args:
        return b"+@all" if selector.allowed == EVERYTHING else b"-@all"
    first_args = tuple([(name, tuple(given)) for name, given in selector.first_args.items()])
    return _rules_of(selector.allowed, first_args)


@lru_cache(maxsize=256)
def _rules_of(allowed: int, first_args: tuple[tuple[bytes, tuple[bytes, ...]], ...]) -> bytes:
    """Many selectors allow the same commands, and to find the words for them takes long."""
    words = vocabulary()
    narrows = allowed < 0  # it began with +@all: what later versions have is allowed, too
    rules, reached = _categories(words, allowed, narrows)
    single = _single_commands(words, allowed, dict(first_args), reached)
    return b" ".join([b"+@all" if narrows else b"-@all", *rules, *single])


def _categories(words: Vocabulary, allowed: int, narrows: bool) -> tuple[list[bytes], int]:
    """Return the best-fitting categories, as rules, and the commands that these rules allow."""
    rules: list[bytes] = []
    reached = EVERYTHING if narrows else NOTHING
    left = allowed  # as if the chosen rules had not been applied
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


def _single_commands(
    words: Vocabulary, all_allowed: int, first_args: dict[bytes, tuple[bytes, ...]], reached: int
) -> list[bytes]:
    """Return rules for the commands that the categories get wrong. Containers come before their subcommands."""
    rules = []
    for word in words.words.values():
        allowed = all_allowed & word.bit
        if allowed != reached & word.bit:
            rules.append((b"+" if allowed else b"-") + word.name)
            reached = reached | word.with_subcommands if allowed else reached & ~word.with_subcommands
        if not allowed:
            rules += [b"+%b|%b" % (word.name, arg) for arg in first_args.get(word.name, ())]
    return rules


READ, WRITE = 1, 2
"""What may be done with a key; both together is 3."""
_MODES = {READ: b"%R~", WRITE: b"%W~", READ | WRITE: b"~"}
_LETTERS = {b"r": READ, b"w": WRITE}
_WHITE = frozenset(b" \t\n\v\f\r\0")

SYNTAX_ERROR = b"Syntax error"
UNKNOWN_COMMAND = b"Unknown command or category name in ACL"
_ARGUMENT_OF_SUBCOMMAND = b"Allowing first-arg of a subcommand is not supported"
_USELESS_PATTERN = (
    b"Adding a pattern after the * pattern (or the '%b' flag) is not valid and does not have any effect. "
    b"Try '%b' to start with an empty list of %b"
)
_USELESS_KEYS = _USELESS_PATTERN % (b"allkeys", b"resetkeys", b"patterns")
_USELESS_CHANNELS = _USELESS_PATTERN % (b"allchannels", b"resetchannels", b"channels")


class RuleError(Exception):
    """A rule of ACL SETUSER is refused; `text` says why."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text.decode("latin-1"))
        self.text = text
        self.rule: bytes | None = None  # which one, once that is known


def has_white(text: bytes) -> bool:
    """Return whether the text has a character that would break a line of a file of users."""
    return not _WHITE.isdisjoint(text)


@dataclass(frozen=True, slots=True)
class Selector:
    """A selector; a new one allows nothing."""

    allowed: int = NOTHING
    """A bit for each command; see acl_vocabulary.py."""
    first_args: Mapping[bytes, tuple[bytes, ...]] = field(default_factory=dict)
    """For commands that are not allowed as such: the first arguments with which they are."""
    all_keys: bool = False
    keys: Mapping[bytes, int] = field(default_factory=dict)
    """Pattern -> what may be done with matching keys."""
    all_channels: bool = False
    channels: tuple[bytes, ...] = ()
    """Patterns."""

    @property
    def is_unrestricted(self) -> bool:
        """True if it allows everything."""
        return self.allowed == EVERYTHING and self.all_keys and self.all_channels

    @property
    def keys_text(self) -> bytes:
        """The patterns of keys, as rules."""
        if self.all_keys:
            return b"~*"
        return b" ".join([_MODES[mode] + pattern for pattern, mode in self.keys.items()])

    @property
    def channels_text(self) -> bytes:
        """The patterns of channels, as rules."""
        return b"&*" if self.all_channels else b" ".join([b"&" + pattern for pattern in self.channels])

    # -- rules

    def with_rule(self, rule: bytes) -> Selector:
        """Return this selector after one rule. Raises RuleError."""
        return self.with_rules((rule,))

    def with_rules(self, rules: Iterable[bytes]) -> Selector:
        """Return this selector after these rules. Raises RuleError."""
        draft = SelectorDraft(self)
        for rule in rules:
            draft.apply(rule)
        return draft.selector()

    # -- what it allows

    def allows_command(self, bit: int, name: bytes, first_arg: bytes | None) -> bool:
        """Return whether a command may be executed, judging by its name and its first argument."""
        if self.allowed & bit:
            return True
        args = self.first_args.get(name)
        if args is None or first_arg is None:
            return False
        said = c_string(first_arg).lower()
        return any(said == arg.lower() for arg in args)

    def allows_key(self, key: bytes, mode: int) -> bool:
        """Return whether a key may be used in this way."""
        return self.all_keys or any(
            may & mode == mode and _glob(pattern).matches(key) for pattern, may in self.keys.items()
        )

    def allows_channel(self, name: bytes) -> bool:
        """Return whether a channel may be subscribed to and published to."""
        return self.all_channels or any(_glob(pattern).matches(name) for pattern in self.channels)

    def allows_pattern(self, pattern: bytes) -> bool:
        """Return whether a pattern may be subscribed to: a rule must allow exactly these words."""
        return self.all_channels or c_string(pattern) in self.channels


class SelectorDraft:
    """A selector to which rules are applied, however many: each costs the same."""

    def __init__(self, selector: Selector) -> None:
        self._allowed = selector.allowed
        self._first_args = {
            name: {arg.lower(): arg for arg in args} for name, args in selector.first_args.items()
        }  # in lower case -> as it was said
        self._all_keys, self._keys = selector.all_keys, dict(selector.keys)
        self._all_channels, self._channels = selector.all_channels, dict.fromkeys(selector.channels)

    def selector(self) -> Selector:
        """Return the selector as it is now."""
        first_args = {name: tuple(args.values()) for name, args in self._first_args.items()}
        return Selector(
            self._allowed, first_args, self._all_keys, dict(self._keys), self._all_channels, tuple(self._channels)
        )

    def apply(self, rule: bytes) -> None:
        """Apply a rule. Raises RuleError: then nothing is changed."""
        word = c_string(rule).lower()
        sign = word[:1]
        if word in (b"allkeys", b"~*", b"resetkeys"):
            self._all_keys = word != b"resetkeys"
            self._keys.clear()
        elif word in (b"allchannels", b"&*", b"resetchannels"):
            self._all_channels = word != b"resetchannels"
            self._channels.clear()
        elif word in (b"allcommands", b"+@all", b"nocommands", b"-@all"):
            self._allowed = EVERYTHING if word in (b"allcommands", b"+@all") else NOTHING
            self._first_args.clear()
        elif sign in (b"~", b"%"):
            self._apply_keys(rule)
        elif sign == b"&":
            self._apply_channels(rule[1:])
        elif word[:2] in (b"+@", b"-@"):
            self._apply_category(word[2:], sign == b"+")
        elif sign == b"+" and b"|" in word:
            self._apply_part(c_string(rule)[1:])
        elif sign in (b"+", b"-"):
            self._apply_command(_known(word[1:]), sign == b"+")
        else:
            raise RuleError(SYNTAX_ERROR)

    def _apply_keys(self, rule: bytes) -> None:
        if self._all_keys:
            raise RuleError(_USELESS_KEYS)
        mode, pattern = READ | WRITE, rule[1:]
        if rule[:1] == b"%":
            letters, tilde, pattern = pattern.partition(b"~")
            wanted = [_LETTERS.get(letters[at : at + 1].lower(), 0) for at in range(len(letters))]
            mode = sum(wanted)
            if 0 in wanted or len(set(wanted)) != len(wanted) or not (tilde or mode):
                raise RuleError(SYNTAX_ERROR)
        if has_white(pattern) or not mode:
            raise RuleError(SYNTAX_ERROR)
        self._keys[pattern] = self._keys.get(pattern, 0) | mode

    def _apply_channels(self, pattern: bytes) -> None:
        if self._all_channels:
            raise RuleError(_USELESS_CHANNELS)
        if has_white(pattern):
            raise RuleError(SYNTAX_ERROR)
        self._channels[pattern] = None

    def _apply_category(self, name: bytes, allow: bool) -> None:
        bits = vocabulary().categories.get(name)
        if bits is None:
            raise RuleError(UNKNOWN_COMMAND)
        words = vocabulary().words
        for each in [each for each in self._first_args if words[each].bit & bits]:
            del self._first_args[each]
        self._allowed = _changed(self._allowed, bits, allow)

    def _apply_command(self, word: Word, allow: bool) -> None:
        self._first_args.pop(word.name, None)
        self._allowed = _changed(self._allowed, word.with_subcommands, allow)

    def _apply_part(self, name: bytes) -> None:
        """`command|subcommand`, or `command|argument` of a command that has no subcommands."""
        parent_name, _, part = name.rpartition(b"|")
        parent = _known(parent_name)
        if b"|" in parent.name:
            raise RuleError(_ARGUMENT_OF_SUBCOMMAND)
        if not part:
            raise RuleError(SYNTAX_ERROR)
        if parent.with_subcommands != parent.bit:
            self._apply_command(_known(name), True)
        else:
            self._first_args.setdefault(parent.name, {}).setdefault(part.lower(), part)


_glob = lru_cache(maxsize=4096)(Glob)


def _known(name: bytes) -> Word:
    word = vocabulary().find(name)
    if word is None:
        raise RuleError(UNKNOWN_COMMAND)
    return word


def _changed(allowed: int, bits: int, allow: bool) -> int:
    return allowed | bits if allow else allowed & ~bits
