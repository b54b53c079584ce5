"""mkdocs's hook: what makes a site of the tree.

- Files that stand outside of docs/ are pages, too. In the tree every link is relative to its file, so that it works
  where files are read one by one; each is rewritten to where its target stands in the site.
- A copy button copies commands: no prompt, no output, and no comment, which zsh does not take at its prompt.
- Who searches for installing finds the page Install first.
- llms.txt, which tells programs what to read, leads to pages of the site.
- Each version has a folder, `build/site/VERSION`, and `build/site/versions.json` lists those that are there, newest
  first. Publish build/site as it is, and keep the folders of the versions before.
"""

from __future__ import annotations

import configparser
import html
import json
import os
import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
SITE = "site"
"""The folder of the folders of all versions."""
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
    "examples/README.md": "examples.md",
    "protocol/README.md": "protocol.md",
    "rlite_pubsub/storage/FORMAT.md": "format.md",
}
"""Path in the tree -> page of the site."""
INSIDE = {page: path for path, page in OUTSIDE.items()}
DOWNLOADS = ("contrib", "examples")
"""Folders of the tree whose files the site offers as they are."""
TARGET = re.compile(r'(\]\(|(?:src|srcset|href)=")(?![a-z]+:|#)([^)#"\s]+)')
BOOST = {"install.md": 100}
"""Pages that are found before others, by how much."""
SHELL_BLOCK = re.compile(r'<div class="language-(bash|console) highlight">(?=(.*?)</div>)', re.DOTALL)
FOLDER_LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+contrib/[^)]*)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """A page that the nav does not name yet comes last, under "More", and is not lost. The built site has a folder for
    its version."""
    if Path(config.site_dir).name == SITE:
        config.site_dir = os.fspath(Path(config.site_dir, version()))
    named = set(re.findall(r"'([^']+\.md)'", repr(config.nav)))
    pages = Path(config.docs_dir).rglob("*.md")
    more = sorted({path.relative_to(config.docs_dir).as_posix() for path in pages} - named)
    if more:
        config.nav = [*(config.nav or []), {"More": more}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the files that stand outside."""
    for path, page in OUTSIDE.items():
        files.append(File.generated(config, page, abs_src_path=os.fspath(ROOT / path)))
    for folder in DOWNLOADS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.relative_to(ROOT).as_posix() not in OUTSIDE and "__pycache__" not in path.parts:
                name = path.relative_to(ROOT).as_posix()
                files.append(File.generated(config, name, abs_src_path=os.fspath(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Each link to a file, as the site has it. A site has no folders to show, so a link to one is its text."""
    here = page.file.src_uri
    if here in BOOST:
        page.meta["search"] = {"boost": BOOST[here]}
    in_tree = INSIDE.get(here, join("docs", here))

    def place(target: str) -> str:
        return normpath(join(dirname(in_tree), target))

    def turned(found: re.Match[str]) -> str:
        target = place(found[2])
        there = OUTSIDE.get(target) or target.removeprefix("docs/")
        return found[1] + relpath(there, dirname(here) or ".")

    def unlinked(found: re.Match[str]) -> str:
        return found[1] if (ROOT / place(found[2])).is_dir() else found[0]

    return TARGET.sub(turned, FOLDER_LINK.sub(unlinked, markdown))


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Says at each block of a shell what its button copies."""

    def told(found: re.Match[str]) -> str:
        text = html.unescape(re.sub(r"<[^>]+>", "", found[2]))
        copied = "\n".join(commands(text, prompted=found[1] == "console"))
        return f'<div class="language-{found[1]} highlight" data-copy="{html.escape(copied)}">'

    return SHELL_BLOCK.sub(told, content)


def on_post_build(config: MkDocsConfig) -> None:
    """Tells programs what there is to read (llms.txt), lists the versions, and leads to the newest."""
    told = TARGET.sub(lambda found: found[1] + _page_of(found[2]), (ROOT / "llms.txt").read_text(encoding="utf-8"))
    Path(config.site_dir, "llms.txt").write_text(told, encoding="utf-8")
    site = Path(config.site_dir).parent
    if site.name != SITE:
        return
    found = sorted((path.parent.name for path in site.glob("*/index.html")), key=_in_order, reverse=True)
    rows = [{"version": name, "title": name, "aliases": ["latest"] if name == found[0] else []} for name in found]
    newest = f'<!doctype html><meta http-equiv="refresh" content="0; url={found[0]}/index.html">'
    (site / "versions.json").write_text(json.dumps(rows))
    (site / "index.html").write_text(newest)


def _page_of(path: str) -> str:
    """The page of the site that shows a file of the tree."""
    return (OUTSIDE.get(path) or path.removeprefix("docs/")).removesuffix(".md") + ".html"


def version() -> str:
    """The version in setup.cfg."""
    metadata = configparser.ConfigParser(interpolation=None)
    metadata.read(ROOT / "setup.cfg", encoding="utf-8")
    return metadata["metadata"]["version"]


def _in_order(name: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", name)))


def commands(text: str, *, prompted: bool) -> list[str]:
    """The lines of a block that a reader types, without what stays behind: prompts, output and comments."""
    lines: list[str] = []
    typed, until = not prompted, None
    for line in text.strip("\n").split("\n"):
        if until is None and prompted:
            continued = bool(lines) and typed and lines[-1].endswith("\\")
            typed = line.startswith("$ ") or continued
        if not typed:
            continue
        words = line.removeprefix("$ ") if prompted and until is None else line
        if until is not None:
            until = None if words.strip() == until else until
        else:
            here = re.search(r"<<-?\s*'?(\w+)'?", words)
            until = here[1] if here else None
            words = re.sub(r"(^|\s+)#( .*)?$", "", words)
        if words.strip() or until is not None:
            lines.append(words)
    return lines
