"""A draw in a browser: wishes by keyboard alone, and the organizer's steps up to the result."""

import asyncio
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.support.board.pages import Board, asks_for, shown
from tests.support.clients.client import hours_from_now

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONFIGURE = """mutation($input: ConfigureDrawInput!) { configureDraw(input: $input) {
  __typename } }"""
MY_WISHES = "query($id: ID!) { myWishes(campaignId: $id) { userIds ranked { slotId } } }"


async def press(page: Page, name: str) -> None:
    """Press a button by the keyboard."""
    await page.get_by_role("button", name=name, exact=True).focus()
    await page.keyboard.press("Enter")


async def test_wishes_are_ranked_by_keyboard_and_explained_after_the_draw(board: Board) -> None:
    student, admin = await board.student(), await board.admin()
    course = await board.course(capacity=1)
    times = {"startTime": hours_from_now(80), "endTime": hours_from_now(81)}
    await board.organizer.add_slot(campaignId=course.campaign_id, title="Judo", **times)
    until = {"campaignId": course.campaign_id, "wishesUntil": hours_from_now(1)}
    await board.organizer.execute(CONFIGURE, input=until)
    page = await board.visit(student, course)
    await page.goto(f"/board#/campaign/{course.campaign_id}")
    await page.get_by_role("link", name="Rank your wishes").click()
    await press(page, "Add: Chess")
    await press(page, "Add: Judo")
    await press(page, "Up: Judo")
    await expect(page.locator("ol.list li").first).to_contain_text("1. Judo")
    await expect(page.locator(":focus")).to_have_accessible_name("Down: Judo")
    await shown(page, "Your wishes are saved.").wait_for()
    await page.reload()
    await expect(page.locator("ol.list li").first).to_contain_text("1. Judo")

    organizing = await board.open(await board.context(admin), f"#/draw/{course.campaign_id}")
    await expect(organizing.get_by_role("row", name="Judo")).to_contain_text("1")
    await press(organizing, "Show")
    await organizing.get_by_role("row", name="In rounds").wait_for()
    await organizing.get_by_label("Places: Chess").fill("0")
    await press(organizing, "Show")
    await expect(organizing.get_by_role("row", name="Chess").last).to_contain_text("1")
    await press(organizing, "Close the wishes now")
    await organizing.get_by_role("group", name="Close the wishes now?").wait_for()
    await press(organizing, "Close the wishes now")
    await press(organizing, "Draw")
    await organizing.get_by_role("group", name="The server now reveals").wait_for()
    await press(organizing, "Draw")
    await press(organizing, "Publish the result")
    await organizing.get_by_role("group", name="Publish the result").wait_for()
    await press(organizing, "Publish the result")
    await shown(organizing, "All places are booked").wait_for()
    await shown(page, "You have a place, from round 1.").wait_for()
    await shown(page, "You have a place, from round 2.").wait_for()
    async with page.expect_download() as download:
        await press(page, "Save the record")
    assert (await download.value).suggested_filename.endswith("record.json")
    await page.get_by_role("link", name="See what is left").click()
    await page.get_by_role("link", name="Your wishes and their result").click()
    await shown(page, "You have a place, from round 1.").wait_for()
    await board.organizer.execute(CONFIGURE, input={**until, "reason": "Places are left."})
    await shown(page, "You have no wishes here.").wait_for()
    former = page.get_by_role("region", name="The result of the draw before")
    await expect(former.get_by_role("listitem")).to_contain_text(["from round 1", "from round 2"])
    async with page.expect_download() as download:
        await press(page, "Save the record")


async def test_a_list_that_is_slow_to_save_does_not_replace_the_next(board: Board) -> None:
    student, course = await board.student(), await board.course()
    until = {"campaignId": course.campaign_id, "wishesUntil": hours_from_now(1)}
    await board.organizer.execute(CONFIGURE, input=until)
    context = await board.context(student)
    await context.clock.install()
    page = await board.open(context, f"#/wishes/{course.campaign_id}")
    is_sent, goes_on, lists = asyncio.Event(), asyncio.Event(), list[Any]()

    async def hold_first(route: Route) -> None:
        if asks_for(route.request, "setWishes"):
            lists.append(route.request.post_data_json)
            is_sent.set()
            if len(lists) == 1:
                await goes_on.wait()
        await route.fallback()

    await page.route("**/graphql", hold_first)
    for press_next in ("Add: Chess", "Remove: Chess"):
        await press(page, press_next)
        await page.clock.run_for(1_000)
        await is_sent.wait()
    await page.evaluate("1")
    assert len(lists) == 1
    goes_on.set()
    await shown(page, "Your wishes are saved.").wait_for()
    assert len(lists) == 2
    assert await student.execute(MY_WISHES, id=course.campaign_id) is None


async def test_a_team_wishes_together_in_place_of_one_member(board: Board) -> None:
    student, mate = await board.student(), await board.student("Noa")
    course = await board.course(capacity=1)
    until = {"campaignId": course.campaign_id, "wishesUntil": hours_from_now(1)}
    await board.organizer.execute(CONFIGURE, input=until)
    await student.create_team_with(mate)
    page = await board.open(await board.context(student), f"#/wishes/{course.campaign_id}")
    await press(page, "Add: Chess")
    await shown(page, "Your wishes are saved.").wait_for()
    for choice, count in (("Roommates", 2), ("For me alone", 1)):
        async with page.expect_response(lambda each: asks_for(each.request, "setWishes")):
            await page.get_by_label("For whom").select_option(choice)
        await shown(page, "Your wishes are saved.").wait_for()
        saved = await student.execute(MY_WISHES, id=course.campaign_id)
        assert (len(saved["userIds"]), len(saved["ranked"])) == (count, 1)
