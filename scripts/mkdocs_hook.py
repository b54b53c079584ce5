"""mkdocs's hook: files of the tree that stand outside of docs/ are pages of the site, too.

In the tree every link is relative to its file, so that it works where files are read one by one. The site has some
pages at other places: each link is rewritten to where its target stands there.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
    "protocol/README.md": "protocol.md",
    "rlite_pubsub/storage/FORMAT.md": "format.md",
}
"""Path in the tree -> page of the site."""
INSIDE = {page: path for path, page in OUTSIDE.items()}
DOWNLOADS = ("contrib",)
"""Folders of the tree whose files the site offers as they are."""
TARGET = re.compile(r'(\]\(|(?:src|srcset|href)=")(?![a-z]+:|#)([^)#"\s]+)')
FOLDER_LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+contrib/[^)]*)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """A page that the nav does not name yet comes last, under "More", and is not lost."""
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
            if path.is_file():
                name = path.relative_to(ROOT).as_posix()
                files.append(File.generated(config, name, abs_src_path=os.fspath(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Each link to a file, as the site has it. A site has no folders to show, so a link to one is its text."""
    here = page.file.src_uri
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
