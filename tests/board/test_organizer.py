"""An organizer plans campaigns and courses with the board, in a real browser."""

import json
import re
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from bson import ObjectId
from playwright.async_api import Locator, Page, Route, expect

from tests.board.test_accessibility import CONFIGURE, WIDTHS, violations
from tests.support.board.pages import Board, Student, asks_for, serve_sources, shown
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json, hours_from_now, times_in
from tests.support.clients.series import create_series
from tests.support.stores.empty_database import stored_database

pytestmark = pytest.mark.asyncio(loop_scope="module")

LOCAL_TIMES = "/board/sources/views/organizer/forms/localtime.js"
# Clocks go forward on 30 March 2031 at 02:00, and back on 26 October at 03:00.
BERLIN_TIMES = {
    "2031-03-30T01:59": ["2031-03-30T00:59:00.000Z"],
    "2031-03-30T02:30": [],
    "2031-03-30T03:00": ["2031-03-30T01:00:00.000Z"],
    "2031-10-26T02:30": ["2031-10-26T00:30:00.000Z", "2031-10-26T01:30:00.000Z"],
    "2031-10-26T03:00": ["2031-10-26T02:00:00.000Z"],
    "": [],
}
SLOTS = """query($id: ID!, $status: SlotStatus! = PUBLISHED) {
  slots(filter: {campaignId: $id, status: $status, includePast: true}, first: 100) {
    nodes { id title startTime endTime timeZone capacity }
  }
}"""
PLACE_OF_SLOT = "query($id: ID!) { slot(id: $id) { startTime location capacity } }"
CREATE_ROOM = """mutation($name: String!) { createResource(input: {name: $name, kind: ROOM}) {
  ... on Resource { id } } }"""
SET_GROUPS = "mutation($input: SetGroupsInput!) { setGroups(input: $input) { __typename } }"
COURSE_FIELDS: dict[str, str | bool] = {
    "title": "Chess club",
    "number": "R-2",
    "description": "Bring a *board*.",
    "timeZone": "Europe/Berlin",
    "location": "Courtyard",
    "meetingUrl": "https://meet.example/chess",
    "capacity": "9",
    "onlyForGroups": "7b, 7a;8*",
    "kind": "OTHER",
    "holdMinutes": "7",
    "holdCooldownMinutes": "4",
    "reminderMinutes": "2",
    "cancelCutoffMinutes": "1",
    "waitlistCapacity": "20",
    "waitlistOfferMinutes": "3",
    "choiceGroup": "Strategy",
    "groupLimitsEach": "5",
    "isQueueOnly": True,
    "isDraft": False,
}
# What the API gets of it: in minutes.
SENT_COURSE = {
    "title": "Chess club",
    "number": "R-2",
    "description": "Bring a *board*.",
    "timeZone": "Europe/Berlin",
    "location": "Courtyard",
    "meetingUrl": "https://meet.example/chess",
    "capacity": 9,
    "onlyForGroups": ["7b", "7a", "8*"],
    "kind": "OTHER",
    "holdMinutes": 7,
    "holdCooldownMinutes": 4,
    "reminderMinutes": 120,
    "cancelCutoffMinutes": 1440,
    "waitlistCapacity": 20,
    "waitlistOfferMinutes": 180,
    "admission": "QUEUE_ONLY",
}
# What is entered of a course that exists, and what the API gets of that.
CHANGED_COURSE: dict[str, tuple[str | bool, object]] = {
    "title": ("Go", "Go"),
    "number": ("", None),
    "description": ("", None),
    "location": ("", None),
    "meetingUrl": ("", None),
    "capacity": ("8", 8),
    "onlyForGroups": ("", []),
    "kind": ("COURSE", "COURSE"),
    "holdMinutes": ("6", 6),
    "holdCooldownMinutes": ("0", 0),
    "reminderMinutes": ("", None),
    "cancelCutoffMinutes": ("0", 0),
    "waitlistCapacity": ("0", 0),
    "waitlistOfferMinutes": ("", None),
    "endTime": ("2031-03-04T16:00", "2031-03-04T15:00:00.000Z"),
    "startTime": ("2031-03-04T15:00", "2031-03-04T14:00:00.000Z"),
}
CAMPAIGN_FIELDS: dict[str, str | bool] = {
    "leaderGroups": "7a, swim",
    "name": "Clubs",
    "description": "For all.",
    "mailNote": "Bring shoes.",
    "opensAt": "2031-02-03T14:00",
    "closesAt": "2031-02-10T14:00",
    "cancelUntil": "2031-02-09T14:00",
    "eligibleGroups": "7a, 7b\n swim ,",
    "maxBookings": "2",
    "groupLimitsEach": "5",
    "forbidOverlap": False,
    "requireVerifiedEmail": True,
    "reminderMinutes": "24",
    "openingMailHours": "3",
    "isQueueOnly": True,
    "noShowCount": "2",
    "noShowDays": "14",
}
SENT_CAMPAIGN = {
    "name": "Clubs",
    "description": "For all.",
    "mailNote": "Bring shoes.",
    "opensAt": "2031-02-03T13:00:00.000Z",
    "closesAt": "2031-02-10T13:00:00.000Z",
    "cancelUntil": "2031-02-09T13:00:00.000Z",
    "eligibleGroups": [["7a", "7b"], ["swim"]],
    "maxBookings": 2,
    "groupLimits": [{"group": "*", "limit": 5}, {"group": "7*", "limit": 3}],
    "forbidOverlap": False,
    "requireVerifiedEmail": True,
    "reminderMinutes": 1440,
    "openingMailHours": 3,
    "admission": "QUEUE_ONLY",
    "noShowLimit": {"count": 2, "days": 14},
    "leaderGroups": ["7a", "swim"],
    "allowPast": False,
}
ROSTER = "query($id: ID!) { slotRoster(slotId: $id) { nodes { status user { name } } } }"


async def organizer_of(board: Board) -> Student:
    """Register a user who is an organizer from then on."""
    organizer = await board.student("Ms Keller")
    user_id = ObjectId((await organizer.execute("{ me { id } }"))["id"][-24:])
    role = {"$set": {"role": "organizer"}}
    database = stored_database(board.app.environment["SLOTLOCK_MONGO_URL"])
    assert database["users"].update_one({"_id": user_id}, role).matched_count == 1
    assert database["sessions"].update_many({"user": user_id}, role).matched_count == 1
    return organizer


async def visit(board: Board, address: str, zone: str = "Europe/Berlin") -> Page:
    """Open a page of an organizer, whose device is in a zone."""
    context = await board.context(await organizer_of(board), timezone_id=zone)
    return await board.open(context, address)


async def visit_with_mail(board: Board, address: str) -> Page:
    """Open a page as of a site that sends mail, whose forms have all fields."""
    context = await board.context(await organizer_of(board), timezone_id="Europe/Berlin")

    async def handle(route: Route) -> None:
        response = await route.fetch()
        text = (await response.text()).replace("sendsMail&quot;: false", "sendsMail&quot;: true")
        await route.fulfill(response=response, body=text)

    await context.route(re.compile(r"/board(#.*)?$"), handle)
    return await board.open(context, address)


async def choose_course(page: Page, title: str, **values: str) -> None:
    """Open the form of a new course, and fill in these fields."""
    await page.get_by_role("link", name="Add a course").last.click()
    await page.fill("[name=title]", title)
    for name, value in values.items():
        await page.fill(f"[name={name}]", value)


async def enter(page: Page, values: dict[str, str | bool]) -> None:
    """Enter values by the names of their fields: texts, choices, and whether a box is checked."""
    for name, value in values.items():
        field = page.locator(f"[name={name}]")
        if isinstance(value, bool):
            await field.set_checked(value)
        elif await field.evaluate("each => each.tagName") == "SELECT":
            await field.select_option(value)
        else:
            await field.fill(value)


async def sent_input(page: Page, operation: str, button: str) -> Json:
    """Send the form with a button; return the input of its mutation, without its key."""
    async with page.expect_request(lambda request: asks_for(request, operation)) as request:
        await page.get_by_role("button", name=button, exact=True).last.click()
    sent: Json = json.loads((await request.value).post_data or "")["variables"]["input"]
    sent.pop("idempotencyKey", None)
    return sent


def shown_id(page: Page) -> str:
    """Return the id of the campaign or the course that the page shows, perhaps in a form."""
    return page.url.partition("#/")[2].split("/")[1]


def action(page: Page, label: str) -> Locator:
    """Return the button of an action for the student."""
    return page.get_by_role("button", name=f"{label}: Zuzana Wren", exact=True).first


async def test_a_campaign_is_planned_and_published_by_clicking(board: Board) -> None:
    page = await visit(board, "#/organizer", "Asia/Tokyo")
    await page.get_by_role("link", name="New booking period").click()
    await page.fill("[name=name]", "Clubs")
    await page.fill("[name=opensAt]", "2031-02-03T14:00")
    await page.fill("[name=closesAt]", "2031-02-01T14:00")
    await page.get_by_role("button", name="Create the booking period").click()
    # The error stands at its field, which has the focus, and what was typed stays.
    await expect(page.locator("[aria-invalid]")).to_be_focused()
    await expect(page.locator("[name=closesAt] ~ .error")).to_contain_text("close after it opens")
    await expect(page.locator("[name=name]")).to_have_value("Clubs")
    await page.fill("[name=closesAt]", "2031-02-10T14:00")
    await page.get_by_role("button", name="Create the booking period").click()
    await shown(page, "There are no courses yet.").wait_for()
    campaign_id = page.url.rpartition("/")[2]
    await choose_course(page, "Chess", startTime="2031-03-03T15:00", endTime="2031-03-03T16:30")
    await page.get_by_role("button", name="Create the course").click()
    await shown(page, "1 course is a draft. “Publish” publishes it, too.").wait_for()
    await page.get_by_role("button", name="Publish", exact=True).click()
    await page.get_by_role("link", name="Live view").wait_for()
    await page.get_by_role("cell", name="Ready").wait_for()
    [slot] = (await board.organizer.execute(SLOTS, id=campaign_id))["nodes"]
    assert slot["timeZone"] == "Asia/Tokyo"
    assert datetime.fromisoformat(slot["startTime"]) == datetime.fromisoformat(
        "2031-03-03T15:00+09:00"
    )


async def test_publish_does_nothing_while_a_room_is_taken_and_goes_on_after_a_lost_connection(
    board: Board,
) -> None:
    campaign_id = await create_campaign(board.organizer, published=False)
    room = {"resource": f"Art room {ObjectId()}", "draft": True, "campaignId": campaign_id}
    art, chess = [await board.organizer.add_slot(title=each, **room) for each in ("Art", "Chess")]
    dance = await board.organizer.add_slot(**{**room, **times_in(50)}, title="Dance")
    page = await visit(board, f"#/plan/{campaign_id}")
    publish = page.get_by_role("button", name="Publish", exact=True)

    async def published() -> set[str]:
        nodes = (await board.organizer.execute(SLOTS, id=campaign_id))["nodes"]
        return {each["id"] for each in nodes}

    await publish.click()
    await shown(page, "Nothing was published yet: 2 drafts need rooms that are taken.").wait_for()
    await page.get_by_role("link", name="Change Chess").wait_for()
    assert await published() == set()
    assert (await board.organizer.update_slot(chess, resource=None))["__typename"] == "Slot"

    async def lose(route: Route) -> None:
        if asks_for(route.request, "publishSlot") and dance in (route.request.post_data or ""):
            await route.abort()
        else:
            await route.fallback()

    await page.route("**/graphql", lose)
    await publish.click()
    await shown(page, "Dance: No connection. 1 of 3 is left.").wait_for()
    assert await published() == {art, chess}
    await page.unroute("**/graphql", lose)
    await publish.click()
    await page.get_by_role("link", name="Live view").wait_for()
    assert await published() == {art, chess, dance}


async def test_courses_that_can_be_deleted_are_and_the_page_says_why_others_are_not(
    board: Board,
) -> None:
    course, student = await board.course(), await board.student()
    await student.book_slot(course.slot_id)
    for title in ("Art", "Dance"):
        await board.organizer.add_slot(title=title, campaignId=course.campaign_id, **times_in(50))
    page = await visit(board, f"#/plan/{course.campaign_id}")
    for title in ("Art", "Chess", "Dance"):
        await page.get_by_label(f"Select {title}").check()
    for _ in range(2):  # the second button confirms
        await page.get_by_role("button", name="Delete", exact=True).click()
    await shown(page, "Chess: ").and_(shown(page, "1 of 3 is left")).wait_for()
    await expect(page.get_by_label(re.compile("Select (Art|Chess|Dance)"))).to_have_count(1)


async def test_classes_are_chosen_and_one_that_nobody_has_is_red_where_it_is_typed(
    board: Board,
) -> None:
    course, mia = await board.course(), await board.student("Mia")
    await board.vouch_for(mia)
    groups = ["Class 9b", "Class 9c"]
    user_id = await mia.fetch_user_id()
    await board.organizer.execute(SET_GROUPS, input={"userId": user_id, "groups": groups})
    page = await visit(board, f"#/plan/{course.campaign_id}")
    await page.get_by_role("link", name="Settings").click()
    field = page.locator("[name=eligibleGroups]")
    await field.fill("class 9B, Class 7")
    await page.locator("[name=maxBookings]").focus()
    await shown(page, "Class 7: nobody.").wait_for()
    await page.get_by_role("button", name="Use Class 9b with 1 person").click()
    await expect(field).to_have_value("Class 9b, Class 7")
    await expect(shown(page, "class 9B: nobody.")).to_have_count(0)
    await page.get_by_role("checkbox", name="Class 9b · 1").set_checked(checked=False)
    await page.get_by_role("checkbox", name="Class 9c · 1").set_checked(checked=True)
    await expect(field).to_have_value("Class 7, Class 9c")
    await page.locator("summary", has_text="More settings").click()
    await page.get_by_role("button", name="Add a group").click()
    await page.get_by_label("Group", exact=True).fill("Class 8*")
    await page.get_by_label("At most", exact=True).fill("2")
    await shown(page, "Class 8*: nobody.").wait_for()
    await page.get_by_role("button", name="Save", exact=True).click()
    await shown(page, "Class 7: nobody has this group.").wait_for()
    query = "query($id: ID!) { campaign(id: $id) { eligibleGroups groupLimits { group } } }"
    found = await board.organizer.execute(query, id=course.campaign_id)
    assert found == {
        "eligibleGroups": [["Class 7", "Class 9c"]],
        "groupLimits": [{"group": "Class 8*"}],
    }


async def test_a_course_is_for_classes_that_are_chosen_with_their_counts(board: Board) -> None:
    course, mia = await board.course(), await board.student("Mia")
    await board.vouch_for(mia)
    groups = {"userId": await mia.fetch_user_id(), "groups": ["Class 9d"]}
    await board.organizer.execute(SET_GROUPS, input=groups)
    page = await visit(board, f"#/course/{course.slot_id}/edit")
    await page.get_by_label("Class 9d · 1").check()
    await page.locator("[name=onlyForGroups]").fill("Class 9d, Class 10")
    await page.locator("[name=capacity]").focus()
    await shown(page, "Class 10: nobody.").wait_for()
    await page.get_by_role("button", name="Save", exact=True).click()
    await shown(page, "Only for Class 10, Class 9d").wait_for()
    await page.goto(f"/board#/plan/{course.campaign_id}")
    await shown(page, "Only for Class 10, Class 9d").wait_for()
    await shown(page, "Class 10: nobody has this group.").wait_for()


async def test_a_form_sends_each_field_of_a_course_and_then_only_those_that_change(
    board: Board,
) -> None:
    course = await board.course()
    await board.organizer.import_resources("Music 7")
    page = await visit_with_mail(board, f"#/plan/{course.campaign_id}")
    await choose_course(page, "Chess", startTime="2031-03-03T15:00", endTime="2031-03-03T16:30")
    await page.locator("summary").click()
    await enter(page, COURSE_FIELDS)
    await page.fill("[name=resourcesText]", "Music 7")
    await page.get_by_role("button", name="Add Music 7").click()
    await page.get_by_role("button", name="Add a group").click()
    await page.get_by_label("Group", exact=True).fill("7*")
    await page.get_by_label("At most", exact=True).fill("3")
    created = await sent_input(page, "createSlot", "Create the course")
    [resource] = created.pop("resourceIds")
    limits = [{"group": "*", "limit": 5}, {"group": "7*", "limit": 3}]
    assert created == {
        **SENT_COURSE,
        "campaignId": course.campaign_id,
        "startTime": "2031-03-03T14:00:00.000Z",
        "endTime": "2031-03-03T15:30:00.000Z",
        "groupLimits": limits,
        "choiceGroup": "Strategy",
        "draft": False,
        "allowPast": False,
    }
    await page.get_by_role("link", name="Chess club", exact=True).click()
    await page.get_by_role("link", name="Change", exact=True).click()
    sent = await sent_input(page, "updateSlot", "Save")
    unchanged = {"slotId": shown_id(page), "scope": "THIS", "allowPast": False}
    assert sent == unchanged
    await expect(page.get_by_role("form")).to_have_count(0)
    await page.get_by_role("link", name="Change", exact=True).click()
    await enter(page, {name: value for name, (value, _) in CHANGED_COURSE.items()})
    await page.get_by_role("button", name="Music 7: Remove").click()
    await page.get_by_role("button", name="Remove Other limits for some groups 1").click()
    assert await sent_input(page, "updateSlot", "Save") == {
        **unchanged,
        **{name: sent for name, (_, sent) in CHANGED_COURSE.items()},
        "resourceIds": [],
        "groupLimits": limits[:1],
        "startTime": "2031-03-04T14:00:00.000Z",
    }
    assert resource


async def test_a_form_sends_each_field_of_a_campaign(board: Board) -> None:
    page = await visit_with_mail(board, "#/organizer")
    await page.get_by_role("link", name="New booking period").click()
    await page.locator("summary").click()
    await enter(page, CAMPAIGN_FIELDS)
    await page.get_by_role("button", name="Add a group").click()
    await page.get_by_label("Group", exact=True).fill("7*")
    await page.get_by_label("At most", exact=True).fill("3")
    created = await sent_input(page, "createCampaign", "Create the booking period")
    assert created == SENT_CAMPAIGN
    await page.get_by_role("link", name="Settings").click()
    updated = await sent_input(page, "updateCampaign", "Save")
    assert updated == {**created, "campaignId": shown_id(page)}
    await expect(page.get_by_role("form")).to_have_count(0)
    await page.get_by_role("link", name="Settings").click()
    await enter(page, {"noShowCount": "", "noShowDays": "", "cancelUntil": "", "maxBookings": ""})
    emptied = {"noShowLimit": None, "cancelUntil": None, "maxBookings": None}
    assert await sent_input(page, "updateCampaign", "Save") == {**updated, **emptied}


async def test_the_settings_of_a_campaign_by_draw_leave_its_draw(board: Board) -> None:
    course = await board.course()
    draw = {"campaignId": course.campaign_id, "wishesUntil": hours_from_now(1)}
    await board.organizer.execute(CONFIGURE, input=draw)
    page = await visit(board, f"#/plan/{course.campaign_id}/settings")
    assert "admission" not in await sent_input(page, "updateCampaign", "Save")
    await page.get_by_role("link", name="Settings").wait_for()


async def test_a_week_of_a_course_is_one_row_and_the_next_course_begins_with_it(
    board: Board,
) -> None:
    course = await board.course()
    await board.organizer.import_resources("Workshop 3")
    page = await visit(board, f"#/plan/{course.campaign_id}")
    await choose_course(page, "Robots", teachersText="Ms Frank", resourcesText="workshop 3")
    await enter(page, {"form": "course", "first": "2031-03-03", "last": "2031-03-07"})
    week = page.get_by_role("group", name="Every week")
    await week.get_by_label("Starts").fill("09:00")
    await expect(week.get_by_label("Ends")).to_have_value("10:30")  # it takes as long as before
    await week.get_by_role("button", name="Add a day of the week").click()
    # A new row has the times of the one above.
    await expect(week.get_by_label("Day").last).to_have_value("TUESDAY")
    await expect(week.get_by_label("Starts").last).to_have_value("09:00")
    await week.get_by_role("button", name="Remove Every week 2").click()
    await expect(week.get_by_label("Day")).to_have_count(1)
    await week.get_by_label("Day").select_option(label="Monday to Friday")
    first = await sent_input(page, "createSlot", "Create, then another one")
    days = [each["weekday"] for each in first["timetable"]["weekly"]]
    assert days == ["MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY"]
    await shown(page, "Robots is created.").wait_for()
    await expect(page.locator("[name=title]")).to_be_focused()
    await page.fill("[name=title]", "Kites")
    await page.fill("[name=resourcesText]", "Work shop 3")
    await page.get_by_role("button", name="Create the course").click()
    await shown(page, "There is a similar name.").wait_for()
    await page.fill("[name=resourcesText]", "Hall 77")  # created with the course
    second = await sent_input(page, "createSlot", "Create the course")
    assert len({*first.pop("resourceIds"), *second.pop("resourceIds")}) == 3
    assert second == {**first, "title": "Kites"}
    await page.get_by_role("link", name="Kites").wait_for()
    await page.get_by_role("link", name="Robots").click()
    await shown(page, "Workshop 3 · Ms Frank").wait_for()


async def test_a_form_has_what_was_typed_again_and_asks_before_it_is_discarded(
    board: Board,
) -> None:
    course = await board.course()
    page = await visit(board, f"#/plan/{course.campaign_id}")
    await choose_course(page, "Half a course", capacity="7")
    await page.get_by_role("button", name="Close").click()
    await page.get_by_role("button", name="Back").click()
    await page.get_by_role("link", name="Account").click()
    await page.get_by_role("heading", name="Account").wait_for()
    await page.go_back()
    await shown(page, "What you typed before is here again.").wait_for()
    await expect(page.locator("[name=title]")).to_have_value("Half a course")
    await page.reload()
    await expect(page.locator("[name=capacity]")).to_have_value("7")
    await page.get_by_role("button", name="Close").click()
    await page.get_by_role("button", name="Discard it").click()
    await page.get_by_role("link", name="Add a course").last.click()
    await expect(page.locator("[name=title]")).to_have_value("")
    await expect(page.locator("[name=capacity]")).to_have_value("12")
    await page.get_by_role("button", name="Close").click()  # nothing is typed, nothing is asked
    await expect(page.locator("[name=title]")).to_have_count(0)


async def test_a_form_that_is_opened_again_changes_only_what_was_typed_in_it(board: Board) -> None:
    course = await board.course()
    page = await visit(board, f"#/course/{course.slot_id}/edit")
    await page.fill("[name=title]", "Go")
    await page.goto(f"/board#/course/{course.slot_id}")
    await page.get_by_role("link", name="Change", exact=True).wait_for()
    await board.organizer.update_slot(course.slot_id, capacity=20)
    await page.get_by_role("link", name="Change", exact=True).click()
    await expect(page.locator("[name=capacity]")).to_have_value("20")
    sent = await sent_input(page, "updateSlot", "Save")
    assert sent == {
        "slotId": course.slot_id,
        "title": "Go",
        "scope": "THIS",
        "allowPast": False,
    }


async def test_a_duplicate_of_a_course_has_its_values_and_meetings(board: Board) -> None:
    times = {"startTime": "15:00", "endTime": "16:00"}
    week = [
        {"weekday": day, **times}
        for day in ["MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY"]
    ]
    saturday = {"startTime": "2031-03-15T09:00:00.000Z", "endTime": "2031-03-15T11:00:00.000Z"}
    timetable = {
        "first": "2031-03-03",
        "last": "2031-03-14",
        "weekly": week,
        "holidays": ["2031-03-12"],
        "holidayListId": None,
        "extra": [saturday],
    }
    course = await board.course(
        startTime=None,
        endTime=None,
        timeZone="Europe/Berlin",
        timetable=timetable,
        capacity=9,
        description="Bring a board.",
    )
    page = await visit(board, f"#/course/{course.slot_id}")
    await page.get_by_role("link", name="Duplicate").click()
    await page.fill("[name=title]", "Chess II")
    created = await sent_input(page, "createSlot", "Create the course")
    await page.get_by_role("link", name="Chess II").wait_for()
    facts = ("title", "capacity", "description", "location", "draft")
    assert [created[name] for name in facts] == ["Chess II", 9, "Bring a board.", "Room 1", True]
    assert created["timetable"] == timetable  # each day of the week once, and not each meeting
    await page.goto(f"/board#/course/{course.slot_id}/edit")
    await expect(page.locator("[name=title]")).to_have_value("Chess")
    rows = page.locator("fieldset.rows .row")
    await expect(rows).to_have_count(3)  # the days of the week, a holiday, a further meeting
    await expect(rows.first.locator("select")).to_have_value("workdays")
    await page.fill("[name=title]", "Go")
    assert "timetable" not in await sent_input(page, "updateSlot", "Save")
    await page.get_by_role("heading", name="Go").wait_for()
    await page.goto(f"/board#/course/{course.slot_id}/edit")
    await rows.first.get_by_label("Ends").fill("17:00")
    sent = await sent_input(page, "updateSlot", "Save")
    longer = [{**each, "endTime": "17:00"} for each in week]
    assert sent["timetable"] == {**timetable, "weekly": longer}


# A holiday more often than a meeting, and a Monday on which only one of two rows meets.
@pytest.mark.parametrize(
    ("days", "holidays", "extra", "count"),
    [(("MONDAY", "FRIDAY"), (10, 14, 17, 21, 28), (), 4), (("MONDAY",), (24, 31), (3, 17), 5)],
)
async def test_meetings_that_follow_no_week_are_rows_of_their_own(
    board: Board, days: Sequence[str], holidays: Sequence[int], extra: Sequence[int], count: int
) -> None:
    timetable = {
        "first": "2031-03-03",
        "last": "2031-03-31",
        "weekly": [{"weekday": each, "startTime": "15:00", "endTime": "16:00"} for each in days],
        "holidays": [f"2031-03-{day:02}" for day in holidays],
        "extra": [
            {"startTime": f"2031-03-{day:02}T17:00:00Z", "endTime": f"2031-03-{day:02}T18:00:00Z"}
            for day in extra
        ],
    }
    course = await board.course(startTime=None, endTime=None, timetable=timetable)
    page = await visit(board, f"#/course/{course.slot_id}/edit")
    await expect(page.locator("fieldset.rows .row")).to_have_count(count)
    await page.get_by_role("group", name="Meetings", exact=True).wait_for()


async def test_fewer_places_than_are_taken_are_refused_at_their_field(board: Board) -> None:
    course = await board.course()
    for _ in range(2):
        await (await board.student()).book_slot(course.slot_id)
    page = await visit(board, f"#/course/{course.slot_id}/edit")
    await page.fill("[name=capacity]", "1")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.locator("[name=capacity]")).to_be_focused()
    await expect(page.locator("[name=capacity] ~ .error")).to_have_text("2 are taken.")


async def test_an_error_of_a_field_that_is_seldom_used_opens_the_other_settings(
    board: Board,
) -> None:
    course = await board.course()
    page = await visit(board, f"#/plan/{course.campaign_id}")
    await choose_course(page, "Chess", startTime="2031-03-03T15:00", endTime="2031-03-03T16:30")
    await page.locator("summary").click()
    await page.fill("[name=timeZone]", "Mars/Base")
    await page.locator("summary").click()
    await page.get_by_role("button", name="Create the course").click()
    await expect(page.locator("[name=timeZone] ~ .error")).to_contain_text("no such time zone")
    await expect(page.locator("[name=timeZone]")).to_be_focused()


async def test_local_times_are_exact_on_days_of_clock_changes(board: Board) -> None:
    page = await visit(board, "#/organizer", "America/New_York")
    await serve_sources(page)
    for local, instants in BERLIN_TIMES.items():
        found = await page.evaluate(
            """async ([module, local]) => (await import(module)).instantsOf(local, "Europe/Berlin")
              .map((at) => new Date(at).toISOString())""",
            [LOCAL_TIMES, local],
        )
        assert found == instants, local


async def test_a_series_leaves_out_the_dates_on_which_the_room_is_taken(board: Board) -> None:
    course = await board.course(
        startTime="2031-03-10T15:00:00+01:00",
        endTime="2031-03-10T16:00:00+01:00",
        timeZone="Europe/Berlin",
        resource="Music 1",
    )
    page = await visit(board, f"#/plan/{course.campaign_id}")
    await choose_course(
        page,
        "Piano",
        startTime="2031-03-03T15:00",
        endTime="2031-03-03T15:45",
        resourcesText="Music 1",
    )
    await page.get_by_role("button", name="Add Music 1").click()
    await page.select_option("[name=form]", "series")
    await page.fill("[name=last]", "2031-03-31")
    await page.uncheck("[name=isDraft]")
    await page.get_by_role("button", name="Create the series").click()
    await page.get_by_role("button", name="Create the others, without this date").click()
    await shown(page, "Piano: 4 dates are created.").wait_for()
    slots = (await board.organizer.execute(SLOTS, id=course.campaign_id))["nodes"]
    starts = [slot["startTime"][:16] for slot in slots if slot["title"] == "Piano"]
    # The clocks change on the 30th: 15:00 stays 15:00.
    assert starts == [
        "2031-03-03T14:00",
        "2031-03-17T14:00",
        "2031-03-24T14:00",
        "2031-03-31T13:00",
    ]


async def test_the_dates_of_a_series_move_to_another_time_and_room_from_one_of_them_on(
    board: Board,
) -> None:
    created = await create_series(
        board.organizer, "FREQ=WEEKLY;COUNT=3", location="Room 1", capacity=12
    )
    first, second, third = [slot["id"] for slot in created["slots"]]
    await board.organizer.update_slot(third, capacity=7)
    page = await visit(board, f"#/course/{first}")
    await page.get_by_role("button", name="Reschedule: another time or room").click()
    await page.select_option("[name=from]", second)
    await page.fill("[name=startTime]", "2031-03-26T17:00")
    await page.fill("[name=endTime]", "2031-03-26T18:30")
    await page.fill("[name=location]", "Hall")
    await page.get_by_role("button", name="Reschedule", exact=True).click()
    await expect(page.locator("#status")).to_contain_text("The dates are rescheduled.")
    moved = []
    for slot_id in (first, second, third):
        slot = await board.organizer.execute(PLACE_OF_SLOT, id=slot_id)
        moved.append((slot["startTime"][:16], slot["location"], slot["capacity"]))
    # The clocks change on the 30th: 17:00 stays 17:00.
    assert moved == [
        ("2031-03-17T08:00", "Room 1", 12),
        ("2031-03-26T16:00", "Hall", 12),
        ("2031-04-02T15:00", "Hall", 7),
    ]


async def test_one_date_of_a_series_gets_another_room_and_the_others_stay(board: Board) -> None:
    created = await create_series(board.organizer, "FREQ=WEEKLY;COUNT=3", location="Room 1")
    ids = [slot["id"] for slot in created["slots"]]
    page = await visit(board, f"#/course/{ids[1]}")
    await page.get_by_role("link", name="Change", exact=True).click()
    await expect(page.locator("[name=scope]")).to_have_value("THIS")
    await page.fill("[name=location]", "Hall")
    await page.get_by_role("button", name="Save", exact=True).click()
    await shown(page, "Hall").first.wait_for()
    places = [(await board.organizer.execute(PLACE_OF_SLOT, id=id_))["location"] for id_ in ids]
    assert places == ["Room 1", "Hall", "Room 1"]


async def test_a_course_has_a_class_limit_and_a_deadline_in_days(board: Board) -> None:
    course = await board.course()
    page = await visit(board, f"#/course/{course.slot_id}/edit")
    await page.fill("[name=groupLimitsEach]", "5")
    await page.locator("summary").click()
    await page.fill("[name=cancelCutoffMinutes]", "3")
    await page.get_by_role("button", name="Save", exact=True).click()
    await shown(page, "In this course: at most 5 from each class or group").wait_for()
    facts = "query($id: ID!) { slot(id: $id) { cancelCutoffMinutes groupLimits { group limit } } }"
    found = await board.organizer.execute(facts, id=course.slot_id)
    limits = [{"group": "*", "limit": 5}]
    assert found == {"cancelCutoffMinutes": 4320, "groupLimits": limits}
    names = [f"{each} {ObjectId()}" for each in ("Art", "Gym")]
    ids = [(await board.organizer.execute(CREATE_ROOM, name=each))["id"] for each in names]
    for rooms in (ids[:1], ids, ids[1:]):
        await board.organizer.update_slot(course.slot_id, resourceIds=rooms)
    await page.locator("[data-key=history]").get_by_role("button", name="Show").click()
    await expect(page.locator(".log")).to_contain_text("0 minutes → 3 days")
    both = ", ".join(names)
    for edit in (f"{names[0]} → {both}", f"{both} → {names[1]}"):
        await expect(page.locator(".log")).to_contain_text(f"Teachers, rooms and devices: {edit}")
    await page.goto(f"/board#/plan/{course.campaign_id}")
    await shown(page, "at most 5 from each class or group").wait_for()


async def test_the_link_of_a_meeting_is_on_the_page_of_a_user_with_a_place_only(
    board: Board,
) -> None:
    course, student, other = await board.course(), await board.student(), await board.student()
    await student.book_slot(course.slot_id)
    page = await visit(board, f"#/course/{course.slot_id}/edit")
    await page.locator("summary").click()
    await page.get_by_label("Link to the meeting").fill("http://meet.example/room")
    save = page.get_by_role("button", name="Save", exact=True)
    await save.click()
    await shown(page, "The address must begin with https://.").wait_for()
    await page.get_by_label("Link to the meeting").fill("https://meet.example/room?pwd=1")
    await save.click()
    await expect(save).to_have_count(0)
    views = [
        await board.open(await board.context(user), f"#/slot/{course.slot_id}")
        for user in (student, other)
    ]
    room = "https://meet.example/room?pwd=1"
    await expect(views[0].get_by_role("link", name=room)).to_have_attribute("href", room)
    await shown(views[1], "Room 1").first.wait_for()
    await expect(views[1].get_by_role("link", name=room)).to_have_count(0)


async def test_the_meetings_of_a_course_move_from_one_of_them_on(board: Board) -> None:
    weekly = [
        {"weekday": day, "startTime": "15:00", "endTime": "16:00"} for day in ("MONDAY", "FRIDAY")
    ]
    timetable = {"first": "2031-03-03", "last": "2031-03-14", "weekly": weekly}
    slot = await board.organizer.add_slot(
        timetable=timetable, timeZone="Europe/Berlin", startTime=None, endTime=None
    )
    page = await visit(board, f"#/course/{slot}")
    await page.get_by_role("button", name="Reschedule: another time or room").click()
    await page.select_option("[name=from]", label="Monday, March 10, 2031, 15:00")
    await page.fill("[name=startTime]", "2031-03-11T17:00")
    await page.fill("[name=endTime]", "2031-03-11T18:00")
    await page.get_by_role("button", name="Reschedule", exact=True).click()
    await expect(page.locator("#status")).to_contain_text("The dates are rescheduled.")
    found = await board.organizer.execute(
        "query($id: ID!) { slot(id: $id) { meetings { startTime } } }", id=slot
    )
    starts = [each["startTime"][:16] for each in found["meetings"]]
    assert starts == [
        "2031-03-03T14:00",
        "2031-03-07T14:00",
        "2031-03-11T16:00",
        "2031-03-14T14:00",
    ]


async def test_an_organizer_books_moves_and_cancels_for_others(board: Board) -> None:
    await board.student("Zuzana Wren")
    course = await board.course()
    other = await board.organizer.add_slot(
        campaignId=course.campaign_id,
        title="Pottery",
        startTime="2031-05-05T15:00:00Z",
        endTime="2031-05-05T16:00:00Z",
    )
    page = await visit(board, f"#/course/{course.slot_id}")
    await page.get_by_role("button", name="Book for somebody").click()
    await page.get_by_label("Name or email address").fill("zuzana")
    await action(page, "Book").click()
    await action(page, "Move").click()
    await page.select_option("#move-to", other)
    await page.get_by_role("button", name="Move", exact=True).click()
    await shown(page, "Now in Pottery").wait_for()
    await expect(page.get_by_role("button", name="Undo")).to_be_focused()
    [booking] = (await board.organizer.execute(ROSTER, id=other))["nodes"]
    assert (booking["status"], booking["user"]["name"]) == ("CONFIRMED", "Zuzana Wren")
    await page.evaluate("id => { location.hash = `#/course/${id}`; }", other)
    await action(page, "Take away").click()
    await expect(page.get_by_role("button", name="Not now")).to_be_focused()
    await page.get_by_role("button", name="Take it away").click()
    await shown(page, "Place taken away").wait_for()
    assert (await board.organizer.execute(ROSTER, id=other))["nodes"] == []


@pytest.mark.parametrize("view", ["organizer", "plan", "course"])
async def test_axe_finds_nothing_while_a_form_is_open(board: Board, view: str) -> None:
    course = await board.course()
    opening = {
        "organizer": ("#/organizer", "New booking period"),
        "plan": (f"#/plan/{course.campaign_id}", "Add a course"),
        "course": (f"#/course/{course.slot_id}", "Change"),
    }
    address, button = opening[view]
    page = await visit(board, address)
    await page.wait_for_selector("main:not(:has(.bones))")
    await page.get_by_role("link", name=button, exact=True).last.click()
    await page.locator("summary").click()
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 800})
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert await violations(page) == [], (width, scheme)
        assert await page.evaluate("document.documentElement.scrollWidth") <= width


async def test_the_overview_has_the_times_of_the_campaigns_zone_and_rooms_in_order(
    board: Board,
) -> None:
    course = await board.course(
        startTime="2041-03-10T15:00:00+01:00",
        endTime="2041-03-10T16:00:00+01:00",
        timeZone="Europe/Berlin",
    )
    query = "query($id: ID!) { campaign(id: $id) { opensAt } }"
    found = await board.organizer.execute(query, id=course.campaign_id)
    opens_at = datetime.fromisoformat(found["opensAt"]).astimezone(ZoneInfo("Europe/Berlin"))
    await board.organizer.import_resources("Kunstraum", "Küche")
    page = await visit(board, "#/organizer", "Asia/Tokyo")
    entry = page.locator("li", has=page.locator(f"h2 a[href='#/plan/{course.campaign_id}']"))
    await expect(entry).to_contain_text("Europe/Berlin")
    await expect(entry).to_contain_text(f"{opens_at:%H:%M}")
    await page.get_by_role("link", name="Rooms and devices").click()
    names = page.locator("main li p")
    await names.filter(has_text="Küche").wait_for()
    shown_names = [text.split(" ")[0] for text in await names.all_inner_texts()]
    assert shown_names.index("Küche") < shown_names.index("Kunstraum")
