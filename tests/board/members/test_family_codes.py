"""The codes of children in the browser of a parent: there without a network, and no longer."""

import json

import pytest
from playwright.async_api import Page, expect

from tests.board.members.test_families import PHONE, Family, create_family, fits_the_phone
from tests.board.test_accessibility import violations
from tests.board.test_member_views import IS_STORED
from tests.support.board.pages import Board, Course, serve_sources, shown
from tests.support.polling import eventually
from tests.support.scenarios.families import set_guardians

pytestmark = pytest.mark.asyncio(loop_scope="module")

STORED = "JSON.stringify(localStorage)"
# An access token is used for 14 minutes: later, no network confirms the session.
FORGET_TOKEN = """const session = JSON.parse(localStorage.getItem("slotlock.session"));
  localStorage.setItem("slotlock.session", JSON.stringify({ ...session, newAt: 0 }));"""
# What the browser itself caches may be gone at the door.
HAS_FAMILY = """async () => {
  const [name] = await caches.keys();
  const files = await (await caches.open(name)).keys();
  return files.some(({ url }) => url.endsWith("/family.js"));
}"""
STORED_WEEK = "localStorage.getItem('slotlock.week')"
STORE_WEEK = """async (week) => {
  const { keepWeek } = await import("/board/sources/offline.js");
  keepWeek(week, []);
}"""


async def booked_courses(family: Family) -> tuple[Course, str]:
    """Book Chess for both children, and Go for Ben and Eva; return Chess and the id of Go."""
    course = await family.board.course()
    go = await family.another(course, "Go", 30)
    await family.book(course.slot_id, "Mia", "Ben")
    await family.book(go, "Ben", "Eva")
    return course, go


async def read_week(page: Page) -> None:
    """Wait until the week has been read, with all of its codes."""
    await page.get_by_role("button", name="All codes").click()
    await page.get_by_role("img", name="Code for Go", exact=True).wait_for()


async def test_the_week_of_one_child_and_all_codes_are_there_without_a_network(
    board: Board,
) -> None:
    family = await create_family(board, "Mia", "Ben")
    course, go = await booked_courses(family)
    context = await board.context(family.eva, **PHONE)
    page = await board.open(context, "#/week")
    await read_week(page)
    # By their start; that of Ben for Chess comes next.
    await expect(page.locator(".codes strong")).to_have_text(["Mia: Chess", "Go", "Ben: Go"])
    await eventually(lambda: page.evaluate(IS_STORED), "the page is stored")
    assert await page.evaluate(HAS_FAMILY)
    await page.close()
    await context.set_offline(True)
    page = await context.new_page()  # knows nothing but what the browser stores
    await page.add_init_script(FORGET_TOKEN)
    await page.goto("/board#/week")
    await shown(page, "No connection since").wait_for()
    whom = page.get_by_role("group", name="For whom")
    await expect(whom.get_by_role("radio")).to_have_count(4)
    week = page.locator(".week")
    for name, titles in (
        ("Mia", ["Mia: Chess"]),
        ("Ben", ["Ben: Chess", "Ben: Go"]),
        ("Me", ["Go"]),
        ("All", ["Ben, Mia: Chess", "Me, Ben: Go"]),
    ):
        await whom.get_by_role("radio", name=name, exact=True).check()
        await expect(week.get_by_role("link")).to_have_count(len(titles))
        assert sorted(await week.get_by_role("link").all_text_contents()) == sorted(titles)
    assert await fits_the_phone(page)
    for slot_id, names in ((course.slot_id, ("Mia: Chess", "Ben: Chess")), (go, ("Ben: Go", "Go"))):
        await page.goto(f"/board#/slot/{slot_id}")
        for name in names:
            await page.get_by_role("img", name=f"Code for {name}", exact=True).wait_for()
        await expect(page.get_by_role("img", name="Code for")).to_have_count(len(names))
        await expect(page.get_by_role("button", name="Book")).to_have_count(0)
    assert await fits_the_phone(page)
    assert await violations(page) == []


@pytest.mark.parametrize("others", [("Ben",), ()], ids=["another child", "no other child"])
async def test_codes_of_a_former_child_leave_the_browser_once_a_page_knows(
    board: Board, others: tuple[str, ...]
) -> None:
    family = await create_family(board, "Mia", "Ben")
    await booked_courses(family)
    if not others:
        await set_guardians(board.organizer, family.ids["Ben"], [])
    context = await board.context(family.eva, **PHONE)
    page = await board.open(context, "#/week")
    await read_week(page)
    assert "Mia: Chess" in await page.evaluate(STORED)
    await page.close()
    await set_guardians(board.organizer, family.ids["Mia"], [])
    page = await board.open(context)  # shows no week

    async def has_none() -> bool:
        return "Mia" not in await page.evaluate(STORED)

    await eventually(has_none, "nothing of Mia is stored")
    stored = json.loads(await page.evaluate(STORED_WEEK))
    titles = ["Go", *(f"{name}: {title}" for name in others for title in ("Chess", "Go"))]
    has_code = {each["slot"]["title"]: "<svg" in each["checkInQr"] for each in stored["bookings"]}
    assert has_code == dict.fromkeys(titles, True)


async def test_a_week_that_is_read_while_somebody_else_signs_in_is_not_stored(board: Board) -> None:
    student = await board.student()
    page = await board.open(await board.context(student), "#/week")
    await serve_sources(page)
    own = {"user": await student.fetch_user_id(), "bookings": [], "entries": []}
    for week in (own, {**own, "user": "user_0"}):
        await page.evaluate(STORE_WEEK, week)
        stored = json.loads(await page.evaluate(STORED_WEEK))
        assert stored["user"] == own["user"]
