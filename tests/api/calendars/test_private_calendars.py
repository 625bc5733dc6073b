"""A user's private calendar lists their own bookings; its path works without signing in."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tests.support.apps.deployment import slot_document
from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient, expire_holds
from tests.support.clients.calendars import (
    CREATE_CALENDAR,
    MY_CALENDAR,
    REVOKE_CALENDAR,
    CalendarUsers,
    anonymous_at_other_process,
    create_calendar,
    event_facts,
    events_by_uid,
    get_path,
    read_calendar,
)
from tests.support.clients.client import times_in

BAN = "mutation($user: ID!) { banUser(userId: $user) { __typename } }"
CREATE_SLOT = "mutation($input: CreateSlotInput!) { createSlot(input: $input) { ...on Slot {id} } }"
TIMETABLE = {
    "first": "2035-03-18",
    "last": "2035-04-02",
    "weekly": [{"weekday": "MONDAY", "startTime": "09:00", "endTime": "10:30"}],
}


async def test_a_calendar_lists_the_bookings_of_its_user_and_nothing_of_others(
    two_apps: Pair, users: CalendarUsers
) -> None:
    ada, ben, organizer = users
    title = "Yoga, with mats; \U0001f9d8 \\ " + "x" * 150
    slot_id = await organizer.add_slot(title=title, location="Hall; left, 2", capacity=2)
    slot_of_ben = await organizer.add_slot()
    booking = (await ada.book_slot(slot_id))["booking"]
    await ben.book_slot(slot_id)
    await ben.book_slot(slot_of_ben)
    path = await create_calendar(ada)
    document = slot_document(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id)
    anonymous = BookingClient(ada.http, ada.url)
    for reader in (anonymous, anonymous_at_other_process(ada, two_apps)):
        (event,) = (await events_by_uid(reader, path)).values()
        assert event_facts(event) == (title, "CONFIRMED", 0)
        assert event["LOCATION"] == "Hall; left, 2"
        assert event["DTSTART"].dt == document["start"].replace(microsecond=0, tzinfo=UTC)
        assert booking["id"][-24:] in event["UID"]
    body = (await get_path(ada, path)).text
    user_ids = [(await user.fetch_user_id())[-24:] for user in (ada, ben)]
    for private in ("Somebody", "slotlock.test", *user_ids):
        assert private not in body


async def test_a_course_has_its_meetings_at_the_same_local_time(users: CalendarUsers) -> None:
    ada, _, organizer = users
    course = {"title": "Judo", "timeZone": "Europe/Berlin", "timetable": TIMETABLE}
    slot_id = (await organizer.execute(CREATE_SLOT, input=course))["id"]
    await ada.book_slot(slot_id)
    path = await create_calendar(ada)
    calendar = await read_calendar(ada, path)
    assert [zone["TZID"] for zone in calendar.timezones] == ["Europe/Berlin"]
    [event] = calendar.events
    assert event["DTSTART"].dt == datetime(2035, 3, 19, 9, tzinfo=ZoneInfo("Europe/Berlin"))
    assert event["DTSTART"].params["TZID"] == "Europe/Berlin"
    # Summer time starts meanwhile.
    assert event["RRULE"].to_ical() == b"FREQ=WEEKLY;COUNT=3;INTERVAL=1;BYDAY=MO"
    weekly = {"weekly": [{"weekday": "TUESDAY", "startTime": "09:00", "endTime": "10:30"}]}
    await organizer.update_slot(slot_id, timetable={**TIMETABLE, **weekly})
    [edited] = (await read_calendar(ada, path)).events
    assert edited["UID"] == event["UID"]
    assert edited["RRULE"]["BYDAY"] == ["TU"]
    assert edited["SEQUENCE"] > event["SEQUENCE"]
    assert edited["LAST-MODIFIED"].dt >= event["LAST-MODIFIED"].dt


async def test_an_edit_increments_the_sequence_and_cancelling_the_slot_cancels_the_event(
    users: CalendarUsers,
) -> None:
    ada, ben, organizer = users
    slot_id = await organizer.add_slot(capacity=2)
    await ada.book_slot(slot_id)
    path = await create_calendar(ada)
    (uid,) = await events_by_uid(ada, path)
    assert event_facts((await events_by_uid(ada, path))[uid]) == ("A slot", "CONFIRMED", 0)
    await ben.book_slot(slot_id)
    assert event_facts((await events_by_uid(ada, path))[uid]) == ("A slot", "CONFIRMED", 0)
    await organizer.update_slot(slot_id, title="Judo", **times_in(2))
    edited = (await events_by_uid(ada, path))[uid]
    assert event_facts(edited) == ("Judo", "CONFIRMED", 1)
    await organizer.cancel_slot(slot_id)
    cancelled = (await events_by_uid(ada, path))[uid]
    assert cancelled["STATUS"] == "CANCELLED"
    assert cancelled["SEQUENCE"] > 1
    assert cancelled["DTSTART"].dt == edited["DTSTART"].dt


async def test_holds_are_tentative_and_moved_cancelled_or_expired_bookings_are_cancelled(
    two_apps: Pair, users: CalendarUsers
) -> None:
    ada, _, organizer = users
    first, second, third = [await organizer.add_slot(title=title) for title in "abc"]
    path = await create_calendar(ada)

    async def statuses() -> dict[str, str]:
        events = (await events_by_uid(ada, path)).values()
        return {event["SUMMARY"]: event["STATUS"] for event in events}

    hold = await ada.hold(first)
    assert await statuses() == {"a": "TENTATIVE"}
    await ada.confirm(hold["id"])
    assert await statuses() == {"a": "CONFIRMED"}
    moved = (await ada.move(hold["id"], second))["booking"]
    assert await statuses() == {"CANCELLED: a": "CANCELLED", "b": "CONFIRMED"}
    await ada.cancel_booking(moved["id"])
    await ada.hold(third)
    expire_holds(two_apps[0].environment["SLOTLOCK_MONGO_URL"], third, expired_for_s=60)
    assert await statuses() == {f"CANCELLED: {title}": "CANCELLED" for title in "abc"}


async def test_the_title_of_a_cancelled_event_says_so_for_programs_that_ignore_the_status(
    users: CalendarUsers,
) -> None:
    ada, _, organizer = users
    slot_id = await organizer.add_slot(title="Yoga")
    await ada.book_slot(slot_id)
    path = await create_calendar(ada)
    (event,) = (await events_by_uid(ada, path)).values()
    assert event["SUMMARY"] == "Yoga"
    await organizer.cancel_slot(slot_id)
    (event,) = (await events_by_uid(ada, path)).values()
    assert event["SUMMARY"] == "CANCELLED: Yoga"


async def test_a_new_feed_ends_the_previous_one_and_revoking_ends_it_in_every_process(
    two_apps: Pair, users: CalendarUsers
) -> None:
    ada, ben, _ = users
    elsewhere = anonymous_at_other_process(ada, two_apps)
    assert await ada.execute(MY_CALENDAR) is None
    first_path, second_path = await create_calendar(ada), await create_calendar(ada)
    path_of_ben = await create_calendar(ben)
    assert (await get_path(elsewhere, first_path)).status_code == 404
    await read_calendar(elsewhere, second_path)
    feed = await ada.execute(MY_CALENDAR)
    assert feed["url"] is None
    assert datetime.fromisoformat(feed["createdAt"]) <= datetime.now(UTC)
    assert [await ada.execute(REVOKE_CALENDAR), await ada.execute(REVOKE_CALENDAR)] == [True, False]
    statuses = [(await get_path(each, second_path)).status_code for each in (ada, elsewhere)]
    assert statuses == [404, 404]
    assert await ada.execute(MY_CALENDAR) is None
    await read_calendar(elsewhere, path_of_ben)
    for query in (CREATE_CALENDAR, REVOKE_CALENDAR, MY_CALENDAR):
        assert await elsewhere.error_code(query) == "UNAUTHENTICATED"


async def test_the_path_of_a_calendar_is_not_logged(two_apps: Pair, users: CalendarUsers) -> None:
    path = await create_calendar(users.ada)
    await read_calendar(users.ada, path)
    token = path.removeprefix("/calendars/private/").removesuffix(".ics")
    assert len(token) == 43
    assert all(token not in app.log for app in two_apps)


async def test_a_banned_user_has_no_calendar(users: CalendarUsers) -> None:
    ada, organizer = users.ada, users.organizer
    slot_id = await organizer.add_slot()
    await ada.book_slot(slot_id)
    address = "query($id: ID!) { slot(id: $id) { myBooking { calendarUrl } } }"
    booking = (await ada.execute(address, id=slot_id))["myBooking"]
    paths = [await create_calendar(ada), booking["calendarUrl"]]
    anonymous = BookingClient(ada.http, ada.url)
    assert [(await get_path(anonymous, path)).status_code for path in paths] == [200, 200]
    await organizer.execute(BAN, user=await ada.fetch_user_id())
    assert [(await get_path(anonymous, path)).status_code for path in paths] == [404, 404]


async def test_an_unchanged_calendar_gets_304(two_apps: Pair, users: CalendarUsers) -> None:
    ada, ben, organizer = users
    slot_id = await organizer.add_slot(capacity=2)
    await ada.book_slot(slot_id)
    path = await create_calendar(ada)
    first = await get_path(ada, path)
    etag = first.headers["etag"]
    assert first.headers["cache-control"] == "private, max-age=300"
    await ben.book_slot(slot_id)  # does not change Ada's calendar
    for client in (ada, anonymous_at_other_process(ada, two_apps)):
        for known_tags in (etag, f"W/{etag}", f'"x", {etag}', "*"):
            response = await get_path(client, path, **{"If-None-Match": known_tags})
            assert (response.status_code, response.content) == (304, b"")
            assert response.headers["etag"] == etag
    head = await ada.http.head(ada.url + path)
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", etag)
    assert head.headers["content-length"] == str(len(first.content))
    await organizer.update_slot(slot_id, title="Judo")
    changed = await get_path(ada, path, **{"If-None-Match": etag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != etag


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_a_calendar_can_only_be_read(users: CalendarUsers, method: str) -> None:
    url = users.ada.url + await create_calendar(users.ada)
    response = await users.ada.http.request(method, url)
    assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")


async def test_one_booking_is_a_calendar_whose_address_only_its_user_sees(
    two_apps: Pair, users: CalendarUsers
) -> None:
    ada, ben, organizer = users
    slot_id = await organizer.add_slot(title="Yoga", capacity=3)
    booking = (await ada.book_slot(slot_id))["booking"]
    await ben.book_slot(slot_id)
    address = "query($id: ID!) { node(id: $id) { ... on Booking { calendarUrl checkInCode } } }"
    shown = await ada.execute(address, id=booking["id"])
    assert (await organizer.execute(address, id=booking["id"]))["calendarUrl"] is None
    path, phone = shown["calendarUrl"], anonymous_at_other_process(ada, two_apps)
    (event,) = (await events_by_uid(phone, path)).values()
    assert event_facts(event) == ("Yoga", "CONFIRMED", 0)
    assert booking["id"][-24:] in event["UID"]
    await ada.cancel_booking(booking["id"])
    (event,) = (await events_by_uid(phone, path)).values()
    assert event_facts(event) == ("CANCELLED: Yoga", "CANCELLED", 1)
    for code in (shown["checkInCode"], "A" * 56, "%F0%9F%A7%98"):
        response = await get_path(phone, f"/calendars/private/bookings/{code}.ics")
        assert response.status_code == 404
