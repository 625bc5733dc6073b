"""What parents do with several courses: a series, a swap, a choice, and a course that is off."""

import re

import pytest
from bson import ObjectId
from playwright.async_api import expect

from tests.board.members.test_families import BOTH, create_family, fits_the_phone
from tests.support.board.pages import Board, shown
from tests.support.clients.booking_client import expire_holds
from tests.support.clients.campaigns import set_groups, update_campaign
from tests.support.clients.client import times_in
from tests.support.clients.series import create_series
from tests.support.polling import eventually
from tests.support.scenarios.families import set_guardians
from tests.support.scenarios.led_course import CREATE_LED

pytestmark = pytest.mark.asyncio(loop_scope="module")

CANCEL = """mutation($id: ID!) { cancelSlot(slotId: $id, reason: "The teacher is ill") {
  __typename } }"""
BOOKED = "CONFIRMED GUARDIAN"
LONG = "Maximiliane-Charlotte Freifrau von und zu Münz-Württemberg"
TO_LOWER_EDGE = "it => scrollBy(0, it.getBoundingClientRect().bottom - innerHeight + 70)"
IS_ABOVE = """(selector) => {
  const [it, tabs] = [selector, ".tabs"].map((each) => document.querySelector(each));
  return it.getBoundingClientRect().bottom <= tabs.getBoundingClientRect().top;
}"""
RIGHTS = "all => all.map((each) => each.getBoundingClientRect().right)"


async def test_a_series_is_booked_for_one_child_and_then_where_it_is_free_for_the_other(
    board: Board,
) -> None:
    family, other = await create_family(board, "Mia", "Ben"), await board.student("Jonas")
    course = await family.course()
    created = await create_series(
        board.organizer, "FREQ=DAILY;COUNT=3", capacity=2, timeZone="UTC",
        campaignId=course.campaign_id, **times_in(48),
    )  # fmt: skip
    ids = [each["id"] for each in created["slots"]]
    page = await family.open(f"#/slot/{ids[0]}")
    await page.get_by_role("heading", name="All 3 dates").wait_for()
    dates = page.get_by_role("region", name="All 3 dates")
    await expect(dates.get_by_role("radio")).to_have_count(2)  # Eva is in no class
    await dates.get_by_role("radio", name="Mia").check()
    await dates.get_by_role("button", name="Book all, or none of them").click()
    await page.get_by_role("heading", name="Mia: booked").wait_for()
    assert [await family.places(each) for each in ids] == [{"Mia": BOOKED}] * 3
    await expect(dates.get_by_role("button", name="Book")).to_have_count(0)  # Mia has all
    await board.organizer.book_slot(ids[1], userId=await other.fetch_user_id())
    await dates.get_by_role("radio", name="Ben").check()
    await dates.get_by_role("button", name="Book all, or none of them").click()
    await dates.get_by_text("Nothing was booked.").wait_for()
    await dates.get_by_role("button", name="Book those that are free").click()
    await dates.get_by_text("2 dates are booked.").wait_for()
    both = {"Mia": BOOKED, "Ben": BOOKED}
    assert [await family.places(each) for each in ids] == [both, {"Mia": BOOKED}, both]
    assert await fits_the_phone(page)


@pytest.mark.parametrize("is_open", [True, False])
async def test_in_a_campaign_with_a_queue_each_child_has_a_ticket(
    board: Board, is_open: bool
) -> None:
    family = await create_family(board, "Mia", "Ben")
    course = await family.course()
    go = await family.another(course, "Go", 30)
    several, rules = "Choose several", {"admission": "QUEUE_ONLY"}
    if not is_open:
        await update_campaign(board.organizer, course.campaign_id, **rules)
    page = await family.open(course.address)
    row, button = course.row(page), page.get_by_role("button", name="Queue for …: Chess")
    if is_open:
        await page.get_by_role("button", name="Book for …: Chess").wait_for()
        await page.get_by_role("button", name=several).click()
        await update_campaign(board.organizer, course.campaign_id, **rules)
        await button.wait_for()  # the list was read again
        await page.get_by_role("button", name=several).click()
    await button.click()
    await expect(page.get_by_role("button", name=several)).to_have_count(0)
    await expect(row).to_contain_text("first come, first served")
    assert await fits_the_phone(page)
    await page.get_by_role("button", name="Join the queue for both: Chess").click()
    for child in ("Mia", "Ben"):
        await expect(row).to_contain_text(f"{child}: booked")
    assert await family.places(course.slot_id) == {"Mia": BOOKED, "Ben": BOOKED}
    await page.get_by_role("button", name="Queue for …: Go").click()
    await page.get_by_label("Mia").uncheck()
    await page.get_by_role("button", name="Join the queue for Ben: Go").click()
    await expect(page.locator("li.slot", has_text="Go")).to_contain_text("Ben: booked")
    assert await family.places(go) == {"Ben": BOOKED}
    await page.goto(f"/board#/slot/{course.slot_id}")
    await page.get_by_role("heading", name="Mia: booked").wait_for()
    await expect(page.get_by_role("link", name="Swap")).to_have_count(0)  # nobody can


async def test_a_child_is_in_the_queue_that_a_campaign_has_since_the_page_was_opened(
    board: Board,
) -> None:
    family = await create_family(board, "Mia")
    course = await family.course()
    page = await family.open(f"#/slot/{course.slot_id}")
    button = page.get_by_role("button", name="Book for Mia: Chess")
    await button.wait_for()
    await update_campaign(board.organizer, course.campaign_id, admission="QUEUE_ONLY")
    await button.click()
    await page.get_by_role("heading", name="Mia: booked").wait_for()
    assert await family.places(course.slot_id) == {"Mia": BOOKED}


async def test_the_one_course_of_a_child_is_swapped_in_the_list(board: Board) -> None:
    family = await create_family(board, "Mia")
    course = await family.course()
    await update_campaign(board.organizer, course.campaign_id, maxBookings=1)
    go = await family.another(course, "Go", 30)
    await family.book(go, "Mia")
    page = await family.open(course.address)
    row = course.row(page)
    await row.get_by_text("Mia: already has the one place allowed.").wait_for()
    await row.get_by_role("button", name="Swap: Go for Chess").click()
    await expect(row).to_contain_text("Mia")
    await expect(row).to_contain_text("Swap Go for Chess?")
    assert await fits_the_phone(page)
    await row.get_by_role("button", name="Swap: Go for Chess").click()
    await expect(course.row(page, "yours")).to_contain_text("Mia: booked")
    assert [await family.places(each) for each in (course.slot_id, go)] == [{"Mia": BOOKED}, {}]


async def test_a_child_swaps_for_the_course_that_its_sibling_has(board: Board) -> None:
    family = await create_family(board, "Mia", "Ben")
    course = await family.course()
    go = await family.another(course, "Go", capacity=1)
    await family.book(go, "Mia")
    await family.book(course.slot_id, "Ben")
    page = await family.open(f"#/slot/{course.slot_id}")
    mia = page.get_by_role("region", name="Mia")
    await mia.get_by_text("Mia: overlaps with Go, ").wait_for()
    await mia.get_by_role("button", name="Swap").click()
    await mia.get_by_text("Swap Go for Chess?").wait_for()
    await mia.get_by_role("button", name="Swap").click()
    await page.get_by_role("heading", name="Mia: booked").wait_for()
    assert await family.places(course.slot_id) == {"Mia": BOOKED, "Ben": BOOKED}
    assert await family.places(go) == {}


async def test_a_row_says_why_each_child_cannot_be_booked_and_swaps_for_the_only_one_who_can(
    board: Board,
) -> None:
    family = await create_family(board, "Mia", "Ben")
    course = await family.course()
    await update_campaign(board.organizer, course.campaign_id, maxBookings=2)
    judo = await board.organizer.add_slot(campaignId=course.campaign_id, title="Judo")
    await family.eva.book_all({"slotId": judo, "userId": family.ids["Ben"]})
    for title, hour in (("Go", 30), ("Yoga", 33)):
        slot_id = await family.another(course, title, hour)
        await family.eva.book_all({"slotId": slot_id, "userId": family.ids["Mia"]})
    page = await family.open(course.address)
    row = course.row(page)
    await row.get_by_text("Mia: already has all 2 places.").wait_for()
    await row.get_by_text(re.compile(r"^Ben: overlaps with Judo, \w{3} \d\d:\d\d\.$")).wait_for()
    assert await fits_the_phone(page)
    await row.get_by_role("button", name="Swap: Judo for Chess").click()
    await row.get_by_text("Swap Judo for Chess?").wait_for()
    assert await fits_the_phone(page)
    await row.get_by_role("button", name="Swap: Judo for Chess").click()
    await expect(course.row(page, "yours")).to_contain_text("Ben: booked")
    await expect(row).to_contain_text("Mia: already has all 2 places.")
    assert await family.places(course.slot_id) == {"Ben": BOOKED}


async def test_what_two_children_can_swap_is_offered_on_the_page_to_each(board: Board) -> None:
    family = await create_family(board, "Mia", "Ben")
    course = await family.course()
    for title, child in (("Judo", "Mia"), ("Go", "Ben")):
        slot_id = await board.organizer.add_slot(campaignId=course.campaign_id, title=title)
        await family.eva.book_all({"slotId": slot_id, "userId": family.ids[child]})
    page = await family.open(course.address)
    for why in ("Mia: overlaps with Judo, ", "Ben: overlaps with Go, "):
        await course.row(page).get_by_text(why).wait_for()
    await expect(course.row(page).get_by_role("button")).to_have_count(0)
    await page.get_by_role("link", name="Chess").click()
    mia, ben = (page.get_by_role("region", name=name) for name in ("Mia", "Ben"))
    await ben.get_by_role("button", name="Swap: Go for Chess").click()
    await ben.get_by_text("Swap Go for Chess?").wait_for()
    await mia.get_by_text("Mia: overlaps with Judo, ").wait_for()  # is not asked
    await ben.get_by_role("button", name="Swap: Go for Chess").click()
    await page.get_by_role("heading", name="Ben: booked").wait_for()
    assert await family.places(course.slot_id) == {"Ben": BOOKED}


async def test_of_several_courses_it_is_said_which_two_collide_and_how_many_a_child_may_have(
    board: Board,
) -> None:
    family = await create_family(board, "Mia")
    course = await family.course()
    await family.another(course, "Yoga", 33)
    await board.organizer.add_slot(campaignId=course.campaign_id, title="Judo")
    page = await family.open(course.address)
    await page.get_by_role("button", name="Choose several").click()
    for title in ("Chess", "Judo", "Yoga"):
        await page.get_by_role("checkbox", name=title, exact=True).check()
    bar = page.get_by_role("complementary", name="3 courses chosen")
    await bar.get_by_role("button", name="Book all, or none").click()
    collide = r"booked. (Chess|Judo), Mia: overlaps with (Judo|Chess), \w{3} \d\d:\d\d\.$"
    await bar.get_by_text(re.compile(collide)).wait_for()
    assert await fits_the_phone(page)
    go = await family.another(course, "Go", 36)
    await family.eva.book_all({"slotId": go, "userId": family.ids["Mia"]})
    await update_campaign(board.organizer, course.campaign_id, maxBookings=2)
    await page.get_by_role("checkbox", name="Judo", exact=True).uncheck()
    bar = page.get_by_role("complementary", name="2 courses chosen")
    await bar.get_by_role("button", name="Book all, or none").click()
    said = "Nothing was booked. Yoga, Mia: only 1 more place allowed."
    await bar.get_by_text(said).wait_for()
    assert await family.places(course.slot_id) == {}


async def test_a_place_of_a_child_is_swapped_from_the_week_and_its_page(board: Board) -> None:
    family = await create_family(board, "Mia", "Ben")
    course = await family.course()
    go = await family.another(course, "Go", 30)
    full, other = await family.another(course, "Yoga", 33), await board.student("Jonas")
    await board.organizer.update_slot(full, capacity=1)
    filled = await board.organizer.book_slot(full, userId=await other.fetch_user_id())
    assert filled["__typename"] == "Booked", filled
    await family.book(course.slot_id, "Mia", "Ben")
    page = await family.open("#/week")
    await page.get_by_role("radio", name="Ben").check()
    await page.get_by_role("link", name="Swap: Ben: Chess").click()
    await page.get_by_role("region", name="Ben: booked").get_by_text("Swap for").wait_for()
    await expect(page.get_by_role("heading", name="Swap for")).to_have_count(1)  # none for Mia
    mia = page.get_by_role("region", name="Mia: booked")
    await mia.get_by_role("link", name="Swap").click()
    await mia.get_by_role("heading", name="Swap for").wait_for()
    await expect(page.get_by_role("heading", name="Swap for")).to_have_count(1)  # none for Ben
    await expect(mia.get_by_role("listitem")).to_have_count(1)  # Yoga is full
    assert await fits_the_phone(page)
    await mia.get_by_role("button", name="Swap: Chess for Go").click()
    await mia.get_by_text("Swap Chess for Go?").wait_for()  # "Keep" comes to the place of "Swap"
    await mia.get_by_role("button", name="Swap: Chess for Go").click()
    await page.get_by_role("heading", name="Go", exact=True).wait_for()
    await page.get_by_role("region", name="Mia: booked").wait_for()
    assert await family.places(course.slot_id) == {"Ben": BOOKED}
    assert await family.places(go) == {"Mia": BOOKED}


async def test_several_courses_are_reserved_for_both_and_confirmed_in_one_tap(
    board: Board,
) -> None:
    family = await create_family(board, "Mia", "Ben")
    course = await family.course()
    ids = [course.slot_id, await family.another(course, "Go", 30)]
    page = await family.open(course.address)
    await page.get_by_role("button", name="Choose several").click()
    for title in ("Chess", "Go"):
        await page.get_by_role("checkbox", name=title, exact=True).check()
    await page.get_by_role("link", name="Go", exact=True).click()  # to read of it
    await page.get_by_role("heading", level=1, name="Go").wait_for()
    await page.get_by_role("link", name="Clubs", exact=True).click()
    bar = page.get_by_role("complementary", name="2 courses chosen")
    await expect(bar.get_by_role("checkbox", name="Mia")).to_be_checked()
    await expect(bar.get_by_role("checkbox", name="Ben")).to_be_checked()
    await bar.get_by_text("Reserved places become free again").wait_for()
    assert await fits_the_phone(page)
    assert await bar.evaluate("(it) => it.clientHeight") <= 740 / 3
    await bar.get_by_role("button", name="Reserve all").click()
    await expect(course.row(page)).to_contain_text("Mia: Reserved")
    held = dict.fromkeys(("Mia", "Ben"), "HELD GUARDIAN")
    assert [await family.places(each) for each in ids] == [held, held]
    await course.row(page).get_by_role("button", name="Give back: Chess").click()
    await course.row(page, "open").wait_for()
    assert [await family.places(each) for each in ids] == [{}, held]
    for child in ("Mia", "Ben"):
        await family.eva.hold(course.slot_id, userId=family.ids[child])
    await page.goto(f"/board#/slot/{course.slot_id}")
    ben = page.get_by_role("region", name="Ben: Reserved")
    await ben.get_by_role("button", name="Give back: Chess").click()
    await expect(ben).to_have_count(0)
    await page.goto("/board#/week")
    await page.get_by_role("button", name="Give back: Mia: Chess").click()
    await page.get_by_text("You gave Mia: Chess back.").first.wait_for()
    assert [await family.places(each) for each in ids] == [{}, held]
    for child in ("Mia", "Ben"):
        await family.eva.hold(course.slot_id, userId=family.ids[child])
    await page.goto(f"/board{course.address}")
    await course.row(page).get_by_role("button", name="Confirm all 2: Chess").click()
    await expect(course.row(page, "yours")).to_contain_text("Ben: booked")
    await expect(course.row(page)).to_contain_text("Mia: booked")
    await page.goto("/board#/week")
    await page.get_by_role("button", name="Confirm all 2").click()
    await expect(page.get_by_role("button", name="Confirm")).to_have_count(0)
    both = dict.fromkeys(("Mia", "Ben"), BOOKED)
    assert [await family.places(each) for each in ids] == [both, both]
    yoga = await family.another(course, "Yoga", 33)
    await family.eva.hold(yoga, userId=family.ids["Ben"])
    await page.get_by_role("button", name="Give back: Ben: Yoga").wait_for()
    expire_holds(board.app.environment["SLOTLOCK_MONGO_URL"], yoga)
    await shown(page, "Ben: Yoga is no longer reserved").wait_for()


async def test_what_a_button_opens_at_the_lower_edge_is_above_the_navigation(board: Board) -> None:
    family = await create_family(board, "Mia", "Ben")
    course = await family.course()
    for number, title in enumerate(("Go", "Yoga", "Judo")):
        await family.another(course, title, 30 + 2 * number)
    page = await family.open(course.address, viewport={"width": 360, "height": 560})
    choose = page.get_by_role("button", name="Book for …: Chess")
    await choose.evaluate(TO_LOWER_EDGE)
    await choose.click()
    await page.get_by_role("button", name=BOTH).wait_for()
    await eventually(lambda: page.evaluate(IS_ABOVE, ".below .btn"), "the choice is in view")
    await page.get_by_role("button", name=BOTH).click()
    await expect(course.row(page, "yours")).to_contain_text("Mia: booked")
    await page.goto(f"/board#/slot/{course.slot_id}")
    back = page.get_by_role("button", name="Give back: Ben: Chess")
    await back.evaluate(TO_LOWER_EDGE)
    await back.click()
    await page.get_by_role("group", name="Give back Ben: Chess?").wait_for()
    await expect(page.locator(".asked")).to_have_count(1)  # nothing is asked about Mia
    await eventually(lambda: page.evaluate(IS_ABOVE, ".asked"), "the question is in view")


async def test_several_courses_cannot_be_booked_for_more_children_than_one_of_them_has_places(
    board: Board,
) -> None:
    family = await create_family(board, "Mia", "Ben")
    course = await family.course()
    go = await family.another(course, "Go", 30, capacity=1)
    page = await family.open(course.address)
    await page.get_by_role("button", name="Choose several").click()
    for title in ("Chess", "Go"):
        await page.get_by_role("checkbox", name=title, exact=True).check()
    bar = page.get_by_role("complementary", name="2 courses chosen")
    await bar.get_by_text("Go: 1 place is free, you chose 2.").wait_for()
    for name in ("Book all, or none", "Reserve all"):
        await expect(bar.get_by_role("button", name=name)).to_be_disabled()
    assert await fits_the_phone(page)
    await bar.get_by_role("checkbox", name="Ben").uncheck()
    await expect(bar.get_by_text("you chose 2")).to_have_count(0)
    await bar.get_by_role("button", name="Book all, or none").click()
    await expect(course.row(page)).to_contain_text("Mia: booked")
    assert await family.places(go) == {"Mia": BOOKED}


async def test_many_children_with_long_and_short_names_fit_the_pages_before_teammates(
    board: Board,
) -> None:
    family, lea = await create_family(board, "Ben", LONG, "O"), await board.student("Lea")
    eva, organizer = family.eva, board.organizer
    await board.vouch_for(lea)
    await set_groups(organizer, lea, "4a")
    ids = {**family.ids, "Lea": await lea.fetch_user_id()}
    await set_guardians(organizer, ids["Lea"], [ids["Eva"]])
    await eva.create_team_with(lea, await board.student("Tom"))  # a child is a teammate, too
    course = await family.course()
    await family.another(course, "Go", 27)
    yoga = await family.another(course, "Yoga", 30, capacity=1, waitlistCapacity=5)
    await eva.book_all({"slotId": yoga, "userId": ids["Lea"]})
    names = ["Ben", "Lea", LONG, "O"]
    await eva.book_all(*({"slotId": course.slot_id, "userId": ids[name]} for name in names))
    for name in ("Ben", "O"):
        await eva.join(yoga, ids[name])
    page = await family.open(course.address)
    await page.get_by_label("For the family").wait_for()
    await page.get_by_role("button", name="Choose several").click()
    boxes = page.locator(".several .check")
    await expect(boxes).to_have_text([*names, "Tom"])  # Eva is in no class
    assert await fits_the_phone(page)
    await page.goto("/board#/week")
    chips = page.locator(".chip")
    await expect(chips).to_have_text(["All", *names, "Me"])
    assert max(await chips.evaluate_all(RIGHTS)) <= 360
    await page.set_viewport_size({"width": 1280, "height": 800})
    meetings = page.locator(".week .meeting")
    await expect(meetings).to_have_count(3)
    whole = f"Ben, Lea, {LONG}, O: Chess"
    assert {whole, "Lea: Yoga"} < {*await meetings.locator("a").all_text_contents()}
    waiting = meetings.filter(has_text="Ben, O: Yoga")
    await expect(waiting).to_contain_text("Ben: 1st on the waiting list · O: 2nd on the waiting")


async def test_an_open_week_shows_at_once_that_a_course_of_a_child_moved_and_is_canceled(
    board: Board,
) -> None:
    family = await create_family(board, "Mia")
    course = await family.course()
    await family.another(course, "Go", 30)
    page = await family.open(course.address)
    await page.get_by_role("button", name="Book for Mia: Chess").click()
    await expect(course.row(page, "yours")).to_contain_text("Mia: booked")
    await page.goto("/board#/week")  # the same page, which knows what it booked
    meeting = page.locator(".week .meeting")
    await expect(meeting).to_contain_text("Room 1")
    await page.locator(".live:not(.stale)").wait_for()
    await board.organizer.update_slot(course.slot_id, location="Room 2")
    await expect(meeting).to_contain_text("Room 2")
    news = page.locator(".news")
    await expect(news).to_contain_text("Mia: location of Chess changed")
    kim = await board.organizer.execute(CREATE_LED, name=f"Mr Kim {ObjectId()}")
    await board.organizer.update_slot(course.slot_id, resourceIds=[kim["id"]])
    await expect(news).to_contain_text(f"Mia: Chess is now led by {kim['name']}")
    await board.organizer.execute(CANCEL, id=course.slot_id)
    await expect(meeting.locator("s")).to_have_text("Mia: Chess")
    await expect(news).to_contain_text("Mia: Chess does not take place: The teacher is ill")
    await expect(news).to_contain_text("1 course still has places.")  # for Mia: Eva is in no class


async def test_a_canceled_course_stays_in_the_list_of_those_who_waited_for_it(board: Board) -> None:
    family, noa = await create_family(board, "Mia", "Ben"), await board.student("Noa")
    course = await family.course(capacity=1, waitlistCapacity=5)
    await update_campaign(board.organizer, course.campaign_id, eligibleGroups=[])
    await board.organizer.book_slot(course.slot_id)
    await family.eva.join(course.slot_id, family.ids["Mia"])
    await noa.join(course.slot_id)
    own = await board.open(await board.context(noa), course.address)
    await course.row(own, "waiting").wait_for()
    await board.organizer.execute(CANCEL, id=course.slot_id)
    await expect(course.row(own)).to_contain_text("The teacher is ill")
    row = course.row(await family.open(course.address))
    await expect(row).to_contain_text("The teacher is ill")
    await expect(row).to_contain_text("Mia")
    await expect(row).not_to_contain_text("Ben")


async def test_a_canceled_course_stays_in_the_list_with_the_child_who_had_it(board: Board) -> None:
    family = await create_family(board, "Mia", "Ben")
    course = await family.course()
    go = await family.another(course, "Go", 30)
    await family.book(go, "Mia")
    for slot_id in (go, await family.another(course, "Yoga", 33)):
        await board.organizer.execute(CANCEL, id=slot_id)
    page = await family.open(course.address)
    row = page.locator("li.slot").filter(has=page.get_by_role("heading", name="Go"))
    await expect(row).to_contain_text("The teacher is ill")
    await expect(row).to_contain_text("Mia")
    await expect(page.locator("li.slot")).to_have_count(2)  # nobody of the family had Yoga
