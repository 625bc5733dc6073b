"""A page that is older than the server, after an upgrade, gets the pages of the server."""

import pytest
from playwright.async_api import BrowserContext, Route

from tests.support.board.pages import Board, asks_for, sent_keys, shown, sign_in

pytestmark = pytest.mark.asyncio(loop_scope="module")

LOADED_BY = "performance.getEntriesByType('navigation')[0].type"
OLD_PAGE = "This page is older than the server."


async def forget_once(context: BrowserContext, operation: str) -> None:
    """Let the server not know the document of one request."""
    forgotten: list[Route] = []

    async def handle(route: Route) -> None:
        data = route.request.post_data
        if not forgotten and data and asks_for(route.request, operation):
            forgotten.append(route)
            data = data.replace(f"board/{operation}/", f"board/{operation}/x")
        await route.fallback(post_data=data)

    await context.route("**/graphql", handle)


async def test_a_page_loads_anew_if_the_server_does_not_know_what_it_asks(board: Board) -> None:
    course, context = await board.course(), await board.context()
    await forget_once(context, "slotsOfCampaign")
    page = await board.open(context, course.address)
    await course.row(page).wait_for()
    assert await page.evaluate(LOADED_BY) == "reload"


async def test_a_booking_survives_that_its_page_is_older_than_the_server(board: Board) -> None:
    student, course = await board.student(), await board.course()
    context = await board.context(student)
    await forget_once(context, "bookSlot")
    page = await board.open(context, course.address)
    keys = sent_keys(page)
    await course.button(page).click()
    await course.row(page, "yours").wait_for()
    assert await page.evaluate(LOADED_BY) == "reload"
    assert len(keys) >= 2
    assert len(set(keys)) == 1
    assert (await student.fetch_slot(course.slot_id))["remaining"] == 11


async def test_what_somebody_typed_stays_in_a_page_that_is_older_than_the_server(
    board: Board,
) -> None:
    student, context = await board.student(), await board.context()
    await forget_once(context, "login")
    page = await board.open(context, "#/signin")
    await sign_in(page, student)
    await shown(page, OLD_PAGE).wait_for()
    assert await page.evaluate(LOADED_BY) == "navigate"
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("link", name="Mia").wait_for()
