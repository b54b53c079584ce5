"""contrib/: what is handed to systemd, launchd, containers and Kubernetes is taken by them and by the server."""

from __future__ import annotations

import plistlib
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from rlite_pubsub.cli.serving.serve import Configuration, configuration_of
from rlite_pubsub.server.background import Server

ROOT = Path(__file__).parents[2]
CONTRIB = ROOT / "contrib"


def started_with(words: list[str]) -> Configuration:
    """What the server makes of a command line `... serve FLAGS`, where the file that it names is ours or empty."""
    flags = words[words.index("serve") + 1 :]
    return configuration_of([word for word in flags if not word.endswith(".conf")])


def test_unit_is_valid_and_its_flags_are_the_servers(tmp_path: Path) -> None:
    for unit in (CONTRIB / "systemd").iterdir():
        text = unit.read_text().replace("/opt/rlite-pubsub/bin/rlite-pubsub", "/bin/true")
        (tmp_path / unit.name).write_text(text)
    unit_text = (CONTRIB / "systemd" / "rlite-pubsub.service").read_text()
    (command,) = [line.partition("=")[2] for line in unit_text.splitlines() if line.startswith("ExecStart=")]
    settings = started_with(shlex.split(command)).settings
    doors = (CONTRIB / "systemd" / "rlite-pubsub.socket").read_text()

    assert settings["supervised"] == b"systemd" and "Type=notify" in unit_text
    assert f"ListenStream={settings['unixsocket'].decode()}\n" in doors
    assert f"ListenStream=127.0.0.1:{settings['port']}\n" in doors
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    words = ["systemd-analyze", "verify", "--man=no", *map(str, tmp_path.glob("rlite-pubsub.*"))]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_property_list_of_launchd_starts_the_server(tmp_path: Path) -> None:
    with (CONTRIB / "launchd" / "org.rlite-pubsub.server.plist").open("rb") as file:
        said = plistlib.load(file)

    here = [word.replace("/usr/local/var/rlite-pubsub", str(tmp_path)) for word in said["ProgramArguments"]]
    assert started_with(here).settings["dir"].decode() == f"{tmp_path}/store"
    assert said["Label"] == "org.rlite-pubsub.server" and said["Umask"] == 0o077


def test_image_starts_with_a_configuration_without_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = configuration_of([str(CONTRIB / "container" / "rlite-pubsub.conf")])

    assert configuration.ignored == []
    assert configuration.settings["protected-mode"]
    assert configuration.settings["dir"] == b"/data/store"


def test_compose_and_kubernetes_pass_flags_that_the_server_has(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    password = tmp_path / "password"
    password.write_text("secret\n")
    compose = yaml.safe_load((CONTRIB / "container" / "compose.yaml").read_text())
    service, state = yaml.safe_load_all((CONTRIB / "kubernetes" / "statefulset.yaml").read_text())
    pod = state["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    for flags in (compose["services"]["rlite-pubsub"]["command"], container["args"]):
        words = [str(password) if word.startswith("/run/secrets/") else word for word in flags]
        settings = started_with(["serve", *words]).settings
        assert settings["requirepass"] == b"secret" and settings["http-port"] == 8080
    assert state["spec"]["replicas"] == 1 and state["spec"]["serviceName"] == service["metadata"]["name"]
    assert {each["name"] for each in container["volumeMounts"]} == {
        *(each["name"] for each in pod["volumes"]),
        *(each["metadata"]["name"] for each in state["spec"]["volumeClaimTemplates"]),
    }
    assert pod["securityContext"]["runAsNonRoot"] and container["securityContext"]["readOnlyRootFilesystem"]


def test_logrotate_takes_its_file(tmp_path: Path) -> None:
    if shutil.which("logrotate") is None:
        pytest.skip("logrotate is not installed")
    log = tmp_path / "a.log"
    log.write_text("a line\n")
    rules = (CONTRIB / "logrotate" / "rlite-pubsub").read_text()
    rules = rules.replace("/var/log/rlite-pubsub/*.log", str(log)).replace(
        "create 0640 rlite-pubsub rlite-pubsub", "create"
    )
    (tmp_path / "rules").write_text(rules)
    (tmp_path / "rules").chmod(0o644)
    done = subprocess.run(
        ["logrotate", "--force", "--state", str(tmp_path / "state"), str(tmp_path / "rules")],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert log.read_text() == "" and (tmp_path / "a.log.1").read_text() == "a line\n"


@pytest.mark.parametrize("directives", [{}, {"requirepass": "secret"}])
def test_container_is_healthy_where_a_server_answers(directives: dict[str, str]) -> None:
    with Server(**directives) as server:
        assert health(server.port) == 0


def test_container_is_ill_where_nobody_answers() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        assert health(silent.getsockname()[1]) == 1


def health(port: int) -> int:
    words = [sys.executable, str(CONTRIB / "container" / "health.py")]
    return subprocess.run(words, env={"RLITE_HEALTH_PORT": str(port)}).returncode
