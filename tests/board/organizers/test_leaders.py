"""Teachers with a member's account see the lists of their courses, in a real browser."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import ViewportSize, expect
from pypdf import PdfReader

from slotlock.devserver.embedded import EmbeddedServers
from tests.board.test_accessibility import violations
from tests.board.test_organizers import CODE, scan
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.board.pages import Board, shown
from tests.support.board.sources import LANGUAGES
from tests.support.clients.campaigns import set_groups, update_campaign
from tests.support.clients.client import times_in
from tests.support.scenarios.led_course import CREATE_LED, SET_LEADER

pytestmark = pytest.mark.asyncio(loop_scope="module")

WINDOW: ViewportSize = {"width": 360, "height": 800}
ATTENDANCE = "query($id: ID!) { slotRoster(slotId: $id) { nodes { attendance } } }"
MADE_AS = "query($id: ID!) { slotRoster(slotId: $id) { nodes { madeAs user { name } } } }"
# How many lines the text of each element has, which comes last in it.
LINES = """all => all.map((each) => {
  const range = document.createRange();
  range.selectNode(each.lastChild);
  return range.getClientRects().length;
})"""
MAILS = "{ outbox(first: 50) { nodes { kind user { name } slot { id } } } }"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[AppProcess]:
    """Run an app that keeps its mails, on a database of its own."""
    settings = {
        **app_environment(servers, "leaders"),
        "SLOTLOCK_SMTP_URL": "smtp+insecure://127.0.0.1:9",
        "SLOTLOCK_MAIL_FROM": "noreply@school.test",
    }
    with forked_app(settings, tmp_path_factory.mktemp("leaders")) as running:
        yield running


async def test_a_secretary_gives_a_teacher_a_list_and_ends_that_later(board: Board) -> None:
    ada = await board.student("Ada Frank")
    await board.vouch_for(ada)
    await board.organizer.execute(CREATE_LED, name="Ms Frank", leader=None)
    await board.organizer.execute(CREATE_LED, name="Hall", leader=None, kind="ROOM")
    keller = await board.colleague("Ms Keller")
    page = await board.open(await board.context(keller, viewport=WINDOW), "#/organizer/rooms")
    await page.get_by_role("button", name="Led by").click()  # only members of the staff have it
    await expect(page.get_by_label("Name or email address")).to_be_focused()
    await page.keyboard.type("Ada")
    await page.get_by_role("button", name="Choose: Ada Frank").click()
    await shown(page, "Person · led by Ada Frank").wait_for()
    assert (await ada.execute("{ me { leadsSlots } }"))["leadsSlots"] is True
    await page.get_by_role("button", name="Led by").click()
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= WINDOW["width"]
    await page.get_by_role("button", name="Nobody leads").click()
    await expect(page.locator("main li").filter(has_text="Ms Frank")).not_to_contain_text("led by")
    assert (await ada.execute("{ me { leadsSlots } }"))["leadsSlots"] is False


async def test_a_teacher_books_who_forgot_of_the_classes_that_the_secretary_allows(
    board: Board,
) -> None:
    ada = await board.teacher("Ada Graf", "Ms Graf")
    mia, bo, tom = [await board.student(name) for name in ("Mia", "Bo", "Tom")]
    for pupil, group in ((mia, "5a"), (tom, "5b"), (bo, "6a")):
        await board.vouch_for(pupil)
        await set_groups(board.organizer, pupil, group)
    course = await board.course(title="Robots", resource="Ms Graf")
    await tom.book_slot(await board.organizer.add_slot(campaignId=course.campaign_id))
    page = await board.open(await board.context(ada, viewport=WINDOW), "#/led")
    await page.get_by_role("button", name="List: Robots").click()
    await shown(page, "Nobody has a place yet.").wait_for()
    add = page.get_by_role("button", name="Book for somebody")
    await expect(add).to_have_count(0)  # as nobody allows it
    keller = await board.colleague("Ms Keller")
    address = f"#/plan/{course.campaign_id}/settings"
    settings = await board.open(await board.context(keller), address)
    await settings.get_by_text("More settings").click()
    await settings.get_by_label("Groups that teachers can book").fill("5*")
    await settings.get_by_role("button", name="Save").click()
    await settings.get_by_role("link", name="Settings").wait_for()
    await page.reload()
    await page.get_by_role("button", name="List: Robots").click()
    await add.click()
    await shown(page, "Only for 5…").wait_for()
    search = page.get_by_label("Name", exact=True)
    await search.fill("Bo")
    await shown(page, "Nobody found.").wait_for()
    await search.fill("Tom")
    await page.get_by_role("button", name="Book: Tom").click()
    await shown(page, "This course overlaps with another booking of this person.").wait_for()
    await search.fill("Mia")
    await expect(page.get_by_role("button", name="Reserve")).to_have_count(0)
    await page.get_by_role("button", name="Book: Mia").click()
    roster = page.get_by_role("region", name="Who has a place 1")
    await roster.get_by_text("Mia").first.wait_for()
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= WINDOW["width"]
    places = await board.organizer.execute(MADE_AS, id=course.slot_id)
    assert places["nodes"] == [{"madeAs": "LEADER", "user": {"name": "Mia"}}]
    await expect(page.get_by_role("button", name="Move")).to_have_count(0)
    await roster.get_by_role("button", name="Take away: Mia").click()
    await roster.get_by_role("button", name="Take it away").click()
    await page.get_by_role("button", name="Undo: Mia").wait_for()
    assert (await board.organizer.execute(MADE_AS, id=course.slot_id))["nodes"] == []
    await update_campaign(board.organizer, course.campaign_id, admission="QUEUE_ONLY")
    await page.get_by_role("button", name="Book: Mia").click()
    await page.get_by_role("region", name="Who has a place 1").get_by_text("Mia").first.wait_for()
    places = await board.organizer.execute(MADE_AS, id=course.slot_id)
    assert places["nodes"] == [{"madeAs": "LEADER", "user": {"name": "Mia"}}]


async def test_each_tab_of_a_leader_is_one_line_in_each_language(board: Board) -> None:
    ada = await board.teacher("Ada Lind", "Ms Lind")
    page = await board.open(await board.context(ada, viewport=WINDOW), "#/led")
    for language in LANGUAGES:
        await page.evaluate("each => localStorage.setItem('slotlock.language', each)", language)
        await page.reload()
        name = LANGUAGES[language]["tab.led"]
        await page.get_by_role("link", name=str(name), exact=True).wait_for()
        assert await page.locator(".tabs a").evaluate_all(LINES) == [1] * 4, language


async def test_a_teacher_takes_attendance_writes_to_a_course_and_opens_its_sheet(
    board: Board,
) -> None:
    mia, ada, bo = [await board.student(name) for name in ("Mia", "Ada Berg", "Bo")]
    await board.vouch_for(ada)
    leader = await ada.fetch_user_id()
    resource = await board.organizer.execute(CREATE_LED, name="Ms Berg", leader=leader)

    async def add(title: str, hours: int, **fields: Any) -> str:
        fields |= times_in(hours)
        course = await board.course(title=title, resource="Ms Berg", allowPast=True, **fields)
        return course.slot_id

    for title, hours in (("Earlier", -72), ("Later", 72)):
        await add(title, hours)
    slot_id = await add("Robots", 1, capacity=1, waitlistCapacity=2)
    other_course = await board.course(title="Of others")
    await bo.book_slot(other_course.slot_id)
    await mia.book_slot(slot_id)
    await bo.join(slot_id)

    context = await board.context(ada, viewport=WINDOW)
    page = await board.open(context)
    await page.get_by_role("link", name="My courses").click()
    cards = page.locator("main li:has(h3)")
    await expect(cards.locator("h3")).to_have_text(["Robots", "Later", "Earlier"])
    card = cards.first
    await expect(card).to_contain_text("1 of 1 place taken · 1 waiting")
    # The list has names, and leads to nothing that only organizers may open.
    await card.get_by_role("button", name="List: Robots").press("Enter")
    await expect(card.locator("section li")).to_have_count(2)
    await expect(card.locator("section li").first).to_contain_text("Mia")
    await expect(card.locator("section").first).not_to_contain_text("@")
    await expect(card.locator("section :is(a, button)")).to_have_count(0)
    # A mail goes to those with a place; what is typed for one course is not that of another.
    await card.get_by_role("button", name="Write").click()
    await expect(card.locator("[name=includeWaiting]")).to_have_count(0)
    await shown(page, "1 person gets this mail.").wait_for()
    await page.fill("[name=subject]", "Shoes")
    await page.fill("[name=text]", "for the hall")
    other = cards.nth(1)
    await other.get_by_role("button", name="Write").click()
    await expect(other.locator("[name=subject]")).to_have_value("")
    await other.get_by_role("button", name="Close").click()
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= WINDOW["width"]
    await card.get_by_role("button", name="Send…").click()
    await card.get_by_role("button", name="Yes, send it").click()
    await shown(page, "The mail goes to 1 person.").wait_for()
    mails = (await board.organizer.execute(MAILS))["nodes"]
    sent = [each for each in mails if each["kind"] == "announcement"]
    assert sent == [{"kind": "announcement", "user": {"name": "Mia"}, "slot": {"id": slot_id}}]
    # The sheet has names and no address.
    async with page.expect_download() as saved:
        await card.get_by_role("button", name="Sign-in sheets").click()
    text = "".join(
        each.extract_text() for each in PdfReader(await (await saved.value).path()).pages
    )
    assert "Mia" in text
    assert "@" not in text
    # The door is the first that a finger or the keyboard meets in a card.
    await card.locator("a, button").first.click()
    await page.get_by_role("button", name="Let in: Mia").click()
    await page.locator(".verdict.yours").wait_for()
    # The code of another's course has a place, of which a leader reads nothing.
    found = await board.organizer.execute(CODE, id=other_course.slot_id)
    await scan(page, found["nodes"][0]["checkInCode"], "stop")
    await expect(page.locator(".verdict")).to_contain_text("Nobody whom you can check in here")
    roster = await board.organizer.execute(ATTENDANCE, id=slot_id)
    assert roster["nodes"] == [{"attendance": "CHECKED_IN"}]
    await page.locator("nav a").click()
    await expect(cards).to_have_count(3)
    # Who leads no longer sees nothing more, also not what the tab keeps.
    await page.go_back()
    await shown(page, "Mia").first.wait_for()
    await board.organizer.execute(SET_LEADER, id=resource["id"], leader=None)
    await page.reload()
    await page.locator("main .notice").wait_for()
    await expect(page.get_by_text("Mia")).to_have_count(0)
    await page.locator("nav a").click()
    await shown(page, "You lead no course.").wait_for()
    # What is for organizers stays closed.
    await page.goto("/board#/organizer")
    await page.get_by_role("heading", name="Organize").wait_for()

    page = await board.open(await board.context(bo), "#/week")
    await expect(page.get_by_role("link", name="My courses")).to_have_count(0)
    await page.goto("/board#/led")
    await shown(page, "You lead no course.").wait_for()
    await page.goto(f"/board#/door/{slot_id}")
    await page.locator("main .notice").wait_for()
    await expect(page.get_by_text("Mia")).to_have_count(0)
