"""redis-benchmark as the generator: what people run. It can't load every server as far as it goes."""

from __future__ import annotations

import subprocess

from .client import WrongAnswer
from .contestant import Server
from .shape import Reading, command_reading
from .traffic import Clock

LIMIT_S = 60


def redis_benchmark(server: Server, connections: int, commands: int, command: tuple[bytes, ...]) -> Reading:
    """So many of one command, each connection waiting for every reply; the rate that it prints."""
    arguments = ["-p", str(server.port), "-c", str(connections), "-n", str(commands), "--csv"]
    with Clock(server) as clock:
        done = subprocess.run(
            ["redis-benchmark", *arguments, *command], capture_output=True, text=True, timeout=LIMIT_S
        )
    if done.returncode or len(done.stdout.splitlines()) < 2:
        raise WrongAnswer(f"redis-benchmark: {(done.stdout + done.stderr)[-200:]!r}")
    reading = command_reading(clock.tally(commands, 0))
    return reading._replace(value=float(done.stdout.splitlines()[-1].rsplit('","', 7)[1]))
