"""What ACL HELP says: each subcommand's grammar and, indented, what it does."""

from __future__ import annotations

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
    "    Tell who was denied what, or forget it.",
    "SAVE",
    "    Write the users to the ACL file.",
    "SETUSER <username> <attribute> [<attribute> ...]",
    "    Change a user.",
    "USERS",
    "    Name all users.",
    "WHOAMI",
    "    Name the user of this connection.",
)
