"""ACL: access control. Users are the store's: all of its processes have the same."""

from __future__ import annotations

import logging
import secrets
from itertools import islice

from rlite_pubsub.commands.connection.login import redact, whole_if_held
from rlite_pubsub.engine.access import acl_file, permission
from rlite_pubsub.engine.access.categories import CATEGORIES, categories_of
from rlite_pubsub.engine.access.selector import RuleError, has_white
from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import TABLE, Arg, command, container
from rlite_pubsub.engine.workers import merging
from rlite_pubsub.protocol.errors import CommandError, c_string, subcommand_syntax
from rlite_pubsub.protocol.replies import OK, Reply

# -- What ACL HELP says: each subcommand's grammar and, indented, what it does.

HELP = (
    "CAT [<category>]",
    "    Name the commands of a category, or all categories.",
    "DELUSER <username> [<username> ...]",
    "    Remove users.",
    "DRYRUN <username> <command> [<arg> ...]",
    "    Tell whether the user may execute the command, and do not execute it.",
    "GETUSER <username>",
    "    Describe a user.",
    "GENPASS [<bits>]",
    "    Make up a password of 256 bits, or of as many as asked for.",
    "LIST",
    "    Describe all users as a configuration file does.",
    "LOAD",
    "    Read the users from the ACL file.",
    "LOG [<count> | RESET]",
    "    Show who was denied what, or clear the log.",
    "SAVE",
    "    Write the users to the ACL file.",
    "SETUSER <username> <attribute> [<attribute> ...]",
    "    Change a user.",
    "USERS",
    "    Name all users.",
    "WHOAMI",
    "    Name the user of this connection.",
)


log = logging.getLogger("rlite_pubsub")

DEFAULT_PASSWORD_BITS = 256
MAX_PASSWORD_BITS = 4096
DEFAULT_LOG_COUNT = 10

_NO_FILE = (
    b"ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER "
    b"command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store "
    b"users in the Redis configuration."
)

_NOT_SAVED = b"ERR There was an error trying to save the ACLs. Please check the server logs for more information"
_LACKS = {
    permission.COMMAND: b"This user has no permissions to run the '%b' command",
    permission.KEY: b"This user has no permissions to access the '%b' key",
    permission.CHANNEL: b"This user has no permissions to access the '%b' channel",
}

container(
    "acl",
    arity=-2,
    flags="sentinel",
    group="server",
    since="6.0.0",
    summary="A container for Access List Control commands ",
    complexity="Depends on subcommand.",
)


# -- users


@command(
    "acl|whoami",
    arity=2,
    flags="noscript loading stale sentinel",
    group="server",
    since="6.0.0",
    summary="Return the name of the user associated to the current connection",
    complexity="O(1)",
)
def acl_whoami(session: CommandSession, args: list[bytes]) -> Reply:
    return session.user


@command(
    "acl|users",
    arity=2,
    flags="admin noscript loading stale sentinel",
    group="server",
    since="6.0.0",
    summary="List the username of all the configured ACL rules",
    complexity="O(N). Where N is the number of configured users.",
)
def acl_users(session: CommandSession, args: list[bytes]) -> Reply:
    return [user.name for user in session.engine.users.all]


@command(
    "acl|list",
    arity=2,
    flags="admin noscript loading stale sentinel",
    group="server",
    since="6.0.0",
    summary="List the current ACL rules in ACL config file format",
    complexity="O(N). Where N is the number of configured users.",
)
def acl_list(session: CommandSession, args: list[bytes]) -> Reply:
    return [user.line for user in session.engine.users.all]


@command(
    "acl|getuser",
    arity=3,
    flags="admin noscript loading stale sentinel",
    group="server",
    since="6.0.0",
    summary="Get the rules for a specific ACL user",
    complexity="O(N). Where N is the number of password, command and pattern rules that the user has.",
    arguments=(Arg("username"),),
    history=(
        ("6.2.0", "Added Pub/Sub channel patterns."),
        (
            "7.0.0",
            "Added selectors and changed the format of key and channel patterns from a list to their rule "
            "representation.",
        ),
    ),
)
def acl_getuser(session: CommandSession, args: list[bytes]) -> Reply:
    user = session.engine.users.get(args[2])
    return None if user is None else user.described


@command(
    "acl|setuser",
    arity=-3,
    flags="admin noscript loading stale sentinel",
    group="server",
    since="6.0.0",
    summary="Modify or create the rules for a specific ACL user",
    complexity="O(N). Where N is the number of rules provided.",
    arguments=(Arg("username"), Arg("rule", optional=True, multiple=True)),
    history=(
        ("6.2.0", "Added Pub/Sub channel patterns."),
        ("7.0.0", "Added selectors and key based permissions."),
    ),
)
def acl_setuser(session: CommandSession, args: list[bytes]) -> Reply:
    """All rules take effect together, or none."""
    request = redact(args, *range(2, len(args)))
    if has_white(request[2]):
        raise CommandError(b"ERR Usernames can't contain spaces or null characters")
    users = session.engine.users
    try:
        user = users.changed(request[2], request[3:])
    except RuleError as refusal:
        raise CommandError(b"ERR " + refusal.text) from refusal
    with whole_if_held(args, request):
        users.put(user, session)
    return OK


@command(
    "acl|deluser",
    arity=-3,
    flags="admin noscript loading stale sentinel",
    group="server",
    since="6.0.0",
    summary="Remove the specified ACL users and the associated rules",
    complexity="O(1) amortized time considering the typical user.",
    arguments=(Arg("username", multiple=True),),
)
def acl_deluser(session: CommandSession, args: list[bytes]) -> Reply:
    users = session.engine.users
    if users.default.name in map(c_string, args[2:]):
        raise CommandError(b"ERR The 'default' user cannot be removed")
    return users.delete(args[2:], session)


@command(
    "acl|dryrun",
    arity=-4,
    flags="admin noscript loading stale sentinel",
    group="server",
    since="7.0.0",
    summary="Returns whether the user can execute the given command without executing the command.",
    complexity="O(1).",
    arguments=(Arg("username"), Arg("command"), Arg("arg", optional=True, multiple=True)),
)
def acl_dryrun(session: CommandSession, args: list[bytes]) -> Reply:
    user = session.engine.users.get(args[2])
    if user is None:
        raise CommandError(b"ERR User '%b' not found" % c_string(args[2]))
    request = args[3:]
    found = TABLE.find(request[0])
    if found is not None and found.subcommands and len(request) > 1:
        found = found.subcommands.get(request[1].lower())
    if found is None:
        raise CommandError(b"ERR Command '%b' not found" % c_string(request[0]))
    if not found.accepts(len(request)):
        raise CommandError(b"ERR wrong number of arguments for '%b' command" % found.name)
    refusal = permission.refusal_of(user, found, request)
    return OK if refusal is None else _LACKS[refusal.reason] % c_string(refusal.object)


@command(
    "acl|load",
    arity=2,
    flags="admin noscript loading stale sentinel",
    group="server",
    since="6.0.0",
    summary="Reload the ACLs from the configured ACL file",
    complexity="O(N). Where N is the number of configured users.",
)
def acl_load(session: CommandSession, args: list[bytes]) -> Reply:
    users = session.engine.users
    try:
        users.replace(acl_file.load(_path(session), users.fresh_selector), session)
    except acl_file.UsersFileError as failure:
        raise CommandError(b"ERR " + failure.text) from failure
    return OK


@command(
    "acl|save",
    arity=2,
    flags="admin noscript loading stale sentinel",
    group="server",
    since="6.0.0",
    summary="Save the current ACL rules in the configured ACL file",
    complexity="O(N). Where N is the number of configured users.",
)
def acl_save(session: CommandSession, args: list[bytes]) -> Reply:
    try:
        acl_file.save(_path(session), session.engine.users.all)
    except OSError as failure:
        log.warning("ACL SAVE failed: %s", failure)
        raise CommandError(_NOT_SAVED) from failure
    return OK


def _path(session: CommandSession) -> bytes:
    path: bytes = session.engine.settings["aclfile"]
    if not path:
        raise CommandError(_NO_FILE)
    return path


# -- categories, passwords, the log


@command(
    "acl|cat",
    arity=-2,
    flags="noscript loading stale sentinel",
    group="server",
    since="6.0.0",
    summary="List the ACL categories or the commands inside a category",
    complexity="O(1) since the categories and commands are a fixed set.",
    arguments=(Arg("categoryname", optional=True),),
)
def acl_cat(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) == 2:
        return [category.encode() for category in CATEGORIES]
    if len(args) > 3:
        raise subcommand_syntax(args)
    category = args[2].decode("latin-1").lower()
    if category not in CATEGORIES:
        raise CommandError(b"ERR Unknown category '%b'" % c_string(args[2])[:128])
    commands = [found for top in TABLE.commands.values() for found in (top, *top.subcommands.values())]
    return [found.name for found in commands if category in categories_of(found)]


@command(
    "acl|genpass",
    arity=-2,
    flags="noscript loading stale sentinel",
    group="server",
    since="6.0.0",
    summary="Generate a pseudorandom secure password to use for ACL users",
    complexity="O(1)",
    arguments=(Arg("bits", "integer", optional=True),),
)
def acl_genpass(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) > 3:
        raise subcommand_syntax(args)
    bits = integer(args[2]) if len(args) == 3 else DEFAULT_PASSWORD_BITS
    if not 0 < bits <= MAX_PASSWORD_BITS:
        raise CommandError(
            b"ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to %d"
            % MAX_PASSWORD_BITS
        )
    return secrets.token_hex(MAX_PASSWORD_BITS // 8)[: (bits + 3) // 4].encode()


@command(
    "acl|log",
    merge=merging.denied,
    arity=-2,
    flags="admin noscript loading stale sentinel",
    group="server",
    since="6.0.0",
    summary="List latest events denied because of ACLs in place",
    complexity="O(N) with N being the number of entries shown.",
    arguments=(
        Arg(
            "operation",
            "oneof",
            optional=True,
            arguments=(Arg("count", "integer"), Arg("reset", "pure-token", token="RESET")),
        ),
    ),
)
def acl_log(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) > 3:
        raise subcommand_syntax(args)
    log = session.engine.acl_log
    if len(args) == 3 and args[2].lower() == b"reset":
        log.entries.clear()
        return OK
    count = integer(args[2]) if len(args) == 3 else DEFAULT_LOG_COUNT
    now = session.engine.clock()
    return [denial.described(now) for denial in islice(log.entries, min(max(count, 0), len(log.entries)))]


helps(
    "acl",
    *HELP,
    flags="loading stale sentinel",
    group="server",
    since="6.0.0",
)
