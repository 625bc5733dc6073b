"""A school secretary does every step of the guide of organizers by clicking, in its order.

`make screenshots` runs this scenario with PICTURES, the folder to which it writes the pictures.
"""

import json
import os
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser

from slotlock.auth import accounts
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role
from tests.support.apps.processes import app_environment
from tests.support.apps.skewed_apps import skewed_apps
from tests.support.board import year
from tests.support.board.pages import Board
from tests.support.board.school import PLANNING, SECRETARY, SITE_NAME, WINDOW, School
from tests.support.board.year import STEPS
from tests.support.clients.booking_client import BookingClient
from tests.support.stores.users import auth_for_database

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
MESSAGES = Path(__file__).parents[2] / "slotlock" / "board" / "messages" / "en.json"
END_OF_STEPS = "Beyond the board"


def guide() -> str:
    """Return the text of the guide, without what needs more than the board."""
    return (GUIDES / "organizers.md").read_text().partition(f"## {END_OF_STEPS}")[0]


def test_each_heading_of_the_guide_has_its_step_in_order() -> None:
    assert re.findall(r"^## (?:\d+\. )?(.*)$", guide(), re.MULTILINE) == list(STEPS)


def test_the_guide_shows_each_picture_that_the_steps_take() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(pictures/([\w-]+)\.png\)", guide())
    taken = re.findall(r'\.picture\(\s*"(\w[\w-]*)"', Path(year.__file__).read_text())
    files = {path.stem for path in (GUIDES / "pictures").glob("*.png")}
    assert shown == taken
    assert files == set(taken)


def test_each_bold_word_of_the_guide_is_on_the_board() -> None:
    messages = json.loads(MESSAGES.read_text()).values()
    texts = {
        form for each in messages for form in ([each] if isinstance(each, str) else each.values())
    }
    patterns = [
        re.sub(r"\\\{\w+\\\}", r"[\\w ]+", re.escape(text))
        for text in texts
        if re.search(r"[A-Za-z]{2}", re.sub(r"\{\w+\}", "", text))
    ]
    words = {word.strip("`") for word in re.findall(r"\*\*(.+?)\*\*", guide())}
    assert words
    assert [word for word in words if not any(re.fullmatch(each, word) for each in patterns)] == []


@pytest_asyncio.fixture(loop_scope="module")
async def school(
    browser: Browser, board_http: httpx.AsyncClient, servers: EmbeddedServers, tmp_path: Path
) -> AsyncIterator[School]:
    """Yield a school whose secretary has an account, and a page of the board before sign-in."""
    # An app of another time must not share its Redis with others.
    own_redis = replace(servers, redis_url=f"{servers.redis_url}/9")
    environment = {
        **app_environment(own_redis, "school_guide"),
        "SLOTLOCK_SITE_NAME": SITE_NAME,
        "SLOTLOCK_REGISTRATION": "invited",
    }
    with skewed_apps(environment, tmp_path, [0.0], without_guards="mongodb-time") as [skewed]:
        name, email, password = SECRETARY
        async with auth_for_database(environment["SLOTLOCK_MONGO_URL"]) as auth:
            await accounts.create_user(auth, name, email, password, Role.ORGANIZER)
        board = Board(browser, board_http, skewed.app, BookingClient(board_http, skewed.app.url))
        context = await board.context(
            timezone_id="Europe/Berlin", locale="de-DE", viewport=WINDOW, reduced_motion="reduce"
        )
        page = await board.open(context)
        folder = os.environ.get("PICTURES")
        opened = School(skewed, board_http, context, page, Path(folder) if folder else None)
        await opened.wait_until(PLANNING)
        yield opened
        await context.close()
        assert board.errors == []


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.timeout(600)
async def test_a_secretary_does_every_step_of_the_guide_by_clicking(school: School) -> None:
    for work in STEPS.values():
        await work(school)
