"""Records the terminal session of the README as an SVG, docs/images/terminal.svg.

The session is real: bash in a pseudo-terminal, in an empty folder, where the port is free. What it prints is what the
picture shows. The SVG loads nothing, types its lines one after the other, and shows them all at once to readers who ask
for less motion. `--check` writes nothing and fails if the session prints something else than the picture shows.
"""

from __future__ import annotations

import argparse
import html
import os
import pty
import re
import select
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/images/terminal.svg"
PROMPT = "$ "
PORT = 6379
PATIENCE_S = 60
PROGRAM = """\
import rlite_pubsub

r = rlite_pubsub.Redis("./store", client_name="durable:billing")
p = r.pubsub(ignore_subscribe_messages=True)
p.subscribe("orders")
for _ in range(3):
    if message := p.get_message(timeout=0.5):
        print("received", message["data"])
"""


class Step(NamedTuple):
    """What is typed, and what must hold before the next line is."""

    command: str
    awaits_server: bool = False


STEPS = (
    Step("tail -n +3 billing.py"),
    Step("python billing.py                                # subscribes as durable:billing, and ends"),
    Step("rlite-pubsub serve --daemonize yes --pidfile pid"),
    Step("redis-cli publish orders tea                     # any Redis client, while billing is away", True),
    Step("kill -9 $(cat pid)                               # the server dies"),
    Step("python billing.py                                # no server: it opens the folder itself"),
)


def record() -> list[str]:
    """The lines of the session, as a terminal shows them."""
    with tempfile.TemporaryDirectory(prefix="rlite-recording-") as folder:
        (Path(folder) / "billing.py").write_text(PROGRAM)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": folder, "PS1": PROMPT, "TERM": "dumb", "COLUMNS": "200", "LANG": "C.UTF-8"}
        ours, theirs = pty.openpty()
        shell = subprocess.Popen(
            ["bash", "--norc", "--noediting", "-i"], cwd=folder, env=environment, stdin=theirs, stdout=theirs,
            stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        try:
            text = _until_prompt(ours)
            text = text[text.rindex(PROMPT) :]
            for step in STEPS:
                if step.awaits_server:
                    _await_server()
                os.write(ours, step.command.encode() + b"\n")
                text += _until_prompt(ours)
        finally:
            shell.kill()
            shell.wait()
            os.close(ours)
            pid = Path(folder) / "pid"
            if pid.exists():
                subprocess.run(["kill", "-9", pid.read_text().strip()], stderr=subprocess.DEVNULL, check=False)
    return text.replace("\r\n", "\n").removesuffix(PROMPT).rstrip("\n").split("\n")


def _until_prompt(terminal: int) -> str:
    found = b""
    deadline = time.monotonic() + PATIENCE_S
    while not found.endswith(PROMPT.encode()):
        if not select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise SystemExit(f"the session hangs after {found.decode()!r}")
        found += os.read(terminal, 65536)
    return found.decode()


def _await_server() -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", PORT)).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


CHARACTER_WIDTH, LINE_HEIGHT, MARGIN, BAR = 8.4, 20, 18, 34
TYPING_S, READING_S = 1.1, 0.5
STYLE = """\
text { font: 14px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #d6dde4; white-space: pre }
.prompt { fill: #5fd7a7 } .comment { fill: #8a97a6 }
.line { opacity: 0; animation: appear 0.2s forwards }
@keyframes appear { to { opacity: 1 } }
@media (prefers-reduced-motion: reduce) { .line { opacity: 1; animation: none } }"""


def picture(lines: list[str]) -> str:
    """The session as an SVG."""
    width = round(max(map(len, lines)) * CHARACTER_WIDTH) + 2 * MARGIN
    height = BAR + len(lines) * LINE_HEIGHT + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        "<title>A subscriber receives what was published while it was away, though the server was killed</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#151b22"/>',
        *(f'<circle cx="{MARGIN + 4 + 20 * n}" cy="17" r="5.5" fill="{color}"/>'
          for n, color in enumerate(("#ff5f57", "#febc2e", "#28c840"))),
    ]  # fmt: skip
    at_s = 0.3
    for number, line in enumerate(lines):
        is_typed = line.startswith(PROMPT)
        at_s += TYPING_S if is_typed and number else READING_S / 5
        y = BAR + (number + 1) * LINE_HEIGHT - 5
        parts.append(
            f'<text class="line" style="animation-delay: {at_s:.1f}s" x="{MARGIN}" y="{y}" '
            f'xml:space="preserve">{_colored(line)}</text>'
        )
        at_s += READING_S if is_typed else 0.0
    return "\n".join([*parts, "</svg>", ""])


def _colored(line: str) -> str:
    prompt, rest = (PROMPT, line.removeprefix(PROMPT)) if line.startswith(PROMPT) else ("", line)
    command, mark, comment = rest.partition("# ")
    spans = (("prompt", prompt), ("", command), ("comment", mark + comment))
    texts = ((kind, html.escape(text, quote=False)) for kind, text in spans if text)
    return "".join(f'<tspan class="{kind}">{text}</tspan>' if kind else text for kind, text in texts)


def shown(svg: str) -> list[str]:
    """The lines of the session that a picture shows."""
    return [
        html.unescape(re.sub(r"<[^>]+>", "", line)) for line in re.findall(r'<text class="line".*?>(.*)</text>', svg)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    arguments = parser.parse_args()
    lines = record()
    if not arguments.check:
        PICTURE.write_text(picture(lines))
    elif lines != shown(PICTURE.read_text()):
        print("\n".join(lines), f"\n{PICTURE} is out of date: run scripts/recording.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
