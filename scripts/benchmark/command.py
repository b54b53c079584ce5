"""The command line of scripts/bench. Exit status: 0, or 1 when a shape could not be measured, 130 when interrupted."""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from . import cores, machine, table
from .comparison import Result, compare
from .contestant import Contestant, our_contestant, redis_contestant
from .shape import Effort, Shape
from .shapes import SHAPES

ROUNDS = 5
SECONDS = 1.2
QUICK_SECONDS = 0.1


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    if options.list:
        print(_listing())
        return 0
    contestants = _contestants(options.ours)
    if not contestants:
        print("bench: neither redis-server nor rlite-pubsub was found", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, _interrupt)
    _allow_many_descriptors()
    if options.unpinned:
        cores.share()
    cores.generate_here()
    effort = Effort(QUICK_SECONDS if options.quick else options.seconds, options.quick, options.entries)
    rounds = 1 if options.quick else options.rounds
    facts = {**machine.description(), **{each.name: each.version() for each in contestants}}
    facts["rounds"] = f"{rounds} of {effort.seconds:g} s for each server, alternating"
    results: list[Result] = []
    interrupted = False
    try:
        for shape in options.only or SHAPES:
            results.append(compare(shape, contestants, effort, rounds, _progress))
    except KeyboardInterrupt:
        interrupted = True
    _progress("")
    print(table.markdown(results, facts))
    if options.json:
        options.json.write_text(json.dumps(table.as_json(results, facts), indent=1) + "\n")
    if interrupted:
        print("bench: interrupted, the table is not complete", file=sys.stderr)
        return 130
    return 1 if any(result.failures for result in results) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench", description="The same work for redis-server and for rlite-pubsub.")
    parser.add_argument("--only", type=_shapes, metavar="SHAPE,...", help="these shapes only (see --list)")
    parser.add_argument("--rounds", type=_positive, default=ROUNDS, help="counted rounds (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="length of a round (default %(default)s)")
    parser.add_argument("--unpinned", action="store_true", help="do not give servers and generator a core each")
    parser.add_argument("--quick", action="store_true", help="one short round: shows that it runs, not how fast")
    parser.add_argument(
        "--entries", type=_positive, default=Effort.entries, help="of the topic of *restart* (default %(default)s)"
    )
    parser.add_argument(
        "--ours", type=_command, metavar="COMMAND", help="what starts our server; {port} and {dir} are filled in"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every round to this file, too")
    parser.add_argument("--list", action="store_true", help="name the shapes and end")
    return parser


def _command(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not words:
        raise argparse.ArgumentTypeError("names no program")
    return text


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _shapes(text: str) -> list[Shape]:
    by_name = {shape.name: shape for shape in SHAPES}
    unknown = [name for name in text.split(",") if name not in by_name]
    if unknown:
        raise argparse.ArgumentTypeError(f"no such shape: {', '.join(unknown)} (see --list)")
    return [by_name[name] for name in text.split(",")]


def _listing() -> str:
    lines = []
    for shape in SHAPES:
        targets = ", ".join(f"{each.name} {each.target_text()}".strip() for each in shape.figures)
        lines.append(f"{shape.name:28}{shape.sentence} [{targets}]")
    return "\n".join(lines)


def _contestants(ours: str | None) -> list[Contestant]:
    redis = redis_contestant()
    if redis is None:
        print("bench: redis-server was not found, so there is nothing to compare with", file=sys.stderr)
    own = our_contestant(ours)
    if own is None:
        print("bench: rlite-pubsub was not found (give --ours), so only Redis is measured", file=sys.stderr)
    return [each for each in (redis, own) if each is not None]


def _allow_many_descriptors() -> None:
    """Thousands of subscribers need as many descriptors, here and in the servers, which inherit the limit."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _progress(line: str) -> None:
    if os.isatty(sys.stderr.fileno()):
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """SIGTERM ends as Ctrl-C does: the servers must not outlive us."""
    raise KeyboardInterrupt
