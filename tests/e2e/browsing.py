"""A real Chromium for the tests, and a real server for it to visit."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

import recollect
from recollect.interfaces.http.app import Api
from recollect.interfaces.http.server import Server, listening
from recollect.interfaces.web.site import Site
from tests.e2e.http_world import UNLIMITED

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = ("--no-sandbox", "--disable-background-networking", "--disable-gpu")


def found_browser() -> str | None:
    """The browser of this machine, or the one that RECOLLECT_BROWSER names."""
    named = os.environ.get("RECOLLECT_BROWSER")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def launched(executable: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def served(memory: recollect.Memory) -> Iterator[str]:
    """Where a memory is served with its pages, on a socket of this machine."""
    api = Api(memory, UNLIMITED)
    server = Server(api.beside(Site(api, memory).routes()), api.stop)
    with listening("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.stop()
            thread.join()


def sign_in(page: Page, url: str, secret: str) -> None:
    page.goto(f"{url}/")
    page.get_by_label("Key").fill(secret)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{url}/ui**")
