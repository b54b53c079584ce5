"""ACL: who may do what. There is one user, `default`, who may do everything; only its passwords and its being on or off
can be changed. What would make another user, or restrict this one, is refused with a text that says so.
"""

from __future__ import annotations

import secrets
from itertools import islice

from rlite_pubsub.commands.acl_help import HELP
from rlite_pubsub.commands.authentication import redact
from rlite_pubsub.commands.categories import CATEGORIES, categories_of
from rlite_pubsub.commands.help import help_reply
from rlite_pubsub.commands.integers import integer
from rlite_pubsub.commands.session import CommandSession
from rlite_pubsub.commands.table import TABLE, Arg, command, container
from rlite_pubsub.commands.user import RuleError, User, whole_rules
from rlite_pubsub.protocol.errors import CommandError, c_string, subcommand_syntax
from rlite_pubsub.protocol.replies import OK, Reply

DEFAULT_PASSWORD_BITS = 256
MAX_PASSWORD_BITS = 4096
DEFAULT_LOG_COUNT = 10

_NO_FILE = (
    b"ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER "
    b"command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store "
    b"users in the Redis configuration."
)

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
    return [session.instance.default_user.name]


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
    return [b"user " + session.instance.default_user.line]


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
    user = session.instance.default_user
    if args[2] != user.name:
        return None
    return user.described


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
    username = request[2]
    if any(character.isspace() or character == "\0" for character in username.decode("latin-1")):
        raise CommandError(b"ERR Usernames can't contain spaces or null characters")
    user: User = session.instance.default_user
    if username != user.name:
        raise CommandError(b"ERR This server has no user but 'default', and can't make one")
    try:
        rules = whole_rules(request[3:])
    except RuleError as refusal:
        raise CommandError(b"ERR " + refusal.text) from refusal
    for rule in rules:
        try:
            user = user.with_rule(rule)
        except RuleError as refusal:
            raise CommandError(
                b"ERR Error in ACL SETUSER modifier '%b': %b" % (c_string(rule), refusal.text)
            ) from refusal
    session.instance.set_default_user(user)
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
    if session.instance.default_user.name in args[2:]:
        raise CommandError(b"ERR The 'default' user cannot be removed")
    return 0


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
    if args[2] != session.instance.default_user.name:
        raise CommandError(b"ERR User '%b' not found" % c_string(args[2]))
    request = args[3:]
    found = TABLE.find(request[0])
    if found is not None and found.subcommands and len(request) > 1:
        found = found.subcommands.get(request[1].lower())
    if found is None:
        raise CommandError(b"ERR Command '%b' not found" % c_string(request[0]))
    if not found.accepts(len(request)):
        raise CommandError(b"ERR wrong number of arguments for '%b' command" % found.name)
    return OK


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
    raise CommandError(_NO_FILE)


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
    raise CommandError(_NO_FILE)


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
    log = session.instance.acl_log
    if len(args) == 3 and args[2].lower() == b"reset":
        log.entries.clear()
        return OK
    count = integer(args[2]) if len(args) == 3 else DEFAULT_LOG_COUNT
    now = session.instance.clock()
    return [denial.described(now) for denial in islice(log.entries, min(max(count, 0), len(log.entries)))]


@command(
    "acl|help",
    arity=2,
    flags="loading stale sentinel",
    group="server",
    since="6.0.0",
    summary="Show helpful text about the different subcommands",
    complexity="O(1)",
)
def acl_help(session: CommandSession, args: list[bytes]) -> Reply:
    return help_reply(args, *HELP)
