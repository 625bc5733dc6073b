"""News of a member's places in a real browser: seen, said once, and in the title until read."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId
from playwright.async_api import BrowserContext, Page, expect

from tests.support.board.pages import NOTE_SAYINGS, Board, Course, Student, change_script, shown
from tests.support.clients.booking_client import BookingClient
from tests.support.scenarios.led_course import CREATE_LED

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Pages without a window are visible always.
HIDE = "Object.defineProperty(document, 'hidden', { get: () => !globalThis.isSeen });"
SEE = "globalThis.isSeen = {}; document.dispatchEvent(new Event('visibilitychange'))"
REASON = "Ms Wren has the flu <b>."
CANCEL = """mutation($slot: ID!, $reason: String) {
  cancelSlot(slotId: $slot, reason: $reason) { __typename }
}"""


async def watch(board: Board, student: Student, address: str) -> Page:
    """Open a page that notes what it says, once it is live."""
    return await watch_in(board, await board.context(student), address, NOTE_SAYINGS)


async def watch_in(board: Board, context: BrowserContext, address: str, script: str) -> Page:
    page = await board.open(context, address, script)
    await page.locator(".live:not(.stale)").wait_for()
    return page


async def add_course(board: Board, course: Course, title: str, **fields: object) -> Course:
    """Add another course to the campaign, two days after the first one."""
    day = datetime.now(UTC) + timedelta(days=9)
    times = {"startTime": day.isoformat(), "endTime": (day + timedelta(hours=1)).isoformat()}
    slot = {"title": title, "capacity": 2, **times, **fields}
    slot_id = await board.organizer.add_slot(campaignId=course.campaign_id, **slot)
    return Course(course.campaign_id, slot_id)


async def cancel(organizer: BookingClient, course: Course) -> None:
    """Cancel a course for a reason."""
    await organizer.execute(CANCEL, slot=course.slot_id, reason=REASON)


async def test_a_promotion_is_seen_said_once_and_in_the_title_until_it_is_read(
    board: Board,
) -> None:
    student, first = await board.student(), await board.student("Jonas")
    course = await board.course(capacity=1, waitlistCapacity=5)
    await first.book_slot(course.slot_id)
    await student.join(course.slot_id)
    context = await board.context(student)
    await change_script(context, ("READ_MS = 5000", "READ_MS = 100"))
    page = await watch_in(board, context, course.address, NOTE_SAYINGS + HIDE)
    await course.row(page, "waiting").wait_for()
    await first.cancel_booking((await first.fetch_slot(course.slot_id))["myBooking"]["id"])
    news = "You moved up: Chess is yours"
    await shown(page, news).wait_for()
    await course.row(page, "yours").wait_for()
    await expect(page.locator("#status")).to_have_text(news)
    await page.evaluate(SEE.format("false"))
    await expect(page).to_have_title(re.compile(f"^{news} · "))
    assert await page.evaluate("sayings") == [news]
    await page.evaluate(SEE.format("true"))
    await expect(page).not_to_have_title(re.compile(news))
    await page.get_by_role("button", name="Hide").click()
    await shown(page, news).wait_for(state="detached")


async def test_a_cancellation_says_why_and_what_is_free_and_its_row_stays(board: Board) -> None:
    names = ("Mia", "Jonas", "Ada", "Lena")
    owner, waiting, other, absent = [await board.student(name) for name in names]
    course = await board.course(capacity=2, waitlistCapacity=5)
    free = await add_course(board, course, "Go")
    for each in (owner, absent):
        await each.book_slot(course.slot_id)
    await waiting.join(course.slot_id)
    # One of them looks at her week, one at the list, and one has no network.
    week = await watch(board, owner, "#/week")
    listed = await watch(board, waiting, course.address)
    asleep = await watch(board, absent, course.address)
    await course.row(asleep, "yours").wait_for()
    await asleep.context.set_offline(True)
    await course.row(listed, "waiting").wait_for()
    await cancel(board.organizer, course)
    off = f"Chess does not take place: {REASON}"
    for page in (week, listed):
        await shown(page, off).wait_for()
        said = f"{off} 1 course still has places."
        await expect(page.locator("#status")).to_have_text(said)
        assert await page.evaluate("sayings") == [said]
    await expect(course.row(listed, "ended")).to_contain_text(REASON)
    await week.get_by_role("button", name="See courses").click()
    await free.button(week).wait_for()
    assert await week.get_by_label("Free places").is_checked()
    for page in (week, listed):
        await page.reload()
        await expect(course.row(page, "ended").locator("s")).to_have_text("Chess")
        await expect(course.row(page)).to_contain_text(f"Does not take place: {REASON}")
    await asleep.context.set_offline(False)
    await expect(course.row(asleep, "ended")).to_contain_text(REASON)
    others = await board.visit(other, course)
    await free.row(others).wait_for()
    await others.locator(".live:not(.stale)").wait_for()
    await expect(course.row(others)).to_have_count(0)


async def test_the_page_of_a_cancelled_course_shows_what_is_free_at_that_time(board: Board) -> None:
    student = await board.student()
    day = datetime.now(UTC) + timedelta(days=2)
    times: Any = {"startTime": day.isoformat(), "endTime": (day + timedelta(hours=1)).isoformat()}
    course = await board.course(**times)
    free = await add_course(board, course, "Go", **times)
    later = await add_course(board, course, "Judo")
    await student.book_slot(course.slot_id)
    page = await watch(board, student, f"#/slot/{course.slot_id}")
    await cancel(board.organizer, course)
    await free.button(page).click()
    await expect(page.locator("#status")).to_have_text("Go is yours.")
    assert await later.row(page).count() == 0


async def test_who_is_moved_by_an_organizer_reads_where_to(board: Board) -> None:
    student, course = await board.student(), await board.course()
    other = await add_course(board, course, "Go")
    page = await watch(board, student, course.address)
    await course.button(page).click()
    await course.row(page, "yours").wait_for()
    booked = (await student.fetch_slot(course.slot_id))["myBooking"]
    await board.organizer.move(booked["id"], other.slot_id)
    news = "You were moved: Go is yours now"
    await shown(page, news).wait_for()
    await other.row(page, "yours").wait_for()
    await expect(page.locator("#status")).to_have_text(news)
    # What she did herself is no news.
    assert await page.evaluate("sayings") == ["Chess is yours.", news]
    await expect(page.locator(".news .notice")).to_have_count(1)
    await page.locator(".news").get_by_role("link", name=news).click()
    await page.get_by_role("heading", level=1, name="Go").wait_for()
    await expect(page.locator(".news .notice")).to_have_count(0)


async def test_who_has_a_place_reads_who_leads_now_and_what_else_changed(board: Board) -> None:
    student, course, names = await board.student(), await board.course(), ("Ms Wren", "Mr Kim")
    wren, kim = [
        await board.organizer.execute(CREATE_LED, name=f"{name} {ObjectId()}") for name in names
    ]
    await student.book_slot(course.slot_id)
    page = await watch(board, student, course.address)
    await course.row(page, "yours").wait_for()
    for led in ([wren], [kim, wren]):
        await board.organizer.update_slot(course.slot_id, resourceIds=[each["id"] for each in led])
        leaders = ", ".join(each["name"] for each in led)
        await shown(page, f"Chess is now led by {leaders}").wait_for()
    await board.organizer.update_slot(course.slot_id, resourceIds=[kim["id"]], location="Gym 2")
    await shown(page, "Changed: location and teacher of Chess").wait_for()
    await board.organizer.update_slot(course.slot_id, resourceIds=[])
    await shown(page, "Changed: teacher of Chess").wait_for()
    day = datetime.now(UTC) + timedelta(days=8)
    times = {"startTime": day.isoformat(), "endTime": (day + timedelta(hours=1)).isoformat()}
    await board.organizer.update_slot(course.slot_id, **times)
    await shown(page, "Changed: time of Chess").wait_for()
    await expect(page.locator(".news .notice")).to_have_count(1)


async def test_an_organizer_enters_why_a_course_is_cancelled(board: Board) -> None:
    course = await board.course()
    colleague = await board.colleague("Olga")
    page = await board.open(await board.context(colleague), f"#/course/{course.slot_id}")
    await page.get_by_role("button", name="Cancel the course").click()
    await page.get_by_label("Reason").fill(REASON)
    await page.get_by_role("button", name="Yes, cancel the course").click()
    await shown(page, f"Does not take place: {REASON}").wait_for()
    await page.get_by_role("button", name="Show").click()
    await expect(page.locator("ol.log")).to_contain_text(f"→ {REASON}")
