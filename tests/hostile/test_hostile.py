"""Some attacks on each target, always the same ones. `python -m tests.hostile --seconds 3600` makes more of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaign import run
from targets import TARGETS

SEED = 20261119
ATTACKS = {"commands": 400, "restore": 400, "patterns": 200, "blocks": 60, "records": 12, "resp": 200, "http": 500}


def test_each_target_is_attacked_here() -> None:
    assert ATTACKS.keys() == TARGETS.keys()


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_does_harm(name: str, tmp_path: Path) -> None:
    outcome = run(name, TARGETS[name], tmp_path, SEED, least=ATTACKS[name])
    assert outcome.found == []
    assert outcome.attacks == ATTACKS[name]
