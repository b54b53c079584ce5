"""CONFIG: show settings, set them, write them to the file, and reset what INFO counts."""

from __future__ import annotations

import logging
import re

from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.settings.commons import KEPT_IN_STORE
from rlite_pubsub.engine.settings.config_file import rewrite
from rlite_pubsub.engine.settings.directive import Directive
from rlite_pubsub.engine.settings.directives import DIRECTIVES, PRIMARY
from rlite_pubsub.engine.settings.secret_urls import without_password
from rlite_pubsub.engine.settings.settings import RefusedSetting, Settings, split
from rlite_pubsub.engine.table import Arg, command, container
from rlite_pubsub.engine.workers import merging
from rlite_pubsub.protocol.errors import SYNTAX, CommandError, c_string
from rlite_pubsub.protocol.glob import Glob
from rlite_pubsub.protocol.replies import OK, Map, Reply

log = logging.getLogger("rlite_pubsub")

_SPECIAL = re.compile(rb"[*?[\0]")
_NAMES = frozenset(name.encode() for name in PRIMARY)
_OPEN = frozenset(name.encode() for name, primary in PRIMARY.items() if "secret" not in DIRECTIVES[primary].flags)
"""Those whose values may be seen."""

container(
    "config",
    arity=-2,
    group="server",
    since="2.0.0",
    summary="A container for server configuration commands",
    complexity="Depends on subcommand.",
)


@command(
    "config|get",
    arity=-3,
    flags="admin noscript loading stale",
    group="server",
    since="2.0.0",
    summary="Get the values of configuration parameters",
    complexity="O(N) when N is the number of configuration parameters provided",
    history=(("7.0.0", "Added the ability to pass multiple pattern parameters in one call"),),
    arguments=(Arg("parameter", type="block", multiple=True, arguments=(Arg("parameter"),)),),
)
def config_get(session: CommandSession, args: list[bytes]) -> Reply:
    settings = session.engine.settings
    found: dict[str, bytes] = {}  # the name in lower case -> the name as it is answered
    words = args[2:]
    if _SPECIAL.search(b" ".join(words)) is None:  # they are names, which nothing but their case changes
        words = [word for word in words if word.lower() in _NAMES]
    for word in map(c_string, words):
        if _SPECIAL.search(word) is None:
            name = _name(word)
            if name in PRIMARY:
                found.setdefault(name, word)
            continue
        pattern = Glob(word, nocase=True)
        for directive in DIRECTIVES.values():
            if "hidden" in directive.flags:
                continue
            for spelling in (directive.name, directive.alias):
                if spelling is not None and pattern.matches(spelling.encode()):
                    found.setdefault(spelling, spelling.encode())
    return Map((shown, _shown(settings, name)) for name, shown in found.items())


@command(
    "config|set",
    merge=merging.by_all,
    arity=-4,
    flags="admin noscript loading stale",
    group="server",
    since="2.0.0",
    summary="Set configuration parameters to the given values",
    complexity="O(N) when N is the number of configuration parameters provided",
    history=(("7.0.0", "Added the ability to set multiple parameters in one call."),),
    tips=("request_policy:all_nodes", "response_policy:all_succeeded"),
    arguments=(Arg("parameter_value", type="block", multiple=True, arguments=(Arg("parameter"), Arg("value"))),),
)
def config_set(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) % 2:
        _hide_secrets(args)
        raise CommandError(SYNTAX)
    pairs = list(zip(args[2::2], args[3::2], strict=True))
    engine = session.engine
    if engine.commons is not None and any(_name(word) in KEPT_IN_STORE for word, _ in pairs):
        engine.keyspace.environment.check_write()  # here the session may wait, and nothing is done yet
    _hide_secrets(args)
    _check(session, pairs)
    settings = session.engine.settings
    pairs = [pair for pair in pairs if not _is_shown(settings, *pair)]
    try:
        settings.set_all([(_name(word), split(settings.directive(_name(word)), value)) for word, value in pairs])
    except RefusedSetting as refusal:
        raise _failed(refusal.name.encode(), refusal.text) from refusal
    return OK


@command(
    "config|resetstat",
    merge=merging.by_all,
    arity=2,
    flags="admin noscript loading stale",
    group="server",
    since="2.0.0",
    summary="Reset the stats returned by INFO",
    complexity="O(1)",
)
def config_resetstat(session: CommandSession, args: list[bytes]) -> Reply:
    session.engine.stats.reset()
    return OK


@command(
    "config|rewrite",
    arity=2,
    flags="admin noscript loading stale",
    group="server",
    since="2.8.0",
    summary="Rewrite the configuration file with the in memory configuration",
    complexity="O(1)",
)
def config_rewrite(session: CommandSession, args: list[bytes]) -> Reply:
    path = session.engine.config_file
    if path is None:
        raise CommandError(b"ERR The server is running without a config file")
    try:
        rewrite(path, session.engine.settings, session.engine.users.config_lines)
    except OSError as error:
        log.warning("CONFIG REWRITE failed: %s", error.strerror)
        raise CommandError(f"ERR Rewriting config file: {error.strerror}".encode()) from error
    log.info("CONFIG REWRITE executed with success.")
    return OK


helps(
    "config",
    "GET <pattern>",
    "    Return parameters matching the glob-like <pattern> and their values.",
    "SET <directive> <value>",
    "    Set the configuration <directive> to <value>.",
    "RESETSTAT",
    "    Reset statistics reported by the INFO command.",
    "REWRITE",
    "    Rewrite the configuration file.",
    group="server",
    since="5.0.0",
)


def _name(word: bytes) -> str:
    return c_string(word).decode("latin-1").lower()


def _shown(settings: Settings, name: str) -> bytes:
    """Return a value as CONFIG GET shows it: of a URL everything but its password."""
    text = settings.text(name)
    return without_password(text.decode("latin-1")).encode("latin-1") if b"://" in text else text


def _is_shown(settings: Settings, word: bytes, value: bytes) -> bool:
    """Return whether this is what CONFIG GET shows in place of a URL with a password: then it stays."""
    name = _name(word)
    return value == _shown(settings, name) != settings.text(name)


def _hide_secrets(args: list[bytes]) -> None:
    """A password shall not be seen in SLOWLOG, whatever becomes of the request: neither one whose directive is
    misspelt."""
    for at in range(2, len(args) - 1, 2):
        if args[at] not in _OPEN and c_string(args[at]).lower() not in _OPEN:
            args[at + 1] = b"(redacted)"


def _check(session: CommandSession, pairs: list[tuple[bytes, bytes]]) -> None:
    """Every name is known, may be set, and stands once. Raises CommandError for the first that does not."""
    seen = set()
    for word, value in pairs:
        name = _name(word)
        if name not in PRIMARY:
            raise CommandError(b"ERR Unknown option or number of arguments for CONFIG SET - '%b'" % c_string(word))
        directive = DIRECTIVES[PRIMARY[name]]
        if "immutable" in directive.flags and not (
            directive.ours and _is_as_it_was(session.engine.settings, directive, value)
        ):  # a program that sets all that CONFIG GET * shows knows Redis's exceptions, and not ours
            raise _failed(word, b"can't set immutable config")
        if "protected" in directive.flags and not _may_set_protected(session):
            raise _failed(word, b"can't set protected config")
        if "settled" in directive.flags and not _is_as_it_was(session.engine.settings, directive, value):
            raise _failed(word, b"can't be changed while the server runs")
        if name in seen:
            raise _failed(word, b"duplicate parameter")
        seen.add(name)


def _is_as_it_was(settings: Settings, directive: Directive, value: bytes) -> bool:
    """Return whether this sets the present value again."""
    name = directive.name
    if value in (settings.text(name), _shown(settings, name)):
        return True
    return bool(directive.kind.parse([value], None) == settings[name])


def _may_set_protected(session: CommandSession) -> bool:
    allowed = session.engine.settings["enable-protected-configs"]
    return bool(allowed == b"yes" or (allowed == b"local" and session.is_local))


def _failed(name: bytes, why: bytes) -> CommandError:
    return CommandError(b"ERR CONFIG SET failed (possibly related to argument '%b') - %b" % (c_string(name), why))
