"""The browser, and what it has to complain about."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Request, Response, sync_playwright

_VARIABLE = "MAINSPRING_TEST_BROWSER"
_QUIETLY = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
_TELL_OF_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) => complain(
  `${event.violatedDirective} keeps out ${event.blockedURI} ${event.sample}`));
"""


def find_browser() -> str:
    """Return the program to run. Tests never do without: what they prove would go unproven, and nobody would know."""
    wanted = os.environ.get(_VARIABLE) or "chromium"
    found = shutil.which(wanted)
    if found is None:
        raise AssertionError(
            f"expected a browser to test the dashboard in, got none at {wanted!r}; install one with `make chromium`, "
            f"or name one with {_VARIABLE}=/path/to/chromium"
        )
    return found


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser without a window."""
    program = find_browser()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=_QUIETLY)
        try:
            yield browser
        finally:
            browser.close()


class Complaints(list[str]):
    """All that goes wrong on the pages of a context, in whatever way a browser tells of it."""

    def __init__(self, context: BrowserContext, forgiven: Collection[int]) -> None:
        """Take answers with a status that is *forgiven* for what the test is after."""
        super().__init__()
        self._forgiven = forgiven
        context.expose_binding("complain", lambda _, words: self.append(f"policy: {words}"))
        context.add_init_script(_TELL_OF_VIOLATIONS)
        context.on("console", self._hear)
        context.on("weberror", lambda raised: self.append(f"script: {raised.error}"))
        context.on("requestfailed", self._failed)
        context.on("response", self._answered)

    def _hear(self, message: ConsoleMessage) -> None:
        # What could not be loaded is told of by its request and its answer, which say why.
        if message.type in ("error", "warning") and not message.text.startswith("Failed to load resource"):
            self.append(f"console: {message.text}")

    def _failed(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # as whoever leaves a page has it: its stream, and what it loads
            self.append(f"request: {request.url}: {request.failure}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self._forgiven:
            self.append(f"answer: {response.status} to {response.request.method} {response.url}")


def opened(browser: Browser, forgiven: Collection[int] = (), **options: Any) -> tuple[BrowserContext, Complaints]:
    """Return a context that nothing was done in yet, and what will be wrong in it."""
    context = browser.new_context(**options)
    return context, Complaints(context, forgiven)
