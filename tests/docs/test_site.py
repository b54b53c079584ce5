"""The site builds without a warning, all of its links lead somewhere, and it is read without another host."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

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
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(place)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stderr
    return place


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
