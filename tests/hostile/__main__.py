"""Attack this tree for as long as it is told to: `python -m tests.hostile --target commands --seconds 3600`.

What was found is told with its seed and its number N: `--seed S --first N --attacks 1` plays it again where one attack
is enough, `--seed S` where it takes those before it.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
from pathlib import Path

_TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_TESTS / each) for each in ("hostile", "", "server", "gateway", "protocol", "commands", "cold")]


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and the server ends, too
    from campaign import run
    from targets import TARGETS

    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--target", choices=[*TARGETS, "all"], default="all")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each target")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--first", type=int, default=0, help="the number of the first attack")
    parser.add_argument("--attacks", type=int, default=0, help="at least so many, whatever the time")
    parser.add_argument("--stop", action="store_true", help="at the first that finds something")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    failed = False
    for name in TARGETS if options.target == "all" else [options.target]:
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            outcome = run(
                name,
                TARGETS[name],
                Path(folder),
                seed,
                seconds=0 if options.attacks else options.seconds,
                least=options.attacks,
                first=options.first,
                goes_on=not options.stop,
                tell=lambda line: print(line, flush=True),
            )
        failed |= bool(outcome.found)
        print(
            f"{name}: seed {seed}: {outcome.attacks} attacks, {len(outcome.found)} found something, "
            f"memory grew by at most {outcome.growth_bytes / 2**20:.1f} MB",
            flush=True,
        )
        for cpu_ms, wall_ms, what in sorted(outcome.holds.values(), reverse=True)[:25]:
            print(f"    others waited {cpu_ms:.0f} ms ({wall_ms:.0f} on the wall): {what[:300]}", flush=True)
    return int(failed)


sys.exit(main())
