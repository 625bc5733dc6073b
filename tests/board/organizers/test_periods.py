"""Organizers name the lessons of a school day, and everybody reads the names, in a real browser."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Page, ViewportSize, expect

from slotlock.devserver.embedded import EmbeddedServers
from tests.board.test_accessibility import violations
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.board.pages import Board, shown
from tests.support.clients.client import Json
from tests.support.clients.series import set_periods

pytestmark = pytest.mark.asyncio(loop_scope="module")

SMALL: ViewportSize = {"width": 360, "height": 800}
WIDE: ViewportSize = {"width": 1280, "height": 900}
TUESDAY_THIRD: Json = {
    "timeZone": "Europe/Berlin",
    "startTime": "2035-07-03T10:05:00+02:00",
    "endTime": "2035-07-03T10:50:00+02:00",
}
COURSES = """query($campaign: ID!) { slots(filter: {campaignId: $campaign, status: DRAFT}) {
  nodes { meetings { startTime endTime } } } }"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[AppProcess]:
    """Run an app on a database of its own, because periods are of all its users."""
    settings = app_environment(servers, "periods")
    with forked_app(settings, tmp_path_factory.mktemp("periods")) as running:
        yield running


async def fill(page: Page, label: str, text: str) -> None:
    """Fill the last field with a label."""
    await page.get_by_label(label, exact=True).last.fill(text)


async def test_an_organizer_enters_periods_and_members_read_them(board: Board) -> None:
    course = await board.course(title="Chess", **TUESDAY_THIRD)
    mia = await board.student()
    requests: list[str] = []
    page = await board.new_page(await board.context(mia, viewport=SMALL))
    page.on("request", lambda request: requests.append(request.url))
    await page.goto(f"/board{course.address}")
    await course.button(page).wait_for()
    # A school without periods loads nothing for them.
    assert not [each for each in requests if "periods" in each]
    assert "period" not in await page.locator("main").inner_text()

    olga = await board.open(
        await board.context(await board.colleague("Olga"), viewport=SMALL), "#/organizer"
    )
    await olga.get_by_role("link", name="Periods").click()
    for number in range(1, 5):
        await olga.get_by_role("button", name="Add a period").click()
        await expect(olga.locator(".rows > .row")).to_have_count(number)
    # Each begins after the one before.
    names = await olga.get_by_label("Name", exact=True).all()
    assert [await each.input_value() for each in names] == ["1", "2", "3", "4"]
    await fill(olga, "Starts", "10:55")
    await fill(olga, "Ends", "10:40")
    await olga.get_by_role("button", name="Save").click()
    await expect(olga.locator(".error")).to_have_text(
        "4: It must end after it starts, on the same day."
    )
    await fill(olga, "Ends", "11:40")
    third = olga.locator(".rows > .row").nth(2)
    await third.get_by_label("Starts").fill("10:05")
    await third.get_by_label("Ends").fill("10:50")
    await third.get_by_label("Days").select_option(label="Monday, Tuesday, Wednesday, and Thursday")
    await olga.get_by_role("button", name="Save").click()
    await shown(olga, "Saved.").wait_for()
    assert await violations(olga) == []
    assert await olga.evaluate("document.documentElement.scrollWidth") <= SMALL["width"]

    await page.reload()
    row = course.row(page)
    await expect(row).to_contain_text("Tue, period 3")
    await course.button(page).click()
    await course.row(page, "yours").wait_for()
    await page.goto(f"/board#/slot/{course.slot_id}")
    await expect(page.locator(".top")).to_contain_text("10:50 · Tue, period 3 · Room 1")
    await page.goto("/board#/week")
    await expect(page.locator(".meeting .is")).to_contain_text("Tue, period 3")
    await page.emulate_media(media="print")
    await expect(page.locator(".meeting .is")).to_be_visible()
    for locale, text in (("de", "Di, 3. Stunde"), ("zh", "周二第3节")):
        context = await board.context(locale=locale, timezone_id="America/New_York")
        other = await board.new_page(context)
        await other.goto(f"/board{course.address}")
        await other.evaluate(f"localStorage.setItem('slotlock.language', '{locale}')")
        await other.reload()
        await expect(course.row(other)).to_contain_text(text)

    # Another list changes no course, and says how many show their times again.
    await third.get_by_label("Ends").fill("10:51")
    await olga.get_by_role("button", name="Save").click()
    await shown(olga, "1 course to come is in no period now").wait_for()
    await page.reload()
    await expect(page.locator(".meeting")).to_contain_text("10:05")
    assert "period" not in await page.locator("main").inner_text()


async def test_a_weekly_row_takes_the_times_of_a_period_on_each_day(board: Board) -> None:
    lessons: list[Json] = [
        {"name": "3", "startTime": "10:05", "endTime": "10:50", "weekdays": ["MONDAY", "TUESDAY"]},
        {"name": "3", "startTime": "10:00", "endTime": "10:30", "weekdays": ["WEDNESDAY"]},
        {"name": "4", "startTime": "10:55", "endTime": "11:40"},
    ]
    await set_periods(board.organizer, *lessons)
    course = await board.course(**TUESDAY_THIRD)
    olga = await board.colleague("Olga")
    page = await board.open(
        await board.context(olga, viewport=WIDE), f"#/plan/{course.campaign_id}/new"
    )
    await page.get_by_label("Title").fill("Choir")
    await page.get_by_label("It takes place").select_option(label="Several meetings, one booking")
    await page.get_by_label("First day").fill("2035-07-02")
    await page.get_by_label("Last day").fill("2035-07-04")
    period = page.get_by_role("combobox", name="Period")
    await expect(period.locator("option")).to_have_count(4)
    await period.select_option("3\u20134")
    await expect(page.get_by_label("Ends").first).to_have_value("11:40")
    await period.select_option("3")
    await page.get_by_role("button", name="Add a day of the week").click()
    await expect(period).to_have_count(2)
    await page.get_by_role("combobox", name="Day", exact=True).nth(1).select_option("Wednesday")
    # The lesson of that day is at another time, and stays the same lesson.
    await expect(period.nth(1)).to_have_value("3")
    await expect(page.get_by_label("Starts").nth(1)).to_have_value("10:00")
    # Friday has no third lesson: the time stays.
    await page.get_by_role("combobox", name="Day", exact=True).nth(1).select_option("Friday")
    await expect(period.nth(1)).to_have_value("")
    await expect(page.get_by_label("Starts").nth(1)).to_have_value("10:00")
    await page.get_by_role("combobox", name="Day", exact=True).nth(1).select_option("Wednesday")
    await page.get_by_role("button", name="Create the course").click()
    await page.get_by_role("link", name="Choir", exact=True).wait_for()
    [created] = (await board.organizer.execute(COURSES, campaign=course.campaign_id))["nodes"]
    zone_free = [each["startTime"][:16] for each in created["meetings"]]
    assert zone_free == ["2035-07-02T08:05", "2035-07-04T08:00"]
