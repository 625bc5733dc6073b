"""An organizer answers on the telephone what somebody has, changes it and takes it back."""

import pytest
from playwright.async_api import Page, expect

from tests.support.board.pages import VOUCH, Board, Course, Student, shown
from tests.support.clients.campaigns import CONFIGURE, SET_WISHES, create_campaign
from tests.support.clients.client import hours_from_now, times_in
from tests.support.scenarios.families import set_guardians

NO_SHOW = "mutation($id: ID!) { markNoShow(bookingId: $id) { __typename } }"
PUBLISH = "mutation($id: ID!) { publishSlot(slotId: $id) { __typename } }"
pytestmark = pytest.mark.asyncio(loop_scope="module")

VIEW = "people"


async def user_page(board: Board, student: Student) -> Page:
    """Open the page of a user as an admin."""
    context = await board.context(await board.admin())
    return await board.open(context, f"#/{VIEW}/{await student.fetch_user_id()}")


async def second_course(board: Board, first: Course, **fields: object) -> str:
    """Add another course to the campaign of one."""
    return await board.organizer.add_slot(campaignId=first.campaign_id, **fields)


async def titles_of(student: Student) -> list[str]:
    """Return the titles of what a student has booked."""
    found = await student.execute("{ myBookings { nodes { status slot { title } } } }")
    return sorted(each["slot"]["title"] for each in found["nodes"] if each["status"] != "CANCELLED")


async def test_the_page_of_a_user_moves_takes_and_gives_places_and_takes_that_back(
    board: Board,
) -> None:
    mia, chess = await board.student("Mia"), await board.course()
    await second_course(board, chess, title="Robotics", capacity=5)
    await mia.book_slot(chess.slot_id)
    page = await user_page(board, mia)
    places = page.locator('section[data-key="places"]')
    await places.get_by_role("link", name="Chess").wait_for()

    await places.get_by_role("button", name="Move").click()
    await places.locator("#move-to").select_option(index=1)
    await places.get_by_role("button", name="Move", exact=True).click()
    await places.get_by_text("Now in Robotics").wait_for()
    assert await titles_of(mia) == ["Robotics"]
    await places.get_by_role("button", name="Undo").click()
    await expect(places.get_by_text("Now in Robotics")).to_have_count(0)
    assert await titles_of(mia) == ["Chess"]

    await places.get_by_role("button", name="Take away").click()
    await places.get_by_text("Chess: ").wait_for()
    await places.get_by_role("button", name="Take it away").click()
    await places.get_by_text("Place taken away").wait_for()
    assert await titles_of(mia) == []
    await places.get_by_role("button", name="Undo").click()
    await expect(places.get_by_text("Place taken away")).to_have_count(0)
    assert await titles_of(mia) == ["Chess"]

    await places.get_by_role("button", name="Give a place").click()
    # The site has the campaigns of other tests, too, or this one only.
    await places.locator("#move-to, #campaign").first.wait_for()
    campaign = places.locator("#campaign")
    if await campaign.count():
        await campaign.select_option(chess.campaign_id)
    await places.locator("#move-to option", has_text="Robotics").wait_for(state="attached")
    robotics = await places.locator("#move-to option", has_text="Robotics").get_attribute("value")
    await places.locator("#move-to").select_option(robotics)
    await places.get_by_role("button", name="Book", exact=False).click()
    await places.locator("li").get_by_role("link", name="Robotics").wait_for()
    assert await titles_of(mia) == ["Chess", "Robotics"]


async def test_an_undo_that_comes_too_late_says_why_and_changes_nothing(board: Board) -> None:
    mia, ben, chess = await board.student("Mia"), await board.student("Ben"), await board.course()
    solo = await second_course(board, chess, title="Solo", capacity=1)
    await mia.book_slot(solo)
    context = await board.context(await board.admin())
    page = await board.open(context, f"#/course/{solo}")
    roster = page.locator('section[data-key="roster"]')
    await roster.get_by_role("button", name="Move: Mia").click()
    await roster.locator("#move-to").select_option(chess.slot_id)
    await roster.get_by_role("button", name="Move", exact=True).click()
    row = roster.locator("li", has_text="Mia")
    await row.get_by_text("Now in Chess").wait_for()
    await ben.book_slot(solo)
    await roster.locator("li", has_text="Ben").wait_for()
    await row.get_by_role("button", name="Undo: Mia").click()
    await row.get_by_text("All places are taken").wait_for()
    assert (await titles_of(mia), await titles_of(ben)) == (["Chess"], ["Solo"])
    # The name leads to the page of the user.
    await row.get_by_role("link", name="Mia").click()
    await page.get_by_role("heading", name="Mia").wait_for()


async def test_somebody_who_was_taken_off_a_list_comes_back_at_its_end(board: Board) -> None:
    mia, ben, chess = (
        await board.student("Mia"),
        await board.student("Ben"),
        await board.course(capacity=1),
    )
    await board.organizer.book_slot(chess.slot_id)
    for each in (mia, ben):
        await each.join(chess.slot_id)
    page = await user_page(board, mia)
    line = page.locator('section[data-key="waiting"]')
    await line.get_by_text("1. Chess").wait_for()
    await line.get_by_role("button", name="Take off the waiting list").click()
    await line.get_by_role("group").get_by_role("button", name="Take off the waiting list").click()
    await line.get_by_role("button", name="Put back at the end of the list").click()
    await line.get_by_text("2. Chess").wait_for()


async def test_an_erasure_names_free_places_and_children_left_alone_and_is_confirmed(
    board: Board,
) -> None:
    mia, chess = await board.student("Mia"), await board.course(title="Escape Room")
    father, ben, cleo = [await board.student(name) for name in ("Father", "Ben", "Cleo")]
    ids = [await each.fetch_user_id() for each in (mia, father, ben, cleo)]
    for user_id in ids:
        await board.organizer.execute(VOUCH, id=user_id)
    for child, guardians in zip(ids[2:], (ids[:1], ids[:2]), strict=True):
        changed = await set_guardians(board.organizer, child, guardians)
        assert changed["__typename"] == "UserUpdated"
    await mia.book_slot(chess.slot_id)
    page = await user_page(board, mia)
    await page.get_by_role("link", name="Escape Room").wait_for()
    await page.get_by_role("button", name="Erase the account").click()
    await shown(page, "1 place becomes free: Escape Room.").wait_for()
    await shown(page, "These children then have no account of a parent: Ben.").wait_for()
    await page.get_by_role("button", name="Erase forever").click()
    await shown(page, "Mia is erased.").wait_for()


async def test_the_history_of_a_course_has_words_for_what_changed(board: Board) -> None:
    mia, chess = await board.student("Mia"), await board.course()
    meetings = [times_in(30 + each) for each in (0, 24)]
    day = dict.fromkeys(("first", "last"), meetings[0]["startTime"][:10])
    choir = await board.organizer.add_slot(
        campaignId=chess.campaign_id,
        title="Choir",
        capacity=3,
        startTime=None,
        endTime=None,
        timetable={**day, "extra": meetings},
    )
    later = [meetings[0], times_in(60)]
    await board.organizer.update_slot(choir, timetable={**day, "extra": later}, kind="COURSE")
    booking = (await mia.book_slot(chess.slot_id))["booking"]["id"]
    await board.organizer.move(booking, choir)
    page = await board.open(await board.context(await board.admin()), f"#/course/{choir}")
    history = page.locator('section[data-key="history"]')
    await history.get_by_role("button", name="Show").click()
    await history.get_by_text("Moved from Chess · Mia").wait_for()
    changed = history.locator("li", has_text="Meetings: ")
    await expect(changed).to_contain_text("→")
    # ISO times, names of fields and values of the API are for programs.
    for raw in ("T0", "Z/", "startTime", "COURSE", "PUBLISHED", "status"):
        await expect(history).not_to_contain_text(raw)
    await page.goto(f"{board.app.url}/board#/course/{chess.slot_id}")
    await page.get_by_role("heading", name="Chess").wait_for()
    await history.get_by_role("button", name="Show").click()
    await history.get_by_text("Moved to Choir · Mia").wait_for()
    await page.goto(f"{board.app.url}/board#/{VIEW}/{await mia.fetch_user_id()}")
    await page.get_by_role("heading", name="Mia").wait_for()
    history = page.locator('section[data-key="history"]')
    await history.get_by_role("button", name="Show").click()
    await history.get_by_text("Moved from Chess to Choir").wait_for()
    assert await history.locator("li").count() == 2
    await mia.cancel_booking((await mia.fetch_slot(choir))["myBooking"]["id"])
    await page.reload()
    await history.get_by_role("button", name="Show").click()
    await history.get_by_text("Gave the place back · Choir").wait_for()


async def test_the_monitor_says_what_is_full_and_what_was_published_in_one_line(
    board: Board,
) -> None:
    mia, solo = await board.student("Mia"), await board.course(title="Solo", capacity=1)
    for title in ("Art", "Band"):
        draft = await second_course(board, solo, title=title, draft=True)
        await board.organizer.execute(PUBLISH, id=draft)
    context = await board.context(await board.admin())
    page = await board.open(context, f"#/monitor/{solo.campaign_id}")
    log = page.locator('section[data-key="log"]')
    await log.get_by_text("published 3 courses").wait_for()
    await mia.book_slot(solo.slot_id)
    await log.get_by_text("Solo is full, 1 hour").wait_for()
    assert await log.locator("li").count() == 3


async def test_the_page_of_a_user_shows_wishes_and_absences(board: Board) -> None:
    mia, organizer = await board.student("Mia"), board.organizer
    past = {**times_in(-3), "allowPast": True}
    over = await organizer.add_slot(title="First aid", **past)
    missed = await organizer.book_slot(over, userId=await mia.fetch_user_id())
    await organizer.execute(NO_SHOW, id=missed["booking"]["id"])
    week = await create_campaign(organizer, name="Project week", opensAt=hours_from_now(-1))
    times = {**times_in(30), "campaignId": week}
    kites, boats = [await organizer.add_slot(title=each, **times) for each in ("Kites", "Boats")]
    draw = {"campaignId": week, "wishesUntil": hours_from_now(1)}
    await organizer.execute(CONFIGURE, input=draw)
    await mia.execute(SET_WISHES, id=week, slots=[boats, kites])
    page = await user_page(board, mia)
    await expect(page.locator('section[data-key="past"] li')).to_contain_text("Absent")
    wishes = page.locator('section[data-key="wishes"] ol > li')
    assert await wishes.all_inner_texts() == ["1. Boats", "2. Kites"]


async def test_a_telephone_number_is_entered_in_the_account_and_changed_by_an_organizer(
    board: Board,
) -> None:
    mia = await board.student("Mia")
    own = await board.open(await board.context(mia), "#/account")
    number = own.get_by_label("Telephone number (optional)")
    await number.fill("call me")
    await own.get_by_role("button", name="Save the number").click()
    await shown(own, "3 digits or more").wait_for()
    assert await number.input_value() == "call me"
    await number.fill("030 1234")
    await own.get_by_role("button", name="Save the number").click()
    await shown(own, "Saved.").wait_for()
    await own.reload()
    await expect(number).to_have_value("030 1234")
    page = await user_page(board, mia)
    await page.get_by_role("button", name="It is this person").click()
    field = page.get_by_label("Telephone")
    await expect(field).to_have_value("030 1234")
    await field.fill("")
    await page.get_by_role("button", name="Save", exact=True).click()
    await shown(page, "Saved.").wait_for()
    assert await mia.execute("{ me { phone } }") == {"phone": None}


async def test_an_organizer_downloads_the_courses_of_each_user(board: Board) -> None:
    mia, chess = await board.student("Mia"), await board.course()
    await mia.book_slot(chess.slot_id)
    page = await board.open(await board.context(await board.admin()), f"#/plan/{chess.campaign_id}")
    for button, name in (
        ("Each pupil's courses (Excel)", "users-"),
        ("By class (Excel)", "users-"),
        ("By room and teacher (Excel)", "timetables-"),
        ("By room and teacher (PDF)", "timetables-"),
    ):
        async with page.expect_download() as download:
            await page.get_by_role("button", name=button).click()
        assert name in (await download.value).suggested_filename
