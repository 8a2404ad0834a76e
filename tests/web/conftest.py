"""A demonstration site, from files and from a server, in a real Chromium that may ask nobody else for anything."""

from __future__ import annotations

import contextlib
import functools
import http.server
import shutil
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect, sync_playwright
from tests.web import demo, records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from _typeshed import SupportsRead, SupportsWrite
    from playwright.sync_api import Browser, Page, Route


PATIENCE = 20_000  # milliseconds, for a machine that does other work too
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # A name that a shell and an address must quote.
    out = tmp_path_factory.mktemp("web") / "a site's (own) $folder"
    demo.write(out, records.releases(), records.KNOWN)
    return out


class _Site(http.server.SimpleHTTPRequestHandler):
    """A page comes in two parts, as it does over a network: what looks at one before it is there fails always."""

    def copyfile(self, source: SupportsRead[bytes], outputfile: SupportsWrite[bytes]) -> None:
        with contextlib.suppress(ConnectionError):  # of a page that was left before it was whole
            outputfile.write(source.read(1500))
            time.sleep(0.1)
            super().copyfile(source, outputfile)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def served(folder: Path) -> Iterator[str]:
    """The site's address on a server of this machine."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Site, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(params=["file", "http"])
def site(request: pytest.FixtureRequest, folder: Path, served: str) -> str:
    """The site's address both ways."""
    return folder.as_uri() if request.param == "file" else served


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.fail("these tests need a Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=path)
        yield made
        made.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens an address in a context of its own; afterwards nothing may have failed, nor been asked of another site."""
    contexts, faults, asked = [], [], []

    def opener(address: str, **options: Any) -> Page:
        home = urlsplit(address)
        context = browser.new_context(**options)
        contexts.append(context)

        def watch(route: Route) -> None:
            to = urlsplit(route.request.url)
            asked.append(route.request.url)
            if to.scheme == "data" or (to.scheme, to.netloc) == (home.scheme, home.netloc):
                route.continue_()
            else:
                faults.append(f"asks another site: {route.request.url}")
                route.abort()

        context.route("**/*", watch)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda message: message.type in ("error", "warning") and faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("requestfailed", lambda failed: faults.append(f"failed: {failed.url}"))
        page.on("dialog", lambda dialog: faults.append(f"a dialog: {dialog.message}"))
        page.goto(address)
        return page

    yield opener
    for context in contexts:
        context.close()
    assert faults == []
    assert asked or not contexts
