"""What a member's lists show beside the courses: where one was, when it is, and ways on."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import Page, Route, WebSocketRoute, expect

from tests.support.board.pages import Board, Course, shown
from tests.support.clients.campaigns import UPDATE_CAMPAIGN, set_groups
from tests.support.clients.client import hours_from_now, times_in
from tests.support.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

PHONE = {"viewport": {"width": 320, "height": 640}}


async def add_courses(board: Board, course: Course, *titles: str, day: int = 3) -> list[Course]:
    """Add courses to the campaign of another one, each on a day of its own."""
    added = []
    for number, title in enumerate(titles):
        start = datetime.now(UTC) + timedelta(days=day + number)
        times = {
            "startTime": start.isoformat(),
            "endTime": (start + timedelta(hours=1)).isoformat(),
        }
        slot = {"campaignId": course.campaign_id, "title": title, "capacity": 12, **times}
        added.append(Course(course.campaign_id, await board.organizer.add_slot(**slot)))
    return added


async def height_of(page: Page, course: Course) -> float:
    """Return the height of the row of a course."""
    return float(await course.row(page).last.evaluate("row => row.getBoundingClientRect().height"))


async def test_a_list_is_where_it_was_and_its_rows_have_one_height(board: Board) -> None:
    student, course = await board.student(), await board.course()
    limit = {"campaignId": course.campaign_id, "maxBookings": 1}
    await board.organizer.execute(UPDATE_CAMPAIGN, input=limit)
    others = await add_courses(board, course, *(f"Course {number}" for number in range(9)))
    page = await board.visit(student, course, **PHONE)
    await course.row(page, "open").wait_for()
    await shown(page, "You can book 1 course").wait_for()
    # All filters are in the window, and begin where the field does.
    chips = page.locator(".filters .chip, .filters .input")
    left = "chip => chip.getBoundingClientRect().left"
    assert await chips.first.evaluate(left) == await chips.nth(1).evaluate(left)
    for chip in await chips.all():
        box = await chip.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["viewport"]["width"]
    before = [await height_of(page, each) for each in (course, *others)]
    await course.button(page).click()
    await course.row(page, "yours").wait_for()
    await others[0].row(page, "closed").wait_for()
    assert [await height_of(page, each) for each in (course, *others)] == before
    await others[-1].row(page).get_by_role("link", name="Course 8").click()
    await page.get_by_role("heading", level=1, name="Course 8").wait_for()
    assert await page.evaluate("scrollY") == 0
    await page.go_back()
    await others[-1].row(page).wait_for()
    is_visible = "row => row.getBoundingClientRect().bottom <= innerHeight && scrollY > 300"
    row = others[-1].row(page)
    await eventually(lambda: row.evaluate(is_visible), "the list is where it was")
    await page.reload()
    await row.wait_for()
    await eventually(lambda: row.evaluate(is_visible), "a reload keeps the place")
    await others[-1].row(page).get_by_role("link", name="Course 8").click()
    await page.get_by_role("heading", level=1, name="Course 8").wait_for()
    await page.reload()
    await page.get_by_role("heading", level=1, name="Course 8").wait_for()
    await page.go_back()
    await row.wait_for()
    await eventually(lambda: row.evaluate(is_visible), "so does a reload of another page")


async def test_the_first_page_says_when_a_campaign_opens(board: Board) -> None:
    # Within a day in every zone.
    course = await board.course(opens_in_s=3600 * 0.9)
    [other] = await add_courses(board, course, "Go")
    student = await board.student()
    context = await board.context(student, timezone_id="Asia/Kathmandu")
    page = await board.open(context, course.address)
    await shown(page, "your device is 5 hours and 45 minutes ahead").wait_for()
    await page.get_by_role("button", name="Star: Go").click()
    day = datetime.now(UTC) + timedelta(days=3)
    first = page.locator("ol[data-key=starred] li")
    await expect(first).to_contain_text(f"{day.strftime('%B')} {day.day}")
    assert await other.row(page).count() == 2
    # Without a zone of the site, its first page has that of the first course that is not over.
    first_course = await board.course(timeZone="America/Bogota", **times_in(1))
    await board.organizer.update_slot(first_course.slot_id, startTime=hours_from_now(-20))
    await page.goto(f"{board.app.url}/board#/")
    await shown(page, "your device is 10 hours and 45 minutes ahead").wait_for()
    page = await context.new_page()
    await page.route("**/board", lambda route: give_zone(route, "Asia/Tokyo"))
    for address in ("#/", course.address):
        await page.goto(f"{board.app.url}/board{address}")
        await shown(page, "your device is 3 hours and 15 minutes behind").first.wait_for()


async def give_zone(route: Route, zone: str) -> None:
    """Let the page be that of a site in a zone."""
    response = await route.fetch()
    body = re.sub("(timeZone.{1,20}?)UTC", rf"\1{zone}", await response.text())
    await route.fulfill(response=response, body=body)


async def test_a_week_is_printed_with_all_codes_on_request(board: Board) -> None:
    student, course = await board.student(), await board.course()
    others = await add_courses(board, course, "Go", "Tennis")
    for each in (course, *others):
        await student.book_slot(each.slot_id)
    page = await board.open(await board.context(student), "#/week")
    await page.get_by_role("img", name="Code for Chess").wait_for()
    await page.get_by_role("button", name="All codes").click()
    await page.emulate_media(media="print")
    for title in ("Chess", "Go", "Tennis"):
        await expect(page.get_by_role("img", name=f"Code for {title}")).to_be_visible()


async def test_an_address_that_leads_nowhere_says_so(board: Board) -> None:
    page = await board.open(await board.context())
    await page.goto(f"{board.app.url}/board#/nix")
    await shown(page, "There is nothing here").wait_for()
    for name in ("Sign in", "Courses"):
        await expect(page.locator("main").get_by_text(name)).to_be_visible()


async def test_the_week_stays_after_giving_back_and_leads_on(board: Board) -> None:
    student, course = await board.student("Mia Wren"), await board.course()
    await board.vouch_for(student)
    await set_groups(board.organizer, student, "7b")
    [later] = await add_courses(board, course, "Go", day=30)
    await student.book_slot(later.slot_id)
    page = await board.open(await board.context(student), "#/week")
    await page.get_by_role("link", name="Go", exact=True).wait_for()
    days = page.locator("p.printed")
    printed = await days.inner_text()
    assert printed.startswith("Mia Wren · 7b · slotlock")
    await page.emulate_media(media="print")
    await expect(days).to_be_visible()
    await page.emulate_media(media="screen")
    await page.get_by_role("button", name="Next week").click()
    await page.locator(".notice", has_text="Nothing this week.").wait_for()
    await page.get_by_role("button", name="Previous week").click()
    await page.get_by_role("button", name="Previous week").click()
    # The empty week leads to the one that is not.
    await page.locator(".notice").get_by_role("button").click()
    await page.get_by_role("link", name="Go", exact=True).wait_for()
    await expect(page.locator(".meetings .none").first).to_have_text("Nothing")

    async def hold(route: Route) -> None:
        answer = await route.fetch() if "cancelBooking" in (route.request.post_data or "") else None
        if answer:  # the event comes before it, and with it a week without the course
            await expect(page.get_by_role("link", name="Go", exact=True)).to_be_hidden()
        await (route.fulfill(response=answer) if answer else route.continue_())

    await page.route("**/graphql", hold)
    await page.get_by_role("button", name="Give back: Go").click()
    await page.get_by_role("group").get_by_role("button", name="Give back").click()
    await shown(page, "You gave Go back.").wait_for()
    assert await days.inner_text() == printed
    await page.get_by_role("link", name="See courses").click()
    await page.get_by_role("heading", name="What you can book").wait_for()
    await student.book_slot(later.slot_id)
    await page.goto(f"/board#/slot/{later.slot_id}")
    await page.get_by_role("button", name="Give back: Go").click()
    await page.get_by_role("group").get_by_role("button", name="Give back").click()
    await page.locator(".notice", has_text="You gave Go back.").wait_for()


async def test_a_link_to_nothing_leads_on_and_a_slow_start_is_no_lost_connection(
    board: Board,
) -> None:
    page = await board.open(await board.context())
    await page.goto("/board#/campaign/nothing")
    await shown(page, "There is nothing here").wait_for()  # before, campaigns have that name
    await page.locator("main").get_by_role("link", name="Courses").wait_for()
    await page.locator("main").get_by_role("button", name="Sign in").click()
    await page.get_by_label("Password", exact=True).wait_for()
    context, is_due = await board.context(), asyncio.Event()

    async def connect_late(socket: WebSocketRoute) -> None:
        await is_due.wait()
        socket.connect_to_server()

    await context.route_web_socket("**/graphql", connect_late)
    course: Any = await board.course()
    page = await board.open(context, course.address)
    await course.row(page).wait_for()
    await expect(page.locator(".live")).to_have_text("Connecting…")
    is_due.set()
    await expect(page.locator(".live")).to_have_text("Live")
