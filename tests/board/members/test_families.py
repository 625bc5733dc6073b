"""A parent books for the children with the board, at the width of a phone."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.board.test_accessibility import violations
from tests.support.board.pages import (
    Board,
    Course,
    Student,
    before_each,
)
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import times_in
from tests.support.scenarios.families import create_child, set_guardians

pytestmark = pytest.mark.asyncio(loop_scope="module")

USERS_VIEW = "people"
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}}
BOTH = "Book for both, or for none: Chess"
ROSTER = """query($id: ID!) {
  slotRoster(slotId: $id, first: 50) { nodes { status madeAs user { id } } }
}"""
ROSTER_IDS = "query($id: ID!) { slotRoster(slotId: $id, first: 50) { nodes { id } } }"
# Where the lines of the texts beside icons begin.
LEFTS = """[...document.querySelectorAll(".left p > .icon")]
  .map((icon) => {
    const range = document.createRange();
    range.setStartAfter(icon);
    range.setEndAfter(icon.parentElement.lastChild);
    return [...new Set([...range.getClientRects()].map((each) => Math.round(each.left)))];
  })"""
WAITING = "query($id: ID!) { slotWaitlist(slotId: $id) { nodes { user { id } } } }"


@dataclass
class Family:
    """Eva, whose children are Mia and Ben."""

    board: Board
    eva: Student
    ids: Mapping[str, str]

    async def course(self, name: str = "Clubs", **fields: Any) -> Course:
        """Create an open campaign for the classes of the children, with one course."""
        opens_at = datetime.now(UTC) - timedelta(hours=1)
        campaign_id = await create_campaign(
            self.board.organizer,
            name=name,
            opensAt=opens_at.isoformat(),
            forbidOverlap=True,
            eligibleGroups=[["2b", "4a"]],
        )
        slot = {"title": "Chess", "capacity": 12, "location": "Room 1", **fields}
        slot_id = await self.board.organizer.add_slot(campaignId=campaign_id, **slot)
        return Course(campaign_id, slot_id)

    async def another(
        self, course: Course, title: str, hour: int = 24, capacity: int = 12, **fields: int
    ) -> str:
        """Add a course to the campaign of this one, by default at the same time."""
        slot = {"campaignId": course.campaign_id, "capacity": capacity, **times_in(hour), **fields}
        return await self.board.organizer.add_slot(title=title, **slot)

    async def book(self, slot_id: str, *names: str) -> None:
        """Let Eva book a place for each of these."""
        claims = [{"slotId": slot_id, "userId": self.ids[name]} for name in names]
        booked = await self.eva.book_all(*claims)
        assert booked["__typename"] == "AllBooked", booked

    async def places(self, slot_id: str) -> dict[str, str]:
        """Return what the roster says of each of the family: status, and as what it was made."""
        rows = (await self.board.organizer.execute(ROSTER, id=slot_id))["nodes"]
        found = {row["user"]["id"]: f"{row['status']} {row['madeAs']}" for row in rows}
        return {name: found[id_] for name, id_ in self.ids.items() if id_ in found}

    async def waiting(self, slot_id: str) -> list[str]:
        """Return who of the family waits, in order."""
        rows = (await self.board.organizer.execute(WAITING, id=slot_id))["nodes"]
        names = {id_: name for name, id_ in self.ids.items()}
        return [names[row["user"]["id"]] for row in rows if row["user"]["id"] in names]

    async def open(self, address: str = "", **options: Any) -> Page:
        """Open the board for Eva on a phone."""
        context = await self.board.context(self.eva, **{**PHONE, **options})
        return await self.board.open(context, address)


async def create_family(board: Board, *names: str) -> Family:
    """Create Eva and her children, in the classes 2b and 4a."""
    eva = await board.student("Eva")
    await board.vouch_for(eva)
    eva_id = await eva.fetch_user_id()
    ids = {"Eva": eva_id}
    for name, group in zip(names, ("2b", "4a", "4a"), strict=False):
        child = await create_child(board.organizer, eva_id, name=name, groups=[group])
        ids[name] = child["user"]["id"]
    return Family(board, eva, ids)


@pytest_asyncio.fixture(loop_scope="module")
async def family(board: Board) -> Family:
    return await create_family(board, "Mia", "Ben")


async def fits_the_phone(page: Page) -> bool:
    """Return whether nothing is wider than the phone."""
    return bool(await page.evaluate("document.documentElement.scrollWidth") <= 360)


async def test_siblings_are_booked_in_three_taps_and_stay_so_after_a_reload(
    board: Board, family: Family
) -> None:
    name = f"Clubs {secrets.token_hex(4)}"
    course = await family.course(name)
    page = await family.open()
    await page.get_by_role("link", name=name).click()
    await page.get_by_role("button", name="Book for …: Chess").click()
    row = course.row(page)
    await expect(row.get_by_role("checkbox")).to_have_count(2)  # Eva is in no class
    await page.get_by_role("button", name=BOTH).click()
    for _ in range(2):
        await course.row(page, "yours").wait_for()
        for child in ("Mia", "Ben"):
            await expect(row).to_contain_text(f"{child}: booked")
        assert await fits_the_phone(page)
        await page.reload()
    booked = "CONFIRMED GUARDIAN"
    assert await family.places(course.slot_id) == {"Mia": booked, "Ben": booked}


async def test_with_one_place_left_no_child_is_ticked_until_the_parent_chooses(
    family: Family,
) -> None:
    course = await family.course(capacity=1)
    page = await family.open(course.address)
    await page.get_by_role("button", name="Book for …: Chess").click()
    row = course.row(page)
    await row.get_by_text("Only 1 place is free: choose one.").wait_for()
    await expect(row.get_by_role("checkbox", checked=True)).to_have_count(0)
    await expect(row.get_by_role("button", name="Book for …: Chess").last).to_be_disabled()
    for child in ("Mia", "Ben"):
        await row.get_by_label(child).check()
    await expect(page.get_by_role("button", name=BOTH)).to_be_disabled()
    assert await fits_the_phone(page)
    await row.get_by_label("Ben").uncheck()
    await page.get_by_role("button", name="Book for Mia: Chess").click()
    await expect(course.row(page)).to_contain_text("Mia: booked")
    assert await family.places(course.slot_id) == {"Mia": "CONFIRMED GUARDIAN"}


async def test_places_that_are_taken_change_an_open_choice_but_no_tick_of_the_parent(
    family: Family,
) -> None:
    course = await family.course(capacity=2)
    organizer, jonas = family.board.organizer, await family.board.student("Jonas")
    for_jonas = {"userId": await jonas.fetch_user_id()}
    page = await family.open(course.address)
    await page.get_by_role("button", name="Book for …: Chess").click()
    row, both = course.row(page), page.get_by_role("button", name=BOTH)
    await expect(both).to_be_enabled()
    booked = await organizer.book_slot(course.slot_id, **for_jonas)
    await row.get_by_text("Only 1 place is free: choose one.").wait_for()
    await expect(row.get_by_role("checkbox", checked=True)).to_have_count(0)
    await row.get_by_label("Ben").check()
    await organizer.cancel_booking(booked["booking"]["id"])
    await expect(row.get_by_text("Only 1 place is free")).to_have_count(0)
    await expect(row.get_by_role("checkbox", checked=True)).to_have_count(1)
    await row.get_by_label("Mia").check()
    await organizer.book_slot(course.slot_id, **for_jonas)
    await expect(both).to_be_disabled()
    await expect(row.get_by_role("checkbox", checked=True)).to_have_count(2)


async def test_a_place_that_is_taken_in_the_last_moment_leaves_nobody_booked_and_says_how_many(
    family: Family,
) -> None:
    course, jonas = await family.course(capacity=2), await family.board.student("Jonas")
    page = await family.open(course.address)
    organizer, for_jonas = family.board.organizer, {"userId": await jonas.fetch_user_id()}
    await before_each(page, "bookSlots", lambda: organizer.book_slot(course.slot_id, **for_jonas))
    await page.get_by_role("button", name="Book for …: Chess").click()
    await page.get_by_role("button", name=BOTH).click()
    said = "Nothing was booked. 1 place is free, you chose 2."
    await course.row(page).get_by_text(said).wait_for()
    assert await family.places(course.slot_id) == {}


async def test_the_only_child_who_can_be_booked_is_booked_at_once_and_has_a_code(
    family: Family,
) -> None:
    course = await family.course()
    await family.book(await family.another(course, "Go", capacity=1), "Ben")
    page = await family.open(course.address)
    await page.get_by_role("button", name="Book for Mia: Chess").click()
    row = course.row(page, "yours")
    await expect(row).to_contain_text("Mia: booked")
    await row.get_by_role("button", name="Code: Chess").click()
    await page.get_by_role("heading", name="Mia: booked").wait_for()
    await page.get_by_role("img", name="Code for Mia: Chess").wait_for()


async def test_a_choice_says_which_child_cannot_be_chosen_and_why(board: Board) -> None:
    family = await create_family(board, "Mia", "Ben", "Lea")
    course = await family.course()
    await family.book(await family.another(course, "Go", capacity=1), "Lea")
    page = await family.open(course.address)
    await page.get_by_role("button", name="Book for …: Chess").click()
    lea = course.row(page).get_by_label("Lea: overlaps with Go, ")
    await expect(lea).to_be_disabled()
    await page.get_by_role("button", name=BOTH).click()
    await expect(course.row(page)).to_contain_text("Mia: booked")
    assert set(await family.places(course.slot_id)) == {"Mia", "Ben"}


async def test_a_parent_who_could_come_too_sees_why_the_child_cannot(board: Board) -> None:
    name = "Maximiliane Charlotte Freifrau von und zu Münz"
    family = await create_family(board, name)
    course = await board.course()
    await family.book(await family.another(course, "Go", capacity=1), name)
    page = await family.open(course.address)
    why = f"{name}: overlaps with Go, "
    await course.row(page).get_by_text(why).wait_for()
    button = page.get_by_role("button", name="Book for me: Chess")
    await expect(button).to_have_class(re.compile("second"))
    assert [len(each) for each in await page.evaluate(LEFTS)] == [1, 1]  # also of several lines
    assert await fits_the_phone(page)
    await page.goto(f"/board#/slot/{course.slot_id}")
    await button.wait_for()
    await expect(page.get_by_text(why)).to_have_count(1)  # where it can be swapped


async def test_who_is_unticked_in_a_row_is_still_ticked_in_others(family: Family) -> None:
    course = await family.course()
    await family.another(course, "Go", 30)
    page = await family.open(course.address)
    await page.get_by_role("button", name="Book for …: Chess").click()
    await page.get_by_label("Ben").uncheck()
    await page.get_by_role("button", name="Book for …: Go").click()
    await expect(page.get_by_label("Ben")).to_be_checked()
    await page.get_by_role("button", name="Book for …: Chess").click()
    await expect(page.get_by_label("Ben")).not_to_be_checked()


async def test_both_wait_and_one_leaves_and_the_other_gives_the_place_back(family: Family) -> None:
    course = await family.course(capacity=1)
    other = await family.board.student("Jonas")
    await family.board.organizer.book_slot(course.slot_id, userId=await other.fetch_user_id())
    page = await family.open(course.address)
    await page.get_by_role("button", name="Waiting list for …: Chess").click()
    await page.get_by_role("button", name="Join the waiting list for both: Chess").click()
    row = course.row(page, "waiting")
    for child in ("Mia", "Ben"):
        await expect(row).to_contain_text(re.compile(f"{child}: (1st|2nd) on the waiting list"))
    first, second = await family.waiting(course.slot_id)
    await row.get_by_role("button", name="See the waiting list: Chess").click()
    await page.get_by_role("button", name=f"Leave the waiting list: {first}").click()
    await page.get_by_role("group", name=first).get_by_role("button", name="Leave").click()
    await page.get_by_role("heading", name=f"{second}: 1st on the waiting list").wait_for()
    assert await family.waiting(course.slot_id) == [second]
    await expect(page.get_by_role("button", name=re.compile("^Join"))).to_have_count(1)
    roster = await family.board.organizer.execute(ROSTER_IDS, id=course.slot_id)
    await family.board.organizer.cancel_booking(roster["nodes"][0]["id"])
    await page.get_by_role("heading", name=f"{second}: booked").wait_for()
    await page.get_by_text(f"{second}: moved up, and has a place: Chess").first.wait_for()
    await page.get_by_role("button", name=f"Give back: {second}: Chess").click()
    await page.get_by_role("button", name="Give back", exact=True).click()
    await (
        page.get_by_role("button", name="Book for …: Chess")
        .or_(page.get_by_role("button", name=BOTH))
        .first.wait_for()
    )
    assert await family.places(course.slot_id) == {}


async def test_the_week_has_all_places_with_names_and_those_of_one_child(family: Family) -> None:
    course = await family.course()
    await family.book(course.slot_id, "Mia")
    await family.book(await family.another(course, "Go", 30, capacity=1), "Ben")
    page = await family.open(f"#/slot/{course.slot_id}")
    await page.get_by_role("heading", name="Mia: booked").wait_for()
    await page.goto("/board#/week")
    await page.get_by_role("heading", name="Next: Mia: Chess").wait_for()
    await page.get_by_role("link", name="Ben: Go").wait_for()
    await page.get_by_role("button", name="All codes").click()
    await page.get_by_role("img", name="Code for Ben: Go").wait_for()
    assert await fits_the_phone(page)
    assert await violations(page) == []
    await page.get_by_role("radio", name="Ben").check()
    await page.get_by_role("heading", name="Next: Ben: Go").wait_for()
    await expect(page.get_by_text("Mia: Chess")).to_have_count(0)
    await page.goto("/board#/account")
    await expect(page.locator("section[data-key=children] li")).to_have_text(
        ["Ben · 4a", "Mia · 2b"]
    )


async def test_the_week_of_a_former_guardian_has_nothing_of_the_child_and_all_of_the_others(
    family: Family,
) -> None:
    course = await family.course()
    await family.book(course.slot_id, "Mia")
    await family.book(await family.another(course, "Go", 30, capacity=1), "Ben")
    page = await family.open("#/week")
    await page.get_by_role("heading", name="Next: Mia: Chess").wait_for()
    await set_guardians(family.board.organizer, family.ids["Mia"], [])
    await page.reload()
    await page.get_by_role("heading", name="Next: Ben: Go").wait_for()
    await expect(page.get_by_text("Mia")).to_have_count(0)
    # What the page shows without a network has no code of the child either.
    assert "Mia" not in str(await page.evaluate("JSON.stringify(localStorage)"))


async def test_a_member_without_children_loads_and_reads_nothing_of_families(board: Board) -> None:
    student, course = await board.student(), await board.course()
    page = await board.visit(student, course, **PHONE)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url + (request.post_data or "")))
    await page.reload()
    await course.button(page).click()
    await course.row(page, "yours").wait_for()
    assert not [each for each in sent if "family.js" in each or "OfFamily" in each]


async def test_an_organizer_gives_a_child_a_parent_and_ends_that(
    board: Board, family: Family
) -> None:
    mia, keller = family.ids["Mia"], await board.colleague("Ms Keller")
    name = f"Ada {secrets.token_hex(4)}"
    ada = await board.student(name)
    await board.vouch_for(ada)
    page = await board.open(await board.context(keller, **PHONE), f"#/{USERS_VIEW}/{mia}")
    await page.get_by_text("This person does not sign in").wait_for()
    await page.get_by_role("button", name="Add a parent").click()
    await expect(page.get_by_label("Name or email address")).to_be_focused()
    await page.keyboard.type(name)
    await page.get_by_role("button", name=f"Make a parent: {name}").click()
    parents = page.get_by_role("region", name="Parents or guardians")
    await parents.get_by_role("link", name=name).wait_for()
    await expect(page.get_by_role("button", name="Add a parent")).to_have_count(0)  # two at most
    assert await fits_the_phone(page)
    assert await violations(page) == []
    await parents.get_by_role("link", name=name).click()
    children = page.get_by_role("region", name="Children")
    await children.get_by_role("link", name="Mia").wait_for()
    await page.get_by_role("button", name="New child").click()
    form = page.get_by_role("form", name="New child")
    for child in ("MIA", "Leo"):
        await form.get_by_label("Name", exact=True).fill(child)
        await page.get_by_role("button", name="Add the child").click()
        if child == "MIA":
            await form.get_by_text("These parents have a child Mia already.").wait_for()
    await children.get_by_role("link", name="Leo").wait_for()
    await page.get_by_role("button", name="Remove Mia").click()
    await page.get_by_role("button", name="Remove Mia").last.click()
    await expect(children.get_by_role("link", name="Mia")).to_have_count(0)
    dependents = (await ada.execute("{ me { dependents { name } } }"))["dependents"]
    assert [each["name"] for each in dependents] == ["Leo"]
