"""A file of a page, opened in Chromium."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from blocks import Skipped
from expected import matches

PATIENCE_S = 60


def text_of(file: Path, environment: dict[str, str], awaited: str) -> str:
    """The text that it shows, once that is what is awaited or the patience is over. Raises what its scripts raise."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("RLITE_TEST_CHROMIUM", shutil.which("chromium"))
    if not chromium:
        raise Skipped("no chromium")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        try:
            tab = running.new_page()
            errors: list[str] = []
            tab.on("pageerror", lambda error: errors.append(str(error)))
            tab.goto(file.as_uri())
            deadline = time.monotonic() + PATIENCE_S
            while True:
                shown = tab.inner_text("body")
                if matches(awaited, shown) or errors or time.monotonic() > deadline:
                    assert not errors, errors
                    return str(shown)
                tab.wait_for_timeout(50)
        finally:
            running.close()
