"""Completion and the man page: made from the declarations, and taken by the shells and by man."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from patience import PATIENCE_S

from rlite_pubsub.cli import command_line

BASH = """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
"$(complete -p rlite-pubsub | sed -E 's/.*-F ([^ ]+).*/\\1/')"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scripts")


def script(folder: Path, shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The file of a shell's completion."""
    assert command_line.main(["completion", shell]) == 0
    path = folder / shell
    path.write_text(capsys.readouterr().out)
    return str(path)


def shell(*command: str) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_bash_completes_commands_options_and_values(scripts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = script(scripts, "bash", capsys)

    def completed(*words: str) -> list[str]:
        return shell("bash", "-c", BASH, "-", path, "rlite-pubsub", *words).split()

    assert completed("subs") == ["subscribe", "subscribers"]
    assert "--http-port" in completed("serve", "--http-")
    assert completed("serve", "--appendfsync", "") == ["everysec", "always", "no"]
    assert completed("cold", "ver") == ["verify"]
    assert completed("pipeline", "stats", "--wi") == ["--window"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_takes_its_script(scripts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shell("zsh", "-n", script(scripts, "zsh", capsys))


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_commands_and_options(scripts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = script(scripts, "fish", capsys)
    told = shell("fish", "-c", f"source {path}; complete -C 'rlite-pubsub ta'; complete -C 'rlite-pubsub serve --htt'")
    assert told.startswith("tail\t")
    assert "--http-port\tTCP port for HTTP" in told


def test_man_page_has_every_command_and_the_directives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["man"]) == 0
    page = capsys.readouterr().out
    for word in command_line.SUBCOMMANDS:
        assert f"COMMAND 'rlite\\-pubsub {word}'" in page.replace("\\fI\\,", "").replace("\\/\\fR", ""), word
    assert "\\-\\-http\\-port" in page
    if shutil.which("man") is not None:
        path = tmp_path / "page.1"
        path.write_text(page)
        ended = subprocess.run(["man", "--warnings", "-l", path], capture_output=True, text=True, timeout=PATIENCE_S)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "--window" in ended.stdout


def test_extras_that_a_server_needs_are_read_from_its_flags_and_its_file(tmp_path: Path) -> None:
    environment = Path(__file__).parents[2] / "scripts" / "environment.sh"

    def needed(*words: str) -> list[str]:
        return shell("bash", "-c", '. "$0"; needed_extras "$@"', str(environment), *words).split()

    file = tmp_path / "redis.conf"
    file.write_text("port 1\n# http-port 1\n\tCold-Store local\n")
    assert needed() == needed("--port", "1", "-") == ["cli"]
    assert needed("--http-port", "8080") == needed("--HTTP-TLS-PORT 8443") == ["cli", "http"]
    assert needed(str(file)) == ["cli", "cold"]
    assert needed(str(file), "--http-port", "1") == ["cli", "http", "cold"]
