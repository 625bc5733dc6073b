"""A page that is older than the server, after an upgrade, gets the pages of the server."""

import pytest
from playwright.async_api import BrowserContext, Error, Page, Route

from tests.support.board.pages import Board, asks_for, change_script, sent_keys, shown, sign_in
from tests.support.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

LOADED_BY = "performance.getEntriesByType('navigation')[0].type"
# As a page does five seconds after a user signed in. With routes, a browser uses no cache.
REGISTER_WORKER = """async () => {
    await navigator.serviceWorker.register("/board/worker.js", { scope: "/board" });
    await navigator.serviceWorker.ready;
}"""
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


async def loaded_anew(page: Page) -> None:
    """Wait until the page is another one."""

    async def is_loaded_anew() -> bool:
        try:
            return bool(await page.evaluate(f"{LOADED_BY} === 'reload'"))
        except Error:  # the page is changing
            return False

    await eventually(is_loaded_anew, "the page is loaded anew")


async def test_a_page_loads_anew_if_the_server_does_not_know_what_it_asks(board: Board) -> None:
    course, context = await board.course(), await board.context()
    await forget_once(context, "slotsOfCampaign")
    page = await board.open(context, course.address)
    await course.row(page).wait_for()
    assert await page.evaluate(LOADED_BY) == "reload"


async def test_a_page_loads_anew_if_the_server_does_not_know_what_it_watches(board: Board) -> None:
    course, context = await board.course(), await board.context()
    named = "documentId: documentId(each.name)"
    await change_script(context, (named, f'{named} + ({LOADED_BY} === "reload" ? "" : "x")'))
    page = await board.open(context, course.address)
    await loaded_anew(page)
    await course.row(page).wait_for()


async def test_a_page_waits_for_a_new_one_if_its_texts_are_of_another_version(
    board: Board,
) -> None:
    course, context = await board.course(), await board.context()
    other: list[Route] = []

    async def handle(route: Route) -> None:
        if other:
            await route.fallback()
            return
        other.append(route)
        path = route.request.url.partition("/messages/")[2]
        await route.fallback(url=f"{board.app.url}/board/0123456789abcdef/messages/{path}")

    await context.route("**/messages/en.js", handle)
    page = await board.open(context, course.address)
    await course.row(page).wait_for()
    assert await page.evaluate(LOADED_BY) == "reload"


async def test_a_page_with_a_worker_loads_anew_past_the_cache_of_the_browser(
    board: Board,
) -> None:
    page = await board.open(await board.context(bypass_csp=True))
    await page.evaluate(REGISTER_WORKER)
    ids = set[str]()
    for _ in range(3):
        response = await page.reload()
        assert response
        assert response.from_service_worker
        ids.add((await response.all_headers())["x-request-id"])
    assert len(ids) == 3


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


async def test_a_page_that_is_older_than_the_server_waits_until_what_somebody_typed_is_sent(
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
    await loaded_anew(page)
