"""Make pictures of every page, light and dark, wide and on a phone: `make screenshots`.

python -m tests.browser.screenshots docs/images              of a shop that is at work
python -m tests.browser.screenshots /tmp/empty --empty       of a new install
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from unittest.mock import patch

from playwright.sync_api import Browser, BrowserContext, FloatRect, Page

from mainspring import Mainspring
from mainspring.server import Server
from mainspring.web.session import TOKEN
from tests.browser.chromium import launched, opened
from tests.browser.picture import packed
from tests.browser.shop import Shop, add_tasks, filled
from tests.browser.tour import stops

_SIZES = {"": {"width": 1280, "height": 800}, "-phone": {"width": 390, "height": 844}}
_LONGEST = 1_280
_EMPTY = ["jobs", "schedules", "workflows", "dead", "queues", "workers", "limits", "alerts", "tokens", "audit"]


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("folder", type=Path)
    given.add_argument("--empty", action="store_true", help="of pages on which there is nothing yet")
    given.add_argument("--only", default="", help="of pages whose names begin like that")
    asked = given.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, patch("socket.gethostname", lambda: "mill-1"):
        url = f"sqlite:///{scratch}/shop.db?synchronous=normal"
        shop = None if asked.empty else filled(url)
        names = stops(shop) if shop else {"overview": "/"} | {name: f"/{name}" for name in _EMPTY}
        chosen = {name: address for name, address in names.items() if name.startswith(asked.only)}
        _take(url, shop, chosen, asked.folder)


def _take(url: str, shop: Shop | None, chosen: dict[str, str], folder: Path) -> None:
    app = Mainspring(url)
    add_tasks(app)
    server = Server(app, "127.0.0.1", 0)
    server.start()
    try:
        with launched() as browser:
            for light in ("light", "dark"):
                for size in _SIZES:
                    context = _context(browser, server.url, shop, light, size)
                    page, kind = context.new_page(), f"{'' if light == 'light' else '-dark'}{size}"
                    for name, address in chosen.items():
                        _shoot(page, address, folder / f"{name}{kind}.png")
                    context.close()
    finally:
        server.stop()
        app.close()


def _context(browser: Browser, url: str, shop: Shop | None, light: str, size: str) -> BrowserContext:
    context, _ = opened(browser, base_url=url, color_scheme=light, viewport=_SIZES[size], reduced_motion="reduce")
    if shop:
        context.add_cookies([{"name": TOKEN, "value": shop.secret, "url": url}])
    return context


def _shoot(page: Page, address: str, to: Path) -> None:
    page.goto(address)
    taken = page.screenshot(full_page=True, animations="disabled", clip=_clip(page))
    to.write_bytes(packed(page, taken))


def _clip(page: Page) -> FloatRect:
    """Return as much of a long page as anybody needs to see of it."""
    width, height = page.evaluate("[document.documentElement.clientWidth, document.documentElement.scrollHeight]")
    return {"x": 0, "y": 0, "width": width, "height": min(height, _LONGEST)}


if __name__ == "__main__":
    main()
