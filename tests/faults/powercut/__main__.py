"""Images of power cuts, as many as wanted, of one shape after the other.

    python -m tests.faults.powercut [--seed N] [--images N] [--images-each N] [--transactions N] [--shape NAME …]
                                    [--twice]
    python -m tests.faults.powercut --again FOLDER

With `--twice` every other run goes on with what a cut has left of the one before it: half of the images are of a second
cut. Each run is recorded anew, and its seed is `N.0`, `N.1`, …; an image with a fault is kept with its log, and
`--again` makes and judges it once more. The exit status is 1 if there were faults.
"""

from __future__ import annotations

import argparse
import secrets
import signal
import sys
import tempfile
from itertools import count
from pathlib import Path

from tests.faults.powercut import cuts, images
from tests.faults.powercut.crew import SHAPES, TRANSACTIONS, made_recorder, run


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and what it has started ends, too
    parser = argparse.ArgumentParser(prog="python -m tests.faults.powercut")
    parser.add_argument("--seed", default=str(secrets.randbits(32)))
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--images-each", type=int, default=250, help="of one run")
    parser.add_argument("--transactions", type=int, default=TRANSACTIONS, help="of each client")
    parser.add_argument("--shape", choices=SHAPES, nargs="+", default=list(SHAPES))
    parser.add_argument("--twice", action="store_true")
    parser.add_argument("--again", type=Path, metavar="FOLDER")
    words = parser.parse_args()
    opener = cuts.Opener()
    try:
        if words.again is not None:
            found = cuts.again(words.again, opener)
            print(found or "nothing is wrong with it")
            return 1 if found else 0
        return _made(words, opener)
    finally:
        opener.close()


def _made(words: argparse.Namespace, opener: cuts.Opener) -> int:
    made = faulty = 0
    with tempfile.TemporaryDirectory(prefix="power-cuts-") as folder:
        recorder = made_recorder(Path(folder))
        assert recorder is not None, "there is no C compiler, or no Linux"
        left: images.Image | None = None
        for number in count():
            turn = number // 2 if words.twice else number
            shape, seed = SHAPES[words.shape[turn % len(words.shape)]], f"{words.seed}.{number}"
            most = min(words.images_each, words.images - made)
            if most <= 0:
                break
            with tempfile.TemporaryDirectory(dir=folder) as place:
                made_run = cuts.Run(shape, seed, run(shape, Path(place), recorder, words.transactions, left), left)
                opened = []
                for one in cuts.judged(made_run, most, opener):
                    opened.append(one)
                    if one.fault:
                        print(one.fault, flush=True)
                left = cuts.left_by(made_run) if words.twice and left is None else None
            found = sum(1 for one in opened if one.fault)
            lost_s = max(one.lost_s for one in opened)
            made += len(opened)
            faulty += found
            what = f"{len(opened)} images, {found} with faults, at most the last {lost_s:.3f} s lost"
            print(f"seed {seed}, {shape.name}: {what}; {made} images, {faulty} with faults in all", flush=True)
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
