"""The OpenAPI document, and schemathesis, which asks a running server for what the document promises.

All of schemathesis's checks are on, and nothing is left out: of a stream it reads as much as has come when its patience
ends. Once names are its own, and once they are those of a topic and a group that exist. Seed and examples are fixed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from http_server import HttpServer
from patience import PATIENCE_S

Serve = Callable[..., HttpServer]
PASSWORD = "sesame-0123456789"

SCHEMATHESIS = """
import sys
from importlib.metadata import entry_points
(program,) = entry_points(group="console_scripts", name="schemathesis")
sys.exit(program.load()())
"""
"""The wheel's environment shares the packages of another one, and has none of its scripts."""


def test_every_path_of_the_document_says_what_can_be_answered(server: HttpServer) -> None:
    status, headers, answer = server.ask("GET", "/openapi.json")
    assert status == 200 and headers["content-type"] == "application/json"
    document = json.loads(answer)
    assert document["openapi"].startswith("3.1")
    wanted = {"/api/events", "/api/channels/{name}", "/api/patterns", "/api/topics/{name}/batch", "/api/groups",
              "/api/subscribers", "/api/topics/{name}/groups/{group}/requeue", "/metrics", "/healthz", "/readyz",
              "/api/stats", "/openapi.json"}  # fmt: skip
    assert wanted <= document["paths"].keys()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            answers = operation["responses"]
            assert {"200", "400", "503"} <= answers.keys(), f"{method} {path}"
            assert path in ("/healthz", "/readyz") or {"401", "403"} <= answers.keys()
            for code in answers.keys() - {"200"}:
                assert "application/problem+json" in answers[code]["content"]
    names = [operation["operationId"] for each in document["paths"].values() for operation in each.values()]
    assert len(set(names)) == len(names)


def test_document_says_whether_one_has_to_say_who_one_is(serve: Serve, server: HttpServer, tmp_path: Path) -> None:
    def ways(asked: HttpServer, **headers: str) -> list[dict[str, list[str]]]:
        found = json.loads(asked.ask("GET", "/openapi.json", **headers)[2])["paths"]["/api/topics"]["get"]["security"]
        assert {"bearer": []} in found
        return list(found)

    assert {} in ways(server)
    server.redis().config_set("requirepass", PASSWORD)
    assert {} not in ways(server, Authorization=f"Bearer {PASSWORD}")


@pytest.mark.parametrize(
    "path",
    ["/api/channels?rates=2&pattern=a", "/api/channels?sort=size&pattern=a", "/api/topics/t?before=soon",
     "/api/topics/t?since=5%0C", "/api/events?since=soon"],
)  # fmt: skip
def test_what_the_document_rules_out_is_refused_by_streams_too(standing_server: HttpServer, path: str) -> None:
    assert standing_server.ask("GET", path, Accept="text/event-stream")[0] == 400


def test_parameter_that_a_path_does_not_have_is_refused_with_those_that_it_has(server: HttpServer) -> None:
    """Of every operation that the document has, so that none can be forgotten."""
    server.redis().xgroup_create("t", "g", "0", mkstream=True)
    paths = json.loads(server.ask("GET", "/openapi.json")[2])["paths"]
    assert len(paths) > 20
    for path, operations in paths.items():
        target = path.replace("{name}", "t").replace("{group}", "g")
        for method, operation in operations.items():
            status, _, answer = server.ask(method.upper(), f"{target}?type_matcher=order&no_such=1")
            assert status == 400, (method, path, answer)
            detail = json.loads(answer)["detail"]
            known = [each["name"] for each in operation["parameters"] if each["in"] == "query"]
            assert '"type_matcher"' in detail and all(name in detail for name in known), detail


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/api/topics?access_token=x"), ("POST", "/api/channels/c?encoding=text"),
     ("POST", "/api/topics/t?encoding=text"), ("POST", "/api/session?end=1"), ("OPTIONS", "/api/topics?_=5"),
     ("HEAD", "/api/topics?match=a"), ("GET", "/healthz"), ("GET", "/?from=mail")],
)  # fmt: skip
def test_parameter_that_is_known_without_being_in_the_document_is_taken(
    standing_server: HttpServer, method: str, path: str
) -> None:
    assert standing_server.ask(method, path, b"x" if method == "POST" else b"")[0] < 300


@pytest.mark.parametrize("are_pinned", [False, True])
def test_schemathesis_finds_no_fault(serve: Serve, tmp_path: Path, are_pinned: bool) -> None:
    server = serve("--requirepass", PASSWORD, "--http-heartbeat", "1")
    client = redis.Redis(port=server.port, password=PASSWORD)
    client.xgroup_create("t", "g", "0", mkstream=True)
    config = tmp_path / "schemathesis.toml"
    config.write_text('[parameters]\n"path.name" = "t"\n"path.group" = "g"\n' if are_pinned else "")
    words = (
        "--config-file", str(config), "run", f"http://127.0.0.1:{server.http_port}/openapi.json",
        "--header", f"Authorization: Bearer {PASSWORD}", "--checks", "all", "--seed", "5",
        "--max-examples", "2", "--request-timeout", "0.5", "--continue-on-failure", "--no-color",
        "--generation-database", "none",
    )  # fmt: skip
    program = [sys.executable, "-c", SCHEMATHESIS, *words]
    run = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "Tested: " in run.stdout
    assert server.ask("GET", "/healthz")[0] == 200 and "Traceback" not in server.log() + server.output()
