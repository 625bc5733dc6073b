"""A parent ranks wishes for each child, or for both together, and reads what became of them."""

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.board.members.test_families import PHONE, Family, create_family, fits_the_phone
from tests.board.test_wishes import CONFIGURE, close, publish
from tests.support.board.pages import GUARDED, Board, Course, before_each, change_script, shown
from tests.support.clients.campaigns import SET_WISHES, update_campaign
from tests.support.clients.client import hours_from_now, times_in
from tests.support.scenarios.families import set_guardians

pytestmark = pytest.mark.asyncio(loop_scope="module")

WISHES = """query($id: ID!, $user: ID) { myWishes(campaignId: $id, userId: $user) {
  userIds ranked { slot { title } } } }"""
TOGETHER = "Together: both or none"


async def drawn(family: Family, hours: float = 49, **slot: Any) -> Course:
    """Open a draw with Chess, and Judo at another time, of which each user gets one."""
    course = await family.course(**times_in(80), **slot)
    await family.another(course, "Judo", 90, capacity=1)
    until = {"campaignId": course.campaign_id, "wishesUntil": hours_from_now(hours)}
    await family.board.organizer.execute(CONFIGURE, input=until)
    return course


async def wishes_of(family: Family, course: Course, name: str) -> tuple[list[str], set[str]] | None:
    """Return the titles that a child wishes for, and with whom."""
    found = await family.eva.execute(WISHES, id=course.campaign_id, user=family.ids[name])
    if found is None:
        return None
    names = {id_: name for name, id_ in family.ids.items()}
    titles = [each["slot"]["title"] for each in found["ranked"]]
    return titles, {names[each] for each in found["userIds"]}


def choice(page: Page, name: str) -> Locator:
    """Return the link to the wishes of a child, or of both."""
    return page.get_by_role("navigation", name="For whom").get_by_role("link", name=name)


async def show_wishes(page: Page, name: str, heading: str) -> None:
    """Go to the wishes of a child, or of both."""
    await choice(page, name).click()
    await page.get_by_role("heading", name=heading).wait_for()


async def add(page: Page, title: str, name: str) -> None:
    """Add a wish, and wait until the server has it."""
    await page.get_by_role("button", name=f"Add: {title}").click()
    await page.locator("[data-key=state]").get_by_text(f"for {name} are saved").wait_for()


async def test_each_child_has_a_list_and_the_result_names_the_child(board: Board) -> None:
    family = await create_family(board, "Mia", "Ben")
    course = await drawn(family, hours=20, capacity=1)
    page = await family.open(f"#/wishes/{course.campaign_id}")
    left = page.get_by_text(re.compile("Wishes until .* left"))
    await expect(left).not_to_have_text(await left.inner_text())  # it counts down
    await page.get_by_role("heading", name="Wishes for Ben").wait_for()
    await expect(choice(page, "Me")).to_have_count(0)  # Eva is in no class
    await add(page, "Judo", "Ben")
    await show_wishes(page, "Mia", "Wishes for Mia")
    await add(page, "Chess", "Mia")
    assert await fits_the_phone(page)
    await show_wishes(page, "Ben", "Wishes for Ben")
    await expect(page.locator("ol.list li")).to_contain_text(["1. Judo"])
    assert await wishes_of(family, course, "Mia") == (["Chess"], {"Mia"})
    assert await wishes_of(family, course, "Ben") == (["Judo"], {"Ben"})
    await close(board, course)
    await page.reload()
    await page.get_by_role("heading", name="How the list for Ben counts").wait_for()
    await publish(board, course)
    await page.reload()
    await page.get_by_text("A place for Ben.").wait_for()
    await expect(choice(page, TOGETHER)).to_have_count(0)
    await show_wishes(page, "Mia", "Result for Mia")
    await page.get_by_text("A place for Mia.").wait_for()
    assert await fits_the_phone(page)
    assert "You" not in await page.get_by_role("region", name="Result for Mia").inner_text()


async def test_both_get_a_list_together_and_one_of_them_leaves_it(board: Board) -> None:
    family = await create_family(board, "Mia", "Ben")
    course = await drawn(family)
    page = await family.open(f"#/wishes/{course.campaign_id}")
    await add(page, "Judo", "Ben")
    await show_wishes(page, TOGETHER, "Wishes for Ben and Mia")
    await page.get_by_text("replaces the lists that each of them has alone").wait_for()
    assert await wishes_of(family, course, "Mia") is None  # looking changes nothing
    await page.get_by_role("button", name="Use this list for Ben and Mia").click()
    await page.get_by_text("Ben and Mia get places together, or none").wait_for()
    assert await wishes_of(family, course, "Mia") == (["Judo"], {"Mia", "Ben"})
    await page.goto(f"/board#/campaign/{course.campaign_id}")
    await page.get_by_role("link", name="Rank your wishes").click()
    await expect(choice(page, TOGETHER)).to_have_attribute("aria-current", "page")
    await show_wishes(page, "Mia", "Wishes for Mia")
    await page.get_by_text("So far this list is for Ben and Mia together").wait_for()
    await add(page, "Chess", "Mia")
    assert await wishes_of(family, course, "Mia") == (["Judo", "Chess"], {"Mia"})
    assert await wishes_of(family, course, "Ben") == (["Judo"], {"Ben"})


@pytest.mark.parametrize("is_guarded", GUARDED)
async def test_a_list_that_the_other_parent_changed_is_shown_and_not_replaced(
    board: Board, is_guarded: bool
) -> None:
    family, tim = await create_family(board, "Mia", "Ben"), await board.student("Tim")
    await board.vouch_for(tim)
    parents = [family.ids["Eva"], await tim.fetch_user_id()]
    for child in ("Mia", "Ben"):
        await set_guardians(board.organizer, family.ids[child], parents)
    course = await drawn(family)
    context = await board.context(tim, **PHONE)
    if not is_guarded:
        await change_script(context, ("users, changedAt }", "users }"))
    first = await family.open(f"#/wishes/{course.campaign_id}")
    second = await board.open(context, f"#/wishes/{course.campaign_id}")
    await second.get_by_role("button", name="Add: Chess").wait_for()
    await add(first, "Judo", "Ben")
    await second.get_by_role("button", name="Add: Chess").click()
    if not is_guarded:
        await shown(second, "for Ben are saved").wait_for()
        assert await wishes_of(family, course, "Ben") == (["Chess"], {"Ben"})
        return
    await second.get_by_text("This list has changed meanwhile").wait_for()
    unsaved = second.get_by_text("This list was not saved: Chess.")
    await unsaved.wait_for()
    await expect(second.locator("ol.list li")).to_contain_text(["1. Judo"])
    assert await fits_the_phone(second)
    await add(second, "Chess", "Ben")
    await expect(unsaved).to_have_count(0)
    assert await wishes_of(family, course, "Ben") == (["Judo", "Chess"], {"Ben"})
    # A joint list of one parent is news to the page of the other one, which ends it knowingly.
    await show_wishes(second, TOGETHER, "Wishes for Ben and Mia")
    await second.get_by_role("button", name="Use this list for Ben and Mia").click()
    await second.get_by_text("Ben and Mia get places together, or none").wait_for()
    await first.get_by_role("button", name="Remove: Judo").click()
    await first.get_by_text("So far this list is for Ben and Mia together").wait_for()
    joint = (["Judo", "Chess"], {"Mia", "Ben"})
    assert await wishes_of(family, course, "Ben") == joint
    await first.get_by_role("button", name="Remove: Judo").click()
    await shown(first, "for Ben are saved").wait_for()
    assert await wishes_of(family, course, "Ben") == (["Chess"], {"Ben"})
    # So is its end.
    await second.get_by_role("button", name="Remove: Chess").click()
    await second.get_by_text("replaces the lists that each of them has alone").wait_for()
    assert await wishes_of(family, course, "Mia") == (["Judo", "Chess"], {"Mia"})


async def test_a_child_with_an_own_sign_in_leaves_the_list_to_the_others(board: Board) -> None:
    made, noa = await create_family(board, "Mia"), await board.student("Noa")
    family = replace(made, ids={**made.ids, "Noa": await noa.fetch_user_id()})
    await board.vouch_for(noa)
    await set_guardians(board.organizer, family.ids["Noa"], [family.ids["Eva"]])
    course = await drawn(family)
    both = [family.ids[each] for each in ("Mia", "Noa")]
    saved = {"id": course.campaign_id, "slots": [course.slot_id], "users": both}
    assert (await family.eva.execute(SET_WISHES, **saved))["__typename"] == "WishesSaved"
    context = await board.context(noa, **PHONE)
    page = await board.open(context, f"#/wishes/{course.campaign_id}")
    joint = page.get_by_text("this list is for you and others of your family together")
    await joint.wait_for()
    assert await fits_the_phone(page)
    await page.get_by_role("button", name="Add: Judo").click()
    await shown(page, "Your wishes are saved.").wait_for()
    await expect(joint).to_have_count(0)
    assert await wishes_of(family, course, "Noa") == (["Chess", "Judo"], {"Noa"})
    assert await wishes_of(family, course, "Mia") == (["Chess"], {"Mia"})


@pytest.mark.parametrize("is_awaited", GUARDED)
async def test_a_list_that_is_still_being_saved_is_the_one_that_the_next_view_shows(
    board: Board, is_awaited: bool
) -> None:
    family = await create_family(board, "Mia", "Ben")
    course = await drawn(family)
    context = await board.context(family.eva, **PHONE)
    if not is_awaited:
        await change_script(context, ("    await sending;\n", ""))
    page = await board.open(context, f"#/wishes/{course.campaign_id}")
    held, released = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        held.set()
        await released.wait()

    await before_each(page, "setWishes", hold)
    await page.get_by_role("button", name="Add: Judo").click()
    await choice(page, TOGETHER).click()
    await held.wait()
    both = page.get_by_role("heading", name="Wishes for Ben and Mia")
    if not is_awaited:
        await both.wait_for()
    released.set()
    await both.wait_for()
    await expect(page.locator("ol.list li")).to_have_count(1 if is_awaited else 0)


async def test_a_list_has_only_the_courses_of_the_class_of_each_child(board: Board) -> None:
    family = await create_family(board, "Mia", "Ben")
    course = await drawn(family, onlyForGroups=["2b"])
    page = await family.open(f"#/wishes/{course.campaign_id}")
    await page.get_by_role("button", name="Add: Judo").wait_for()
    await expect(page.get_by_role("button", name="Add: Chess")).to_have_count(0)
    await show_wishes(page, "Mia", "Wishes for Mia")
    await page.get_by_role("button", name="Add: Chess").wait_for()


async def test_only_a_child_whom_the_draw_is_for_is_shown(board: Board) -> None:
    family = await create_family(board, "Mia", "Ben")
    course = await drawn(family)
    await update_campaign(board.organizer, course.campaign_id, eligibleGroups=[["2b"]])
    await family.eva.execute(
        SET_WISHES, id=course.campaign_id, slots=[course.slot_id], users=[family.ids["Mia"]]
    )
    page = await family.open(f"#/wishes/{course.campaign_id}")
    await page.get_by_role("heading", name="Wishes for Mia").wait_for()
    await expect(page.locator("ol.list li")).to_contain_text(["1. Chess"])
    await expect(choice(page, "Ben")).to_have_count(0)
