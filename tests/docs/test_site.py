"""The site builds without a warning, all of its links lead somewhere, and it is read without another host."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from blocks import blocks_of

pytestmark = pytest.mark.sources("the site is made of the tree, pages beside the sources included")
ROOT = Path(__file__).parents[2]
LOADING = {("script", "src"), ("img", "src"), ("link", "href"), ("source", "srcset"), ("iframe", "src")}
"""What a browser fetches by itself."""


class Resources(HTMLParser):
    """The URLs of one page: those that a browser loads, and those that a reader may follow."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.linked: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and (tag, name) in LOADING:
                self.loaded.append(value)
            elif value and (tag, name) == ("a", "href"):
                self.linked.append(value)
            elif value and name == "id":
                self.names.add(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="mkdocs-material is not installed")
    place = tmp_path_factory.mktemp("built") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(place)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stderr
    [version] = [path for path in place.iterdir() if path.is_dir()]
    return version


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Resources]:
    return {path: Resources(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}


def test_readme_is_the_home_of_the_site(pages: dict[Path, Resources], site: Path) -> None:
    assert len(pages) > 15
    assert "What SQLite is to SQL" in (site / "index.html").read_text()


def test_every_link_within_the_site_leads_to_a_page_and_a_heading(pages: dict[Path, Resources]) -> None:
    lost = []
    for path, page in pages.items():
        for link in page.linked + page.loaded:
            address, _, name = link.partition("#")
            if ":" in address or link == ".":
                continue
            target = (path.parent / address).resolve() if address else path
            if not target.exists() or (name and target in pages and name not in pages[target].names):
                lost.append(f"{path.name}: {link}")
    assert not lost


def test_every_page_can_be_reached_from_the_home(pages: dict[Path, Resources], site: Path) -> None:
    linked = {(site / link.partition("#")[0]).resolve() for link in pages[site / "index.html"].linked}
    assert not {path.relative_to(site) for path in pages if path.resolve() not in linked} - {Path("index.html")}


def test_a_reader_needs_no_other_host(pages: dict[Path, Resources]) -> None:
    foreign = {f"{path.name}: {url}" for path, page in pages.items() for url in page.loaded if "//" in url}
    assert not foreign


class Quiet(SimpleHTTPRequestHandler):
    """Serves the site, and says nothing about it."""

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture(scope="module")
def tab(site: Path) -> Iterator[Any]:
    """A browser's tab on the site's home, as it is published: below the list of its versions."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = os.environ.get("RLITE_TEST_CHROMIUM", shutil.which("chromium"))
    if not chromium:
        pytest.skip("no chromium")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site.parent)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = f"http://127.0.0.1:{server.server_port}/{site.name}/"
    with playwright.sync_playwright() as browsers:
        running = browsers.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        context = running.new_context(permissions=["clipboard-read", "clipboard-write"])
        found = context.new_page()
        found.goto(home + "index.html")
        yield found
        running.close()
    server.shutdown()
    server.server_close()


def test_copy_button_copies_commands_without_prompts_output_and_comments(tab: Any) -> None:
    tab.goto(tab.url.rpartition("/")[0] + "/cli.html")

    def copied(text: str) -> str:
        block = tab.locator("div.highlight", has_text=text).first
        block.hover()
        block.locator("button[data-clipboard-target]").click()
        return str(tab.evaluate("navigator.clipboard.readText()"))

    assert copied("rlite-pubsub cli --raw GET greeting").split("\n")[:3] == [
        "rlite-pubsub cli SET greeting hello",
        "rlite-pubsub cli GET greeting",
        "rlite-pubsub cli --raw GET greeting",
    ]
    assert copied("rlite-pubsub serve --http-port 8080").split("\n")[-1] == "rlite-pubsub serve --http-port 8080"


def test_copied_block_has_every_command_of_a_block(pages: dict[Path, Resources], site: Path) -> None:
    """Those of `$ `, continued lines, here-documents: read by the tests' own reader of blocks."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from mkdocs_hook import commands

    for path in (ROOT / "docs").rglob("*.md"):
        for block in blocks_of(path):
            if block.language in ("bash", "console") and not block.obstacle:
                copied = "\n".join(commands(block.text, prompted=block.language == "console")).split()
                said = " ".join(block.commands).split()
                assert [word for word in said if word in copied][:1] == said[:1], block.name
                assert not {"$"} & set(copied[:1]), block.name


@pytest.mark.parametrize("words", ["install", "pip install", "virtual environment", "how to install"])
def test_search_for_installing_finds_install_first(tab: Any, words: str) -> None:
    tab.goto(tab.url.rpartition("/")[0] + "/index.html")
    tab.keyboard.press("/")
    tab.keyboard.type(words)
    first = tab.locator(".md-search-result__item a").first
    first.wait_for()
    assert "install.html" in first.get_attribute("href")


def test_each_page_leads_to_its_neighbours_and_to_the_repository(site: Path) -> None:
    text = (site / "install.html").read_text()
    assert 'class="md-footer__link md-footer__link--prev"' in text
    assert 'class="md-footer__link md-footer__link--next"' in text
    assert 'href="https://github.com/rlite-pubsub/rlite-pubsub"' in text


def test_reader_may_choose_among_versions(tab: Any, site: Path) -> None:
    assert json.loads((site.parent / "versions.json").read_text())[0]["version"] == site.name
    assert f"url={site.name}/index.html" in (site.parent / "index.html").read_text()
    tab.goto(tab.url.rpartition("/")[0] + "/index.html")
    chooser = tab.locator(".md-version__current")
    chooser.wait_for()
    assert site.name in chooser.inner_text()


def test_what_programs_are_told_to_read_is_there(site: Path) -> None:
    """In the tree, and on the site."""
    for text, place in (((ROOT / "llms.txt").read_text(), ROOT), ((site / "llms.txt").read_text(), site)):
        targets = re.findall(r"\]\(([^)]+)\)", text)
        assert len(targets) > 30 and [one for one in targets if not (place / one).is_file()] == []
