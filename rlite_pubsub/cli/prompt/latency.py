"""How long a PING takes (`--latency`, `--latency-history`, `--latency-dist`), and for how long this machine keeps a
program waiting (`--intrinsic-latency`).

What is printed is what redis-cli prints.
"""

from __future__ import annotations

import math
import time

from rlite_pubsub.cli.ending import CommandFailed
from rlite_pubsub.cli.prompt.dialogue import Dialogue
from rlite_pubsub.protocol.replies import Error

_PAUSE_S = 0.01
_SAMPLED_S = 1.0
_HISTORY_S = 15.0
_SPECTRUM_S = 1.0

_CLEAR_LINE = "\x1b[0G\x1b[2K"
_FORMS = {
    "terminal": "min: {}, max: {}, avg: {:.2f} ({} samples)",
    "raw": "{} {} {:.2f} {}\n",
    "csv": "{},{},{:.2f},{}\n",
    "json": '{{"min": {}, "max": {}, "avg": {:.2f}, "count": {}}}\n',
    "quoted-json": "",
}

_COLORS = (0, 233, 234, 235, 237, 239, 241, 243, 245, 247, 144, 143, 142, 184, 226, 214, 208, 202, 196)
"""Of a terminal with 256 colors, from none of the samples to all of them."""
_BUCKETS = (
    *zip((0.01, 0.125, 0.25, 0.5), ".-*#", strict=True),
    *zip((*range(1, 10), 10, 20, 30, 40, 50), "123456789ABCDE", strict=True),
    *zip((100, 200, 300, 400, 500), "FGHIJ", strict=True),
    *zip((1000, 2000, 4000, 8000, 16000, 30000, 60000), "KLMNOPQ", strict=True),
    (math.inf, "?"),
)
"""The longest time of each bucket in milliseconds, and its character."""
_LEGEND_EVERY = 20
_LEGEND = """\
---------------------------------------------
. - * #          .01 .125 .25 .5 milliseconds
1,2,3,...,9      from 1 to 9     milliseconds
A,B,C,D,E        10,20,30,40,50  milliseconds
F,G,H,I,J        .1,.2,.3,.4,.5       seconds
K,L,M,N,O,P,Q,?  1,2,4,8,16,30,60,>60 seconds
From 0 to 100%: {}\x1b[0m
---------------------------------------------"""

_SPINS = 64


class _Samples:
    """The shortest, the longest and the average of some times, in whole milliseconds."""

    def __init__(self) -> None:
        self.began_s = time.monotonic()
        self._count = self._total = self._least = self._most = 0

    def add(self, milliseconds: int) -> None:
        self._least = min(self._least, milliseconds) if self._count else milliseconds
        self._most = max(self._most, milliseconds)
        self._total += milliseconds
        self._count += 1

    def text(self, form: str) -> str:
        return _FORMS[form].format(self._least, self._most, self._total / self._count, self._count)

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.began_s


def watch_latency(dialogue: Dialogue, form: str, interval_s: float, *, keeps_history: bool) -> None:
    """Measure until interrupted, at a terminal; otherwise print one line after `interval_s` (0: a second), and end.
    With a history, a line ends after `interval_s` (0: 15 seconds) and the next begins. Raises as a Dialogue does."""
    samples = _Samples()
    while True:
        samples.add(int(_ping_s(dialogue) * 1000))
        if form == "terminal":
            print(_CLEAR_LINE + samples.text(form), end="", flush=True)
        elif keeps_history:
            print(samples.text(form), end="", flush=True)
        elif samples.age_s > (interval_s or _SAMPLED_S):
            print(samples.text(form), end="", flush=True)
            return
        if keeps_history and samples.age_s > (interval_s or _HISTORY_S):
            print(f" -- {samples.age_s:.2f} seconds range", flush=True)
            samples = _Samples()
        time.sleep(_PAUSE_S)


def watch_spectrum(dialogue: Dialogue, interval_s: float) -> None:
    """Print a line after each interval (0: a second) whose colors say how many samples took how long, until
    interrupted. Raises as a Dialogue does."""
    counts = [0] * len(_BUCKETS)
    began_s, lines = time.monotonic(), 0
    while True:
        milliseconds = _ping_s(dialogue) * 1000
        counts[next(number for number, (most, _) in enumerate(_BUCKETS) if milliseconds <= most)] += 1
        if time.monotonic() - began_s > (interval_s or _SPECTRUM_S):
            if lines % _LEGEND_EVERY == 0:
                print(_LEGEND.format("".join([f"\x1b[48;5;{color}m " for color in _COLORS])))
            lines += 1
            print(_spectrum(counts), flush=True)
            counts = [0] * len(_BUCKETS)
            began_s = time.monotonic()
        time.sleep(_PAUSE_S)


def _spectrum(counts: list[int]) -> str:
    total = sum(counts)
    colors = [_COLORS[math.ceil(count / total * (len(_COLORS) - 1))] for count in counts]
    cells = [f"\x1b[48;5;{color}m{character}" for color, (_, character) in zip(colors, _BUCKETS, strict=True)]
    return "\x1b[38;5;0m" + "".join(cells) + "\x1b[0m"


def _ping_s(dialogue: Dialogue) -> float:
    began_s = time.perf_counter()
    [reply] = dialogue.ask_all([[b"PING"]])
    took_s = time.perf_counter() - began_s
    if isinstance(reply, Error):
        raise CommandFailed(f"PING failed: {reply.decode(errors='backslashreplace')}")
    return took_s


def measure_machine(duration_s: int) -> None:
    """Do nothing but look at the clock for so long, and print how long this program was kept from it. An interrupt ends
    it early, with its summary."""
    longest_us = runs = 0
    began_ns = time.perf_counter_ns()
    try:
        while time.perf_counter_ns() - began_ns < duration_s * 1_000_000_000:
            run_began_ns = time.perf_counter_ns()
            for _ in range(_SPINS):
                pass
            took_us = (time.perf_counter_ns() - run_began_ns) // 1000
            runs += 1
            if took_us > longest_us:
                longest_us = took_us
                print(f"Max latency so far: {longest_us} microseconds.", flush=True)
    except KeyboardInterrupt:
        pass
    average_us = (time.perf_counter_ns() - began_ns) / 1000 / max(runs, 1)
    average = f"avg latency: {average_us:.4f} microseconds / {average_us * 1000:.2f} nanoseconds per run"
    print(f"\n{runs} total runs ({average}).")
    print(f"Worst run took {longest_us / average_us:.0f}x longer than the average latency.")
