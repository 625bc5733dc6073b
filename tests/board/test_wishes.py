"""A draw in a browser: wishes by keyboard alone, and the organizer's steps up to the result."""

import asyncio
import json
import re
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Locator, Page, Route, expect

from tests.support.board.pages import Board, Course, asks_for, shown
from tests.support.clients.campaigns import (
    CLOSE,
    PUBLISH,
    PUBLISH_CAMPAIGN,
    RUN,
    SET_WISHES,
    UNPUBLISH_CAMPAIGN,
    UPDATE_CAMPAIGN,
    create_campaign,
    until_draw,
)
from tests.support.clients.client import hours_from_now, times_in
from tests.support.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

USERS_VIEW = "people"

CONFIGURE = """mutation($input: ConfigureDrawInput!) { configureDraw(input: $input) {
  __typename } }"""
OWN_WISHES = "query($id: ID!) { myWishes(campaignId: $id) { userIds ranked { slotId } } }"


async def press(page: Page, name: str) -> None:
    """Press a button by the keyboard."""
    await page.get_by_role("button", name=name, exact=True).focus()
    await page.keyboard.press("Enter")


async def note_reads(context: BrowserContext, operation: str) -> None:
    """Let pages note when they ask for an operation, by their clock, which is installed."""
    await context.add_init_script(f"""const send = fetch; globalThis.reads = [];
      globalThis.handled = 0;
      fetch = async (url, options) => {{
        const isNoted = options?.body?.includes('"board/{operation}/');
        if (isNoted) reads.push(performance.now());
        const response = await send(url, options);
        if (isNoted) response.clone().text().then(() => handled += 1);
        return response;
      }};""")


async def ms_to_next_read(page: Page) -> float:
    """Let time pass until the page asks again, and return how long that was, and some more."""
    count = await page.evaluate("reads.length")
    while await page.evaluate("reads.length") == count:
        await page.clock.run_for(500)
    await until_handled(page)
    return float(await page.evaluate("reads.at(-1) - reads.at(-2)"))


async def until_handled(page: Page) -> None:
    """Wait until the page has the answers to all that it asked, and goes on by its clock."""

    async def is_handled() -> bool:
        return bool(await page.evaluate("handled === reads.length"))

    await eventually(is_handled, "all answers are there")
    await page.evaluate("1")


async def drawn_course(board: Board, **settings: Any) -> Course:
    """Open a draw of a campaign with Chess, of one place, and Judo of three, one for each user."""
    campaign_id = await create_campaign(
        board.organizer, opensAt=hours_from_now(30), closesAt=hours_from_now(999), maxBookings=1
    )
    slot = {"campaignId": campaign_id, **times_in(80)}
    slot_id = await board.organizer.add_slot(**slot, title="Chess", capacity=1)
    await board.organizer.add_slot(**slot, title="Judo", capacity=3)
    until = {"campaignId": campaign_id, "wishesUntil": hours_from_now(49), **settings}
    await board.organizer.execute(CONFIGURE, input=until)
    return Course(campaign_id, slot_id)


def entry_of(page: Page, course: Course) -> Locator:
    """Return the entry of the campaign on the first page."""
    return page.get_by_role("listitem").filter(has=page.locator(f'[href="{course.address}"]'))


async def close(board: Board, course: Course) -> None:
    """Close the wishes, and wait until they are fixed."""
    await board.organizer.execute(CLOSE, id=course.campaign_id)
    await until_draw(board.organizer, course.campaign_id, "root")


async def publish(board: Board, course: Course) -> None:
    """Draw, publish, and wait until the places are booked."""
    await board.organizer.execute(RUN, id=course.campaign_id)
    await board.organizer.execute(PUBLISH, id=course.campaign_id)
    await until_draw(board.organizer, course.campaign_id, "isWritten")


async def test_each_state_of_a_draw_is_the_only_one_that_members_see(board: Board) -> None:
    student = await board.student()
    course = await drawn_course(
        board, leftoversOpenAt=hours_from_now(72), recordFor="EVERYBODY", seedAt=hours_from_now(50),
        seedSource="Lottery numbers, ascending",
    )  # fmt: skip
    campaign, wishes = f"#/campaign/{course.campaign_id}", f"#/wishes/{course.campaign_id}"
    slot = f"#/slot/{course.slot_id}"
    page = await board.open(await board.context(student, viewport={"width": 360, "height": 640}))

    async def show(address: str) -> str:
        await page.goto(f"/board{address}")
        await page.reload()
        await page.wait_for_selector("main h1")
        await page.wait_for_selector("main:not(:has(.bones))")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        return await page.locator("main").inner_text()

    await show(campaign)
    await shown(page, "2 days left").wait_for()
    await expect(page.get_by_role("link", name="Rank your wishes")).to_have_class("btn")
    await expect(course.row(page)).to_contain_text("1 place, drawn by lot")
    assert "pens" not in await page.locator("main").inner_text()
    await show("#/")
    entry = entry_of(page, course)
    await expect(entry).to_contain_text("2 days left")
    await expect(entry.get_by_role("link", name="Rank your wishes")).to_have_attribute(
        "href", wishes
    )
    await show(slot)
    await page.get_by_role("link", name="Rank your wishes").wait_for()
    assert "1 of 1 free" not in await page.locator("main").inner_text()
    text = await show(wishes)
    for sentence in ("Round 1: in turn", "You can change your list until", "Lottery numbers"):
        assert sentence in text, sentence
    for sentence in ("Everybody can check the result.", "It is best to rank all courses."):
        assert sentence in text, sentence
    assert "Round 2" not in text

    await student.execute(SET_WISHES, id=course.campaign_id, slots=[course.slot_id])
    await board.organizer.book_slot(course.slot_id, userId=await student.fetch_user_id())
    await close(board, course)
    for address in (campaign, "#/", slot):
        await show(address)
        await shown(page, "The wishes are final. The draw is from").wait_for()
        await page.get_by_role("link", name="How your list counts").wait_for()
    text = await show(wishes)
    assert "You had a place there before." in text
    assert "Check number" not in text
    await page.get_by_text("For those who check").click()
    await page.evaluate("dispatchEvent(new Event('offline'))")  # shows the page anew
    await shown(page, "Check number of this list").wait_for()
    await shown(page, await student.fetch_user_id()).wait_for()


async def test_a_result_stands_before_what_is_left_and_nobody_waits_for_full_courses(
    board: Board,
) -> None:
    names = ("Mia", "Noa", "Lin")
    student, other, absent = [await board.student(name) for name in names]
    course = await drawn_course(board, leftoversOpenAt=hours_from_now(72))
    for each in (student, other):
        await each.execute(SET_WISHES, id=course.campaign_id, slots=[course.slot_id])
    await close(board, course)
    context = await board.context(student)
    home, page, wishes = [
        await board.open(context, address)
        for address in ("#/", course.address, f"#/wishes/{course.campaign_id}")
    ]
    await shown(wishes, "Takes part in the draw.").wait_for()
    later = await board.context(absent)
    await later.clock.install()
    course_page = await board.open(later, f"#/slot/{course.slot_id}")
    await shown(course_page, "The wishes are final.").wait_for()
    await publish(board, course)
    await page.get_by_text("Still free: 3 places in 1 course, from").wait_for()  # by an event
    await expect(course.row(page)).to_contain_text(re.compile("Full|Yours"))
    await page.get_by_role("link", name="Your result").wait_for()
    await home.reload()
    await home.get_by_text("Still free: 3 places in 1 course, from").wait_for()
    await wishes.reload()
    await wishes.get_by_text(re.compile("^Lottery number [12] of 2$")).wait_for()
    await wishes.get_by_text("Still free: 3 places in 1 course, from").wait_for()
    rows = wishes.get_by_role("region", name="Your result").get_by_role("listitem")
    got = await rows.inner_text()
    assert "You have a place." in got or "the last place went to number 1." in got
    # A result with a full course says in which order places were given.
    assert await wishes.get_by_text("Round 1: in turn").count() == ("Full" in got)

    async def is_over() -> bool:
        await course_page.clock.run_for(10_000)
        return await course_page.locator(".notice").count() == 0

    await eventually(is_over, "an open page of a course shows that the draw is over")
    await shown(course_page, "Full").wait_for()
    # Members without wishes, and guests, read the same of what is left.
    for context in (await board.context(absent), await board.context(locale="en")):
        for address in ("#/", course.address):
            page = await board.open(context, address)
            place = entry_of(page, course) if address == "#/" else page.locator("main")
            await place.get_by_text("Still free: 3 places in 1 course, from").wait_for()
            assert await place.get_by_role("link", name="Your result").count() == 0


async def test_a_user_with_two_places_at_a_time_is_asked_to_give_one_back(board: Board) -> None:
    student, course = await board.student(), await drawn_course(board)
    await student.execute(SET_WISHES, id=course.campaign_id, slots=[course.slot_id])
    await close(board, course)
    other = await board.course(title="Go", **times_in(80.5, 1.5))
    await student.book_slot(other.slot_id)
    await publish(board, course)
    address = f"#/wishes/{course.campaign_id}"
    page = await board.open(await board.context(student), address)
    row = page.get_by_role("region", name="Your result").get_by_role("listitem")
    await expect(row).to_contain_text("You have a place.")
    await expect(row).to_contain_text("At that time you also have Go. Give one of the two back.")
    await page.get_by_role("link", name="Give back: Go").wait_for()
    await page.get_by_role("link", name="Give back: Chess").click()
    await page.get_by_role("button", name="Give back: Chess").click()
    await page.get_by_role("group").get_by_role("button", name="Give back").click()
    await page.get_by_role("heading", name="Yours", exact=True).wait_for(state="detached")
    await page.goto(f"/board{address}")
    await expect(row).to_contain_text("You drew a place, but no longer have it.")
    await expect(row).not_to_contain_text("Go")


async def test_a_result_without_anything_left_says_so(board: Board) -> None:
    student, absent = await board.student(), await board.student("Lin")
    course = await board.course(capacity=1, opens_in_s=3600)
    settings = {"campaignId": course.campaign_id, "wishesUntil": hours_from_now(2)}
    await board.organizer.execute(
        CONFIGURE, input={**settings, "leftoversOpenAt": hours_from_now(9)}
    )
    await student.execute(SET_WISHES, id=course.campaign_id, slots=[course.slot_id])
    await close(board, course)
    await publish(board, course)
    contexts = [await board.context(each) for each in (student, absent)]

    async def is_over(address: str) -> None:
        for context in contexts:
            page = await board.open(context, address)
            place = entry_of(page, course) if address == "#/" else page.locator("main")
            await place.get_by_text("No places are left.").wait_for()
            assert await page.get_by_role("timer").count() == 0
            assert not re.search("Opens|Open until", await place.inner_text())

    for address in (course.address, "#/", f"#/wishes/{course.campaign_id}"):
        await is_over(address)
    opening = {"campaignId": course.campaign_id, "opensAt": hours_from_now(-1)}
    await board.organizer.execute(UPDATE_CAMPAIGN, input=opening)
    for address in (course.address, "#/"):
        await is_over(address)


async def test_a_wish_that_is_added_has_the_focus_and_nothing_moves_under_a_finger(
    board: Board,
) -> None:
    student, course = await board.student(), await board.course()
    for number in range(12):
        await board.organizer.add_slot(campaignId=course.campaign_id, title=f"Course {number}")
    until = {"campaignId": course.campaign_id, "wishesUntil": hours_from_now(1)}
    await board.organizer.execute(CONFIGURE, input=until)
    context = await board.context(student, viewport={"width": 360, "height": 640}, has_touch=True)
    page = await board.open(context, f"#/wishes/{course.campaign_id}")
    await shown(page, "Choose at least 10 courses").wait_for()
    last = page.get_by_role("button", name="Add: Course 9")
    await last.scroll_into_view_if_needed()
    await page.evaluate("document.documentElement.style.overflowAnchor = 'none'")  # as in Safari
    near = page.get_by_role("button", name="Add: Course 8")
    top = "element => element.getBoundingClientRect().top"
    before = await near.evaluate(top)
    await last.tap()
    await expect(page.locator(":focus")).to_have_accessible_name("1. Course 9")
    assert abs(await near.evaluate(top) - before) < 2
    await press(page, "Add: Course 8")
    await expect(page.locator(":focus")).to_have_accessible_name("2. Course 8")
    await expect(page.locator(":focus")).to_be_in_viewport()


async def test_a_read_that_began_before_a_change_does_not_undo_it(board: Board) -> None:
    student, course = await board.student(), await board.course()
    until = {"campaignId": course.campaign_id, "wishesUntil": hours_from_now(1)}
    await board.organizer.execute(CONFIGURE, input=until)
    context = await board.context(student)
    await context.clock.install()
    page = await board.open(context, f"#/wishes/{course.campaign_id}")
    add = page.get_by_role("button", name="Add: Chess")
    await add.wait_for()
    is_read, goes_on = asyncio.Event(), asyncio.Event()

    async def hold_read(route: Route) -> None:
        if not asks_for(route.request, "wishes"):
            await route.fallback()
            return
        response = await route.fetch()
        is_read.set()
        await goes_on.wait()
        await route.fulfill(response=response)

    await page.route("**/graphql", hold_read)
    while not is_read.is_set():
        await page.clock.run_for(500)
    await press(page, "Add: Chess")
    await page.clock.run_for(1_000)
    await shown(page, "Your wishes are saved.").wait_for()
    async with page.expect_response(lambda each: asks_for(each.request, "wishes")):
        goes_on.set()
    await page.evaluate("1")
    await page.clock.run_for(1_000)
    await expect(page.locator("ol.list li")).to_contain_text(["1. Chess"])


@pytest.mark.parametrize("view", ["wishes", "campaign", "campaign without sockets"])
async def test_a_page_reads_a_draw_each_minute_one_request_at_a_time_and_often_while_it_moves(
    board: Board, view: str
) -> None:
    student, course = await board.student(), await board.course()
    until = {"campaignId": course.campaign_id, "wishesUntil": hours_from_now(1)}
    await board.organizer.execute(CONFIGURE, input=until)
    context = await board.context(student)
    await context.clock.install()
    if view.endswith("sockets"):
        await context.route_web_socket("**/graphql", lambda socket: socket.close())
    operation = "wishes" if view == "wishes" else "drawState"
    await note_reads(context, operation)
    moves, goes_on = False, asyncio.Event()
    goes_on.set()

    async def answer(route: Route) -> None:
        if not asks_for(route.request, operation):
            await route.fallback()
            return
        response = await route.fetch()
        document = await response.json()
        found = document["data"]["draws"][0] if view == "wishes" else document["data"]["draw"]
        if moves:
            found |= {"state": "CLOSED", "root": None}
        await goes_on.wait()
        await route.fulfill(json=document)

    await context.route("**/graphql", answer)
    page = await board.open(context, f"#/{view.split()[0]}/{course.campaign_id}")
    await page.get_by_text("Wishes until").first.wait_for()
    await until_handled(page)
    await ms_to_next_read(page)
    assert 40_000 <= await ms_to_next_read(page) <= 90_000
    moves = True
    await ms_to_next_read(page)
    assert 3_000 <= await ms_to_next_read(page) < 30_000
    goes_on.clear()
    count = await page.evaluate("reads.length")
    while await page.evaluate("reads.length") == count:
        await page.clock.run_for(500)
    await page.clock.run_for(14_000)
    assert await page.evaluate("reads.length") == count + 1
    goes_on.set()
    await context.unroute_all(behavior="ignoreErrors")


async def test_a_page_learns_at_the_deadline_that_the_wishes_are_closed(board: Board) -> None:
    student, course = await board.student(), await board.course()
    until = {"campaignId": course.campaign_id, "wishesUntil": hours_from_now(8 / 3600)}
    await board.organizer.execute(CONFIGURE, input=until)
    await student.execute(SET_WISHES, id=course.campaign_id, slots=[course.slot_id])
    page = await board.open(await board.context(student), f"#/wishes/{course.campaign_id}")
    await shown(page, "Wishes until").first.wait_for()
    await shown(page, "Takes part in the draw.").wait_for(timeout=38_000)  # not after a minute


async def test_wishes_are_ranked_by_keyboard_and_explained_after_the_draw(board: Board) -> None:
    student, admin = await board.student(), await board.admin()
    course = await board.course(capacity=1)
    await board.organizer.add_slot(campaignId=course.campaign_id, title="Judo", **times_in(80))
    until = {"campaignId": course.campaign_id, "wishesUntil": hours_from_now(1)}
    await board.organizer.execute(CONFIGURE, input=until)
    page = await board.visit(student, course)
    await page.goto(f"/board#/campaign/{course.campaign_id}")
    await page.get_by_role("link", name="Rank your wishes").click()
    for rank, title in enumerate(("Chess", "Judo"), 1):
        await press(page, f"Add: {title}")
        # The wish has the focus a moment later, and would take the next key.
        await expect(page.locator(":focus")).to_have_accessible_name(f"{rank}. {title}")
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
    await organizing.get_by_role("row", name="In rounds").wait_for()  # what was drawn
    await expect(organizing.get_by_role("row", name="One after the other")).to_have_count(0)
    await expect(organizing.get_by_label("Places: Chess")).to_have_count(0)
    await expect(organizing.get_by_role("row", name="Chess").last).to_contain_text("11")
    await press(organizing, "Publish the result")
    await organizing.get_by_role("group", name="Publish the result").wait_for()
    await press(organizing, "Publish the result")
    await shown(organizing, "All places are booked").wait_for()
    # The log has a line for the draw, and none for each place that it gave.
    await organizing.goto(f"/board#/monitor/{course.campaign_id}")
    await shown(organizing, "published the draw").wait_for()
    await expect(organizing.locator("[data-key=log]")).not_to_contain_text("a place in")
    await organizing.goto(f"/board#/{USERS_VIEW}/{await student.fetch_user_id()}")
    await expect(organizing.locator("[data-key=places] li").first).to_contain_text("by the draw")
    await organizing.goto(f"/board#/course/{course.slot_id}")
    await expect(organizing.locator("[data-key=people] li").first).to_contain_text("by the draw")
    await page.reload()
    await shown(page, "You have a place, from round 1.").wait_for()
    await shown(page, "You have a place, from round 2.").wait_for()
    await page.get_by_text("For those who check").click()
    async with page.expect_download() as download:
        await press(page, "Save the record")
    assert (await download.value).suggested_filename.endswith("record.json")
    await board.organizer.execute(CONFIGURE, input={**until, "reason": "Places are left."})
    await page.reload()
    await shown(page, "It is best to rank all courses.").wait_for()
    former = page.get_by_role("region", name="Draw of")
    rows = former.locator("ol").get_by_role("listitem")
    await expect(rows).to_contain_text(["from round 1", "from round 2"])
    await former.get_by_text("For those who check").click()
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
    assert await student.execute(OWN_WISHES, id=course.campaign_id) is None


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
        saved = await student.execute(OWN_WISHES, id=course.campaign_id)
        assert (len(saved["userIds"]), len(saved["ranked"])) == (count, 1)


async def test_an_organizer_draws_with_what_the_announced_source_gave_after_one_question(
    board: Board,
) -> None:
    course = await drawn_course(
        board, seedSource="Lottery numbers of May 4", seedAt=hours_from_now(50)
    )
    await close(board, course)
    context, sent, is_due = await board.context(await board.admin()), list[Any](), False

    async def answer(route: Route) -> None:
        if asks_for(route.request, "runDraw"):
            sent.append(json.loads(route.request.post_data or "")["variables"])
        if not is_due or not asks_for(route.request, "drawOfCampaign"):
            await route.fallback()
            return
        document = await (await route.fetch()).json()
        document["data"]["draws"][0]["announcement"]["at"] = hours_from_now(-1)
        await route.fulfill(json=document)

    await context.route("**/graphql", answer)
    page = await board.open(context, f"#/draw/{course.campaign_id}")
    await shown(page, "You can draw from").wait_for()
    run = page.get_by_role("button", name="Draw", exact=True)
    assert await run.count() == 0
    is_due = True
    await page.reload()
    field = page.get_by_label("Lottery numbers of May 4")
    await run.click()
    await expect(field).to_have_attribute("aria-invalid", "true")
    await field.fill("4 17 23 31 40 48")
    await run.click()
    question = page.get_by_role("group", name="Draw with “4 17 23 31 40 48”?")
    await question.wait_for()
    assert sent == []
    await expect(run).to_have_count(1)
    await page.keyboard.press("Enter")  # on "Not now"
    await expect(field).to_have_value("4 17 23 31 40 48")
    await run.click()
    await run.click()
    await shown(page, "has not come yet").wait_for()  # says the server, whose clock counts
    assert sent == [{"id": course.campaign_id, "seed": "4 17 23 31 40 48"}]


async def test_a_draft_says_so_and_a_draw_is_called_off_and_opened_again_with_its_wishes(
    board: Board,
) -> None:
    student, course = await board.student(), await drawn_course(board)
    await student.execute(SET_WISHES, id=course.campaign_id, slots=[course.slot_id])
    await board.organizer.execute(UNPUBLISH_CAMPAIGN, id=course.campaign_id)
    context = await board.context(await board.admin(), viewport={"width": 360, "height": 640})
    page = await board.open(context, f"#/draw/{course.campaign_id}")
    await shown(page, "The booking period is a draft").wait_for()
    assert await shown(page, "People enter wishes until").count() == 0
    await board.organizer.execute(PUBLISH_CAMPAIGN, id=course.campaign_id)
    await close(board, course)
    await page.reload()
    await page.get_by_text("Replace or call off this draw").first.click()
    await page.get_by_label("Reason").fill("The gym is closed.")
    await press(page, "Call off this draw")
    await page.get_by_role("heading", name="Called off").wait_for()
    await page.get_by_text("For those who check").click()
    await shown(page, "The gym is closed.").wait_for()
    wishes = await board.open(await board.context(student), f"#/wishes/{course.campaign_id}")
    await shown(wishes, "This draw is called off: The gym is closed.").wait_for()
    await press(page, "Open another draw")
    await page.get_by_label("Reason").fill("It is open again.")
    await page.get_by_label("Start with the wishes of").select_option(index=1)
    await page.get_by_label("Who can check the whole result").select_option("Everybody")
    await press(page, "Save")
    await page.get_by_role("heading", name="Wishes are entered").wait_for()
    await page.get_by_role("region", name="Draw of").wait_for()
    await expect(page.get_by_role("row", name="Chess")).to_contain_text("1")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 360
    saved = await student.execute(OWN_WISHES, id=course.campaign_id)
    assert [each["slotId"] for each in saved["ranked"]] == [course.slot_id]


async def test_demand_is_read_each_half_minute_and_a_problem_of_the_draw_is_shown(
    board: Board,
) -> None:
    course = await drawn_course(board)
    context = await board.context(await board.admin())
    await context.clock.install()
    await note_reads(context, "drawDemand")

    async def answer(route: Route) -> None:
        if not asks_for(route.request, "drawOfCampaign"):
            await route.fallback()
            return
        document = await (await route.fetch()).json()
        document["data"]["draws"][0]["problem"] = "CAMPAIGN_BUSY"
        await route.fulfill(json=document)

    await context.route("**/graphql", answer)
    page = await board.open(context, f"#/draw/{course.campaign_id}")
    await shown(page, "The server cannot go on:").wait_for()
    assert 20_000 <= await ms_to_next_read(page) < 60_000
    await context.unroute_all(behavior="ignoreErrors")
