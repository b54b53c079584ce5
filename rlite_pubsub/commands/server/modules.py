"""MODULE: no module can be loaded here, and none is."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.table import Arg, container, stub
from rlite_pubsub.protocol.replies import Error

_CANNOT_LOAD = Error(b"ERR Error loading the extension. Please check the server logs.")
_CHANGE = "no_async_loading admin noscript protected"

container(
    "module",
    arity=-2,
    group="server",
    since="4.0.0",
    summary="A container for module commands",
    complexity="Depends on subcommand.",
)

stub(
    "module|list",
    [],
    arity=2,
    flags="admin noscript",
    group="server",
    since="4.0.0",
    summary="List all modules loaded by the server",
    complexity="O(N) where N is the number of loaded modules.",
    tips=("nondeterministic_output_order",),
)

stub(
    "module|load",
    _CANNOT_LOAD,
    arity=-3,
    flags=_CHANGE,
    group="server",
    since="4.0.0",
    summary="Load a module",
    complexity="O(1)",
    arguments=(Arg("path"), Arg("arg", optional=True, multiple=True)),
)

stub(
    "module|loadex",
    _CANNOT_LOAD,
    arity=-3,
    flags=_CHANGE,
    group="server",
    since="7.0.0",
    summary="Load a module with extended parameters",
    complexity="O(1)",
    arguments=(
        Arg("path"),
        Arg(
            "configs",
            "block",
            token="CONFIG",
            optional=True,
            multiple=True,
            multiple_token=True,
            arguments=(Arg("name"), Arg("value")),
        ),
        Arg("args", "block", token="ARGS", optional=True, multiple=True, arguments=(Arg("arg"),)),
    ),
)

stub(
    "module|unload",
    Error(b"ERR Error unloading module: no such module with that name"),
    arity=3,
    flags=_CHANGE,
    group="server",
    since="4.0.0",
    summary="Unload a module",
    complexity="O(1)",
    arguments=(Arg("name"),),
)

helps(
    "module",
    "LIST",
    "    Return a list of loaded modules.",
    "LOAD <path> [<arg> ...]",
    "    Load a module library from <path>, passing to it any optional arguments.",
    "LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]",
    "    Load a module library from <path>, while passing it module configurations and optional arguments.",
    "UNLOAD <name>",
    "    Unload a module.",
    group="server",
    since="5.0.0",
)
