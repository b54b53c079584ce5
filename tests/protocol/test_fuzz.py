"""The fuzzer: the corpus in every chunking, then random damage to it, and the reference parser has to agree each time.

RLITE_FUZZ_SECONDS makes it run for longer than the few seconds of every day, with another seed each time; a stream that
it finds belongs into corpus/, one file for each.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from mutations import SEEDS, TOKENS, check, mutated
from reference_parser import assert_all_ways_agree, cut

CORPUS = sorted(Path(__file__).with_name("corpus").glob("*.bin"))
SECONDS = float(os.environ.get("RLITE_FUZZ_SECONDS", "0"))
STREAMS_EVERY_DAY = 12_000


def test_the_corpus_is_there() -> None:
    assert len(CORPUS) > 20


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
def test_what_was_found_once_stays_found(file: Path) -> None:
    data = file.read_bytes()
    places = range(len(data) + 1) if len(data) < 2000 else range(0, len(data), len(data) // 10)
    for trusted in (True, False):
        for limit in (2**29, 1):
            assert_all_ways_agree([data], trusted, limit)
            for place in places:
                assert_all_ways_agree(cut(data, [place]), trusted, limit)
    if len(data) < 2000:
        assert_all_ways_agree([data[at : at + 1] for at in range(len(data))])


@pytest.mark.timeout(2 * SECONDS + 600)
def test_no_damage_makes_the_parsers_disagree() -> None:
    seeds = [*SEEDS, *(file.read_bytes() for file in CORPUS if file.stat().st_size < 2000), *TOKENS]
    seed = random.randrange(2**32) if SECONDS else 1
    chance = random.Random(seed)
    deadline = time.monotonic() + SECONDS
    streams = 0
    while streams < STREAMS_EVERY_DAY or time.monotonic() < deadline:
        streams += 1
        data = mutated(chance, seeds)
        try:
            check(chance, data)
        except Exception as failure:
            raise AssertionError(f"seed {seed}, stream {streams}: {data!r}") from failure
