"""Every view: axe finds nothing, and the page fits on a narrow phone."""

import re
from typing import Any, Literal

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page

from tests.support.board.pages import Board, Course, Student
from tests.support.board.sources import LANGUAGES, MODULES
from tests.support.clients.client import hours_from_now, times_in

pytestmark = pytest.mark.asyncio(loop_scope="module")

WIDTHS = (320, 1280)
# The views by their address, with the modules that name them.
VIEWS = {
    address: module
    for module in ("app.js", "views/organizer.js")
    for address in re.findall(r'^  (\w+|""): open\w+,$', MODULES[module], re.MULTILINE)
    if address not in ("invitation", "reset")
}
# What follows the address of a view.
SHOWN_CAMPAIGN = ("campaign", "plan", "monitor", "wishes", "draw")
SHOWN_SLOT = ("slot", "course", "door")
# All rules of WCAG 2.2 AA and the best practices; only the contrast depends on the scheme.
ALL_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
CONFIGURE = """mutation($input: ConfigureDrawInput!) { configureDraw(input: $input) {
  __typename } }"""
WISH = """mutation($campaign: ID!, $slots: [ID!]!) {
  setWishes(campaignId: $campaign, slotIds: $slots) { __typename } }"""
Scheme = Literal["light", "dark"]
RULES: dict[Scheme, list[str]] = {"light": ALL_RULES, "dark": ["color-contrast"]}


async def create_rows_of_all_states(board: Board, student: Student) -> Course:
    """Create a campaign whose slots are in different states for the student."""
    other = await board.student("Jonas")
    course = await board.course()

    async def add(title: str, day: int = 1, **fields: Any) -> str:
        slot = {"campaignId": course.campaign_id, "location": "Room 2", **times_in(24 * day)}
        return await board.organizer.add_slot(title=title, **slot, **fields)

    await student.book_slot(await add("Yours", day=2))
    await add("Clash", day=2)
    await student.hold(await add("Held", day=3))
    for title, is_waiting in (("Full", False), ("Waiting", True)):
        full = await add(title, day=4, capacity=1, waitlistCapacity=3)
        await other.book_slot(full)
        if is_waiting:
            await student.join(full)
    await add("Queue", day=5, capacity=3, admission="QUEUE_ONLY")
    await board.organizer.cancel_slot(await add("Cancelled", day=5))
    return course


async def open_draw(board: Board, student: Student, course: Course) -> None:
    """Open a draw in which the student has a wish."""
    settings = {"campaignId": course.campaign_id, "wishesUntil": hours_from_now(1)}
    await board.organizer.execute(CONFIGURE, input={**settings, "showsDemand": True})
    await student.execute(WISH, campaign=course.campaign_id, slots=[course.slot_id])


async def violations(page: Page, rules: list[str] | None = None) -> list[str]:
    """Return what violates these rules on a page, or any rule, each with the element."""
    options = {"runOnly": rules} if rules else {}
    found = (await Axe().run(page, options=options)).response["violations"]
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


@pytest.mark.parametrize("view", VIEWS)
async def test_axe_finds_nothing_in_light_and_dark_on_phone_and_laptop(
    board: Board, view: str
) -> None:
    student = await board.student()
    course = await create_rows_of_all_states(board, student)
    if view in ("wishes", "draw"):
        await open_draw(board, student, course)
    user = await board.admin() if "/organizer" in VIEWS[view] else student
    context = await board.context(None if view == "signin" else user)
    parts = {
        **dict.fromkeys(SHOWN_CAMPAIGN, course.campaign_id),
        **dict.fromkeys(SHOWN_SLOT, course.slot_id),
    }
    page = await board.open(context, "#/" + "/".join((view.strip('"'), parts.get(view, ""))))
    await page.wait_for_selector("main:not(:has(.bones))")
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 800})
        for scheme, rules in RULES.items():
            await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert await violations(page, rules) == [], (width, scheme)
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
    assert await page.locator("[aria-invalid]").count() == 0


async def test_a_countdown_of_hours_fits_on_a_narrow_phone(board: Board) -> None:
    student, course = await board.student("Maximilian"), await board.course(opens_in_s=11 * 3600)
    page = await board.visit(student, course, viewport={"width": WIDTHS[0], "height": 640})
    await page.get_by_role("timer").wait_for()
    assert await page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[0]


@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_first_page_speaks_the_language_of_the_browser(
    board: Board, language: str
) -> None:
    context = await board.browser.new_context(base_url=board.app.url, locale=language)
    board.contexts.append(context)
    page = await board.open(context)
    title = LANGUAGES[language]["campaigns.title"]
    await page.get_by_role("heading", name=str(title)).wait_for()
    assert await page.evaluate("document.documentElement.lang") == language
