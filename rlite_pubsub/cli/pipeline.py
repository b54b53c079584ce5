"""`rlite-pubsub pipeline JOB`: what is done with topics in bulk, on Spark. A table for people, or `--json`.

`--dry-run` says what would be read and written. It starts Spark only to check an expression, and to count what it
takes. `--master` is a cluster that is there.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from rlite_pubsub.cli.ending import CommandFailed, say
from rlite_pubsub.extras import missing


class Job(NamedTuple):
    """A job: its module, its options, and whether it can do without Spark."""

    word: str
    declaration: str
    about: str
    module: str = ""
    needs_spark: Callable[[Any], bool] = lambda options: True


JOBS = (
    Job("archive", "Archive", "write topics as Parquet by topic and date, and follow them as they grow"),
    Job("compact", "Compact", "merge small blocks of the cold store into large ones, while servers run"),
    Job(
        "retain",
        "Retain",
        "remove entries by age, amount or condition",
        needs_spark=lambda options: options.delete is not None,
    ),
    Job("replay", "Replay", "copy entries of a time range, or that match, to another topic or server"),
    Job("backfill", "Backfill", "load Parquet, JSON lines or CSV into a topic"),
    Job("stats", "Stats", "report rates, sizes, gaps, latencies and lag, as a table, Parquet, or a page with plots"),
    Job("verify", "Verify", "verify all blocks of the cold store and the links between them"),
    Job("export", "Export", "write topics to a Delta table"),
    Job("plan", "Sizing", "estimate the blocks, tasks and time that a history needs", module="sizing"),
)
SHORT_ROWS = 5_000_000
PREPARE = "prepare"
_ALREADY = ("plan",)
_EXTRAS = {"pyspark": "spark", "pyarrow": "spark", "deltalake": "delta"}
"""Whose modules they are."""


def pipeline(parser: argparse.ArgumentParser) -> None:
    """Declares its jobs, with all of their options. No job imports Spark before it runs."""
    jobs = parser.add_subparsers(dest="job", metavar="JOB", required=True)
    for job in JOBS:
        one = jobs.add_parser(job.word, help=job.about, description=job.about)
        one.set_defaults(run=_run, chosen=job)
        _add_options(one, job)
    about = "make Spark start faster on this machine, once (200 MB in the cache folder)"
    prepare = jobs.add_parser(PREPARE, help=about, description=about)
    prepare.set_defaults(run=_prepare)


def _module(job: Job) -> Any:
    return import_module(f"rlite_pubsub.pipeline.jobs.{job.module or job.word}")


def _add_options(parser: argparse.ArgumentParser, job: Job) -> None:
    parser.add_argument("--json", action="store_true", help="the result, or the error, as one JSON object")
    if job.word not in _ALREADY:
        parser.add_argument("--dry-run", action="store_true", help="say what would be read and written, and do nothing")
        parser.add_argument("--master", help="an existing cluster: spark://host:7077, yarn, k8s://… (default: here)")
        parser.add_argument("--verbose", action="store_true", help="show what Spark and its workers log")
        parser.add_argument("--log-file", metavar="FILE", help="append what Spark and its workers log")
        parser.add_argument(
            "--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark's; may be repeated"
        )
    from rlite_pubsub.pipeline.jobs.declared import add_options

    add_options(parser, getattr(_module(job), job.declaration))


def _run(arguments: argparse.Namespace) -> int:
    try:
        return _run_job(arguments)
    except ModuleNotFoundError as failure:
        extra = _EXTRAS.get((failure.name or "").partition(".")[0])
        if extra is None:
            raise
        raise CommandFailed(missing(f"pipeline {arguments.chosen.word}", extra)) from failure


def _run_job(arguments: argparse.Namespace) -> int:
    from rlite_pubsub.pipeline.jobs.declared import taken
    from rlite_pubsub.pipeline.spark.failures import JobFailed, one_line

    job: Job = arguments.chosen
    module = _module(job)
    try:
        with one_line():
            options = taken(getattr(module, job.declaration), arguments)
            if job.word in _ALREADY or (arguments.dry_run and getattr(options, "expression", None) is None):
                outcome = module.plan(options)
            else:
                outcome = _done(module, job, options, arguments)
    except JobFailed as failure:
        if arguments.json:
            told = {"kind": failure.kind.name.lower(), "text": str(failure)}
            print(json.dumps({"job": job.word, "ok": False, "error": told}, ensure_ascii=False))
        raise CommandFailed(str(failure), failure.kind) from failure
    print(json.dumps(outcome.about(), default=str, ensure_ascii=False) if arguments.json else table(outcome))
    return 0 if outcome.is_well else 1


def _done(module: Any, job: Job, options: Any, arguments: argparse.Namespace) -> Any:
    if not arguments.dry_run and not job.needs_spark(options):
        return module.run(None, options)
    from rlite_pubsub.pipeline import session
    from rlite_pubsub.pipeline.spark import jvm_archive
    from rlite_pubsub.pipeline.spark.failures import one_line

    if sys.stderr.isatty() and not jvm_archive.is_there():
        say("`rlite-pubsub pipeline prepare` would make this start faster next time")
    if not arguments.verbose and arguments.log_file is None:
        logging.disable(logging.ERROR)  # what fails is raised; Spark's client also logs it, and every Ctrl-C
    with (
        session.session(
            f"rlite-pubsub {job.word}",
            arguments.master,
            dict(_setting(word) for word in arguments.conf),
            is_quiet=not arguments.verbose,
            is_short=_is_short(module, options),
            log=arguments.log_file,
        ) as spark,
        one_line(),
    ):
        return module.plan(options, spark) if arguments.dry_run else module.run(spark, options)


def _is_short(module: Any, options: Any) -> bool:
    """Return whether there is so little to do that the JVM need not compile for a long run."""
    rows = module.plan(options).totals.get("rows")
    return isinstance(rows, int) and rows <= SHORT_ROWS and not getattr(options, "follow", False)


def _setting(word: str) -> tuple[str, str]:
    name, is_one, value = word.partition("=")
    if not is_one:
        raise CommandFailed(f"--conf {word}: must be NAME=VALUE")
    return name, value


def _prepare(arguments: argparse.Namespace) -> int:
    from rlite_pubsub.pipeline.spark import jvm_archive

    say(f"made {jvm_archive.make()}")
    return 0


def table(outcome: Any) -> str:
    """Rows and totals, for people."""
    lines = []
    names = list(dict.fromkeys(name for row in outcome.rows for name in row))
    if outcome.rows:
        cells = [names] + [[_shown(row.get(name)) for name in names] for row in outcome.rows]
        widths = [max(len(row[place]) for row in cells) for place in range(len(names))]
        is_number = [
            all(isinstance(row.get(name), int | float | None) for row in outcome.rows) for name in names
        ]
        for row in cells:
            parts = [
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, is_number, strict=True)
            ]
            lines.append("  ".join(parts).rstrip())
    lines += [f"{name}: {_shown(value)}" for name, value in outcome.totals.items() if not isinstance(value, list)]
    for name, value in outcome.totals.items():
        if isinstance(value, list) and value:
            lines.append(f"{name}:")
            lines += ["  " + ", ".join(f"{key} {_shown(one)}" for key, one in row.items()) for row in value]
    return "\n".join(lines) if lines else "nothing"


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
