"""Several courses at once with the board, and all dates of a series: judged by the roster."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.support.board.pages import (
    Board,
    Course,
    Student,
    asks_for,
    before_each,
    lose_first,
    shown,
)
from tests.support.clients.booking_client import expire_holds
from tests.support.clients.client import times_in
from tests.support.clients.series import create_series

pytestmark = pytest.mark.asyncio(loop_scope="module")

PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}}
TITLES = ("Chess", "Go", "Yoga")
ROSTER = """query($id: ID!) {
  slotRoster(slotId: $id, first: 50) { nodes { status user { name } } }
}"""


@dataclass
class Courses:
    """Three courses of a campaign, one after the other."""

    board: Board
    first: Course
    ids: list[str]

    async def rosters(self) -> list[dict[str, str]]:
        """Return who has which status in each of the courses."""
        found = [await self.board.organizer.execute(ROSTER, id=each) for each in self.ids]
        return [{row["user"]["name"]: row["status"] for row in each["nodes"]} for each in found]


async def three_courses(board: Board, **last: Any) -> Courses:
    """Create three courses; the last one with these fields."""
    first = await board.course()
    ids = [first.slot_id]
    for number, title in enumerate(TITLES[1:], 1):
        fields = last if number == 2 else {}
        more = {"capacity": 12, "campaignId": first.campaign_id, **times_in(24 + number), **fields}
        ids.append(await board.organizer.add_slot(title=title, **more))
    return Courses(board, first, ids)


async def choose_all(board: Board, student: Student, courses: Courses) -> Page:
    """Tick all courses in the list, on a phone."""
    page = await board.visit(student, courses.first, **PHONE)
    await page.get_by_role("button", name="Choose several").click()
    for title in TITLES:
        await page.get_by_role("checkbox", name=title, exact=True).check()
    await page.get_by_text("3 courses chosen").wait_for()
    assert await page.evaluate("document.documentElement.scrollWidth") <= 360
    return page


async def test_one_tap_books_three_courses(board: Board) -> None:
    student, courses = await board.student(), await three_courses(board)
    page = await choose_all(board, student, courses)
    judo = await board.course(title="Judo", **times_in(99))
    await board.organizer.book_slot(judo.slot_id, userId=await student.fetch_user_id())
    await page.get_by_text("Booked for you: Judo").first.wait_for()  # and covers no button
    await page.get_by_role("button", name="Book all, or none").click()
    await expect(page.locator('li.slot[data-state="yours"]')).to_have_count(3)
    await expect(page.get_by_text("3 courses chosen")).to_have_count(0)
    assert await courses.rosters() == [{"Mia": "CONFIRMED"}] * 3


async def test_if_one_course_is_full_none_is_booked_and_it_is_named(board: Board) -> None:
    student, other = await board.student(), await board.student("Jonas")
    courses = await three_courses(board, capacity=1)
    page = await choose_all(board, student, courses)
    await before_each(page, "bookSlots", lambda: other.book_slot(courses.ids[2]))
    await page.get_by_role("button", name="Book all, or none").click()
    said = "Nothing was booked. Yoga: no place left."
    await page.locator("main").get_by_text(said).wait_for()
    assert await courses.rosters() == [{}, {}, {"Jonas": "CONFIRMED"}]


async def test_a_chosen_course_that_became_full_is_named_and_can_be_left_out(board: Board) -> None:
    student, other = await board.student(), await board.student("Jonas")
    courses = await three_courses(board, capacity=1)
    page = await choose_all(board, student, courses)
    await other.book_slot(courses.ids[2])
    bar = page.get_by_role("complementary", name="3 courses chosen")
    await bar.get_by_text("Yoga: no place left.").wait_for()
    await expect(bar.get_by_role("button", name="Book all, or none")).to_be_disabled()
    await page.get_by_role("checkbox", name="Yoga", exact=True).click()  # which is gone then
    await expect(page.get_by_role("checkbox", name="Yoga", exact=True)).to_have_count(0)
    await page.get_by_role("button", name="Book all, or none").click()
    await expect(page.locator('li.slot[data-state="yours"]')).to_have_count(2)
    assert await courses.rosters() == [{"Mia": "CONFIRMED"}] * 2 + [{"Jonas": "CONFIRMED"}]


async def test_a_reload_in_the_middle_books_all_of_them_once(board: Board) -> None:
    student, courses = await board.student(), await three_courses(board)
    page = await choose_all(board, student, courses)
    lost = asyncio.Event()

    async def lose(route: Route) -> None:
        if not lost.is_set() and asks_for(route.request, "bookSlots"):
            await route.fetch()  # the server books, and its answer is lost
            lost.set()
        else:
            await route.fallback()

    await page.route("**/graphql", lose)
    await page.get_by_role("button", name="Book all, or none").click()
    await lost.wait()
    await page.reload()
    await expect(page.locator('li.slot[data-state="yours"]')).to_have_count(3)
    assert await courses.rosters() == [{"Mia": "CONFIRMED"}] * 3


async def test_after_a_reload_in_the_middle_the_page_still_says_why_none_is_booked(
    board: Board,
) -> None:
    student, other = await board.student(), await board.student("Jonas")
    courses = await three_courses(board, capacity=1)
    page = await choose_all(board, student, courses)
    lost = await lose_first(page, "bookSlots")
    await page.get_by_role("button", name="Book all, or none").click()
    await lost.wait()
    await other.book_slot(courses.ids[2])
    await page.reload()
    said = "Nothing was booked. Yoga: no place left."
    await page.locator("main").get_by_text(said).wait_for()
    await page.get_by_role("button", name="Hide").click()
    await expect(page.locator("main").get_by_text(said)).to_have_count(0)
    assert await courses.rosters() == [{}, {}, {"Jonas": "CONFIRMED"}]


async def test_the_keyboard_reserves_all_and_confirms_all_in_the_week(board: Board) -> None:
    student, courses = await board.student(), await three_courses(board)
    page = await choose_all(board, student, courses)
    await page.get_by_role("button", name="Reserve all").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator('li.slot[data-state="held"]')).to_have_count(3)
    assert await courses.rosters() == [{"Mia": "HELD"}] * 3
    await page.goto("/board#/week")
    await page.get_by_text("left").first.wait_for()
    await page.get_by_role("button", name="Confirm all 3").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Confirm")).to_have_count(0)
    assert await courses.rosters() == [{"Mia": "CONFIRMED"}] * 3


async def test_a_reserved_place_is_given_back_in_the_list_and_the_week_and_its_end_is_said(
    board: Board,
) -> None:
    student, course = await board.student(), await board.course(holdMinutes=5)
    slot_id = course.slot_id
    await student.hold(slot_id)
    page = await board.visit(student, course, **PHONE)
    await page.locator(".live:not(.stale)").wait_for()
    await course.row(page, "held").get_by_role("button", name="Give back: Chess").click()
    await course.row(page, "open").wait_for()
    assert (await board.organizer.fetch_slot(slot_id))["remaining"] == 12
    await student.hold(slot_id)  # on another device
    await course.row(page, "held").wait_for()
    await page.goto("/board#/week")
    await page.get_by_role("button", name="Give back: Chess").click()
    await page.get_by_text("You gave Chess back.").first.wait_for()
    await student.hold(slot_id)
    await page.get_by_role("button", name="Give back: Chess").wait_for()
    await expect(page.locator("body > .news")).to_have_count(0)  # all was one's own act
    expire_holds(board.app.environment["SLOTLOCK_MONGO_URL"], slot_id)
    await shown(page, "The time to confirm is over: Chess").wait_for()
    await expect(page.locator("#status")).to_have_text("The time to confirm is over: Chess")
    await expect(page.get_by_role("button", name="Give back")).to_have_count(0)


async def test_friends_get_several_courses_or_none(board: Board) -> None:
    ada, ben = [await board.student(name) for name in ("Ada", "Ben")]
    await ada.create_team_with(ben)
    courses = await three_courses(board)
    page = await choose_all(board, ada, courses)
    await page.get_by_role("checkbox", name="Ben").wait_for()
    await page.get_by_role("button", name="Book all, or none").click()
    await expect(page.get_by_text("Ben has a place")).to_have_count(3)
    assert await courses.rosters() == [{"Ada": "CONFIRMED", "Ben": "CONFIRMED"}] * 3


@pytest.mark.parametrize("is_full", [False, True], ids=["free", "one_full"])
async def test_a_series_is_booked_whole_or_where_it_is_free(board: Board, is_full: bool) -> None:
    student, other = await board.student(), await board.student("Jonas")
    created = await create_series(
        board.organizer, "FREQ=DAILY;COUNT=3", capacity=1, timeZone="UTC", **times_in(24)
    )
    ids = [each["id"] for each in created["slots"]]
    if is_full:
        await other.book_slot(ids[1])
        await student.create_team_with(other)
    page = await board.open(await board.context(student, **PHONE), f"#/slot/{ids[0]}")
    await page.get_by_role("heading", name="All 3 dates").wait_for()
    await page.get_by_role("button", name="Book all, or none of them").click()
    if is_full:
        dates = page.get_by_role("region", name="All 3 dates")
        await dates.get_by_text("For whom: Me").wait_for()
        await page.locator("main").get_by_text("Nothing was booked.").wait_for()
        assert (await board.organizer.fetch_slot(ids[0]))["remaining"] == 1
        await page.get_by_role("button", name="Book those that are free").click()
        await page.locator("main").get_by_text("2 dates are booked.").wait_for()
    await page.get_by_role("heading", name="Yours", exact=True).wait_for()
    courses = Courses(board, Course("", ids[0]), ids)
    names = [set(each) for each in await courses.rosters()]
    assert names == [{"Mia"}, {"Jonas" if is_full else "Mia"}, {"Mia"}]
