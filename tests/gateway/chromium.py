"""The page in Debian's Chromium, as somebody sees and uses it.

RLITE_TEST_CHROMIUM names the browser; empty means: there is none.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import pytest
from http_server import HttpServer
from patience import PATIENCE_S, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

driver = pytest.importorskip("playwright.sync_api", reason="no playwright: it has no wheel for this machine")
expect = driver.expect

CHROMIUM = os.environ.get("RLITE_TEST_CHROMIUM", shutil.which("chromium"))
needs_chromium = pytest.mark.skipif(
    not CHROMIUM, reason="no chromium: the page was not tested (RLITE_TEST_CHROMIUM, or apt-get install chromium)"
)

expect.set_options(timeout=1000 * PATIENCE_S)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Without its sandbox, which needs rights that a container has not; what it is shown is our own page.

    It has a module, and not the whole run, because an event loop runs in this thread as long as it is there."""
    with driver.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield running
        running.close()


@pytest.fixture
def look(browser: Browser) -> Iterator[Look]:
    """Open a tab on a server. Whatever a test is about: no other host was asked, and nothing went wrong."""
    opened: list[Sight] = []

    def new(server: HttpServer, **options: Any) -> Sight:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        opened.append(Sight(context, server.http_port))
        return opened[-1]

    yield new
    for sight in opened:
        sight.context.close()
        assert not sight.strangers and not sight.errors, (sight.strangers, sight.errors)


class Sight:
    """A tab with the page in it. Whatever it asks of any other host is refused, and remembered with its errors."""

    def __init__(self, context: BrowserContext, http_port: int) -> None:
        self.context = context
        self.origin = f"http://127.0.0.1:{http_port}"
        self.strangers: list[str] = []
        self.errors: list[str] = []
        context.set_default_timeout(1000 * PATIENCE_S)
        context.route(lambda url: not self._is_own(url), self._refuse)
        self.page: Page = context.new_page()
        self.page.on("pageerror", lambda failure: self.errors.append(str(failure)))
        self.page.on("console", self._hear)

    def _is_own(self, url: str) -> bool:
        return urlsplit(url).hostname == "127.0.0.1" or url.startswith("data:")

    def _refuse(self, route: Any) -> None:
        self.strangers.append(route.request.url)
        route.abort()

    def _hear(self, message: Any) -> None:
        # A server that is gone, or wants a token, is told in the console by the browser itself.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.errors.append(message.text)

    def open(self, view: str = "overview", *, is_live: bool = True, **said: str) -> Sight:
        """One of the page's views."""
        self.page.goto(f"{self.origin}/#/{view}?{urlencode(said)}")
        if is_live:
            self.is_live()
        return self

    def turn_to(self, view: str, **said: str) -> None:
        """Another view, without loading the page again."""
        self.page.evaluate("hash => { location.hash = hash }", f"#/{view}?{urlencode(said)}")

    def is_live(self) -> None:
        expect(self.page.locator("#state")).to_have_text("live")

    @property
    def panel(self) -> Locator:
        """The view in sight."""
        return self.page.locator("[role=tabpanel]:not([hidden])")

    @property
    def table(self) -> Locator:
        return self.panel.get_by_role("grid")

    @property
    def rows(self) -> Locator:
        return self.table.locator(".rows [role=row]")

    def row(self, text: str) -> Locator:
        return self.rows.filter(has_text=text)

    def cells(self, text: str) -> list[str]:
        """Of the one row that has this text."""
        expect(self.row(text)).to_have_count(1)
        return [cell.strip() for cell in self.row(text).locator("[role=gridcell]:visible").all_inner_texts()]

    def messages(self) -> list[str]:
        """What a tail shows, from top to bottom."""
        script = """rows => rows.map(row => [parseInt(row.style.top), row.children[2].textContent])"""
        found: list[tuple[int, str]] = self.rows.evaluate_all(script)
        return [text for _, text in sorted(found)]

    def notice(self, text: str) -> None:
        """Something was said, for a moment."""
        expect(self.page.locator("#notices")).to_contain_text(text)

    def element_count(self) -> int:
        return int(self.page.evaluate("document.querySelectorAll('*').length"))

    def follows(self) -> None:
        """The tail is open."""
        expect(self.page.locator("#tail-state")).to_have_text("live")

    def becomes(self, look: Any, wanted: object) -> None:
        """Wait until what is looked at is so."""
        seen: list[object] = []

        def is_so() -> bool:
            seen[:] = [look()]
            return bool(seen[0] == wanted)

        try:
            until(is_so)
        except AssertionError:
            assert seen[0] == wanted
            raise


Look = Callable[..., Sight]
