"""The board of a running app in a real browser. All tests of a module share the browser."""

from collections.abc import AsyncIterator

import httpx
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

from tests.support.apps.processes import AppProcess
from tests.support.board.chromium import find_chromium
from tests.support.board.pages import Board
from tests.support.clients.booking_client import create_booking_clients
from tests.support.clients.client import http_client
from tests.support.polling import TIMEOUT_S

# The tests may run as root, and in a container whose /dev/shm is small.
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
# As all other waits for a page; the default is 5 s.
expect.set_options(timeout=1000 * TIMEOUT_S)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """Yield a browser without a window."""
    path = find_chromium()
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=path, args=OPTIONS)
        yield opened
        await opened.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def board_http() -> AsyncIterator[httpx.AsyncClient]:
    """Yield an HTTP client of the same event loop as the browser."""
    async with http_client() as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def board(
    browser: Browser, board_http: httpx.AsyncClient, app: AppProcess
) -> AsyncIterator[Board]:
    """Yield the board of the first process. No page of it may report an error."""
    _, organizer = create_booking_clients(board_http, 0, app)
    opened = Board(browser, board_http, app, organizer)
    yield opened
    for context in opened.contexts:
        await context.close()
    assert opened.errors == []
