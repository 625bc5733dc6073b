"""Published calendars, and the instants and texts of their files."""

import secrets
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

import httpx
import pytest
from dateutil.tz import tzical
from icalendar import vText

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.reports.calendar_events import CalendarEvent, EventStatus
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.zone_transitions import clock_changes
from slotlock.infrastructure.ical import render_calendar
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import Pair, app_environment
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.calendars import (
    CalendarUsers,
    anonymous_at_other_process,
    create_calendar,
    events_by_uid,
    get_path,
    parse_calendar,
    read_calendar,
)
from tests.support.clients.campaigns import create_campaign, unpublish_campaign
from tests.support.clients.client import Json, times_in

PUBLISHED_PATH = "/calendars/published.ics"
CREATE_SLOT = "mutation($input: CreateSlotInput!) { createSlot(input: $input) { __typename } }"
MAX_EVENTS = 2_000
DAY = 24
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Sydney", "Pacific/Auckland",
         "Asia/Kolkata", "Europe/Dublin", "Australia/Lord_Howe", "America/Santiago",
         "Africa/Casablanca")  # fmt: skip
HOUR = timedelta(hours=1)


async def test_published_calendars_show_the_published_slots_of_every_viewer(
    two_apps: Pair, users: CalendarUsers
) -> None:
    ada, _, organizer = users
    suffix = secrets.token_hex(6)
    published = await create_campaign(organizer, name=f"Camp, {suffix}")
    unpublished = await create_campaign(organizer, published=False)
    slots: dict[str, Json] = {
        "draft": {"draft": True},
        "open": {},
        "in campaign": {"campaignId": published, "timeZone": "Australia/Sydney"},
        "in unpublished": {"campaignId": unpublished},
        "ended": {**times_in(-29 * DAY), "allowPast": True},
        "ended long ago": {**times_in(-32 * DAY, DAY), "allowPast": True},
        "not ended": times_in(-60 * DAY, 61 * DAY),
        "cancelled": {},
    }
    slot_ids = {
        title: await organizer.add_slot(title=f"{title} {suffix}", **fields)
        for title, fields in slots.items()
    }
    await organizer.cancel_slot(slot_ids["cancelled"])
    booking = (await ada.book_slot(slot_ids["in campaign"]))["booking"]

    async def statuses(client: BookingClient, path: str) -> dict[str, str]:
        events = (await events_by_uid(client, path)).values()
        own = [event for event in events if suffix in event["SUMMARY"]]
        return {e["SUMMARY"].removesuffix(f" {suffix}"): str(e["STATUS"]) for e in own}

    anonymous = BookingClient(ada.http, ada.url)
    for client in (anonymous, anonymous_at_other_process(ada, two_apps), organizer):
        assert await statuses(client, PUBLISHED_PATH) == {
            "open": "CONFIRMED",
            "in campaign": "CONFIRMED",
            "ended": "CONFIRMED",
            "not ended": "CONFIRMED",
            "CANCELLED: cancelled": "CANCELLED",
        }
    path = f"/calendars/campaigns/{published}.ics"
    assert await statuses(anonymous, path) == {"in campaign": "CONFIRMED"}
    assert (await read_calendar(anonymous, path))["X-WR-CALNAME"] == f"Camp\\, {suffix}"
    response = await get_path(anonymous, path)
    assert booking["id"][-24:] not in response.text
    assert response.headers["cache-control"] == "public, max-age=300"
    unpublished_path = f"/calendars/campaigns/{unpublished}.ics"
    assert (await get_path(anonymous, unpublished_path)).status_code == 404
    assert (await get_path(ada, unpublished_path)).status_code == 404
    assert await statuses(organizer, unpublished_path) == {"in unpublished": "CONFIRMED"}
    await unpublish_campaign(organizer, published)
    assert (await get_path(anonymous, path)).status_code == 404
    assert "in campaign" not in await statuses(anonymous, PUBLISHED_PATH)


async def test_without_public_reads_published_calendars_and_records_need_a_token(
    servers: EmbeddedServers, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    settings = {**app_environment(servers, "closed"), "SLOTLOCK_PUBLIC_READS": "false"}
    with forked_app(settings, tmp_path) as app:
        (ada,), _ = create_booking_clients(http, 1, app)
        anonymous = BookingClient(http, app.url)
        unread = "/calendars/campaigns/campaign_1.ics", "/draws/draw_1/record"
        for path in (PUBLISHED_PATH, *unread):
            response = await get_path(anonymous, path)
            assert (response.status_code, response.json()["code"]) == (401, "UNAUTHENTICATED")
            assert response.headers["www-authenticate"] == "Bearer"
        record = {"query": f'{{ drawRecord(drawId: "draw_{"0" * 24}") }}'}
        response = await http.post(f"{app.url}/graphql", json=record)
        (error,) = response.json()["errors"]
        assert error["extensions"]["code"] == "UNAUTHENTICATED"
        response = await get_path(ada, PUBLISHED_PATH)
        assert response.headers["cache-control"] == "private, max-age=300"
        # The path of a private calendar is its own authorization.
        await read_calendar(anonymous, await create_calendar(ada))


@pytest.mark.parametrize(
    "path",
    ["", "private/.ics", "private/x.ics", "private/" + "A" * 43 + ".ics", "published.csv",
     "private/" + "A" * 43, "private/%00.ics", "private/" + "%F0%9F%98%80" * 43 + ".ics",
     "private/" + "x" * 3000 + ".ics", "campaigns/campaign_" + "0" * 24 + ".ics",
     "campaigns/slot_" + "0" * 24 + ".ics", "published.ics/", "private/%FF.ics"],
)  # fmt: skip
async def test_an_unknown_path_gets_404_in_json(users: CalendarUsers, path: str) -> None:
    anonymous = BookingClient(users.ada.http, users.ada.url)
    response = await get_path(anonymous, f"/calendars/{path}")
    assert (response.status_code, response.headers["content-type"]) == (404, "application/json")


async def test_an_invalid_token_gets_401(users: CalendarUsers) -> None:
    client = BookingClient(users.ada.http, users.ada.url, "no.such.token")
    assert (await get_path(client, PUBLISHED_PATH)).status_code == 401


async def test_a_calendar_with_too_many_events_leaves_out_ended_slots_first(
    servers: EmbeddedServers, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    first = datetime(2034, 1, 1, tzinfo=UTC)
    extra = [
        {"startTime": start.isoformat(), "endTime": (start + timedelta(minutes=1)).isoformat()}
        for start in (first + timedelta(hours=number) for number in range(480))
    ]
    timetable = {"first": "2034-01-01", "last": "2034-01-01", "extra": extra}
    with forked_app(app_environment(servers, "many"), tmp_path) as app:
        _, organizer = create_booking_clients(http, 0, app)
        for number in range(5):
            course = {"title": f"Course {number}", "timeZone": "UTC", "timetable": timetable}
            created = await organizer.execute(CREATE_SLOT, input=course)
            assert created["__typename"] == "Slot"
        await organizer.add_slot(title="soon")
        await organizer.add_slot(title="ended", **times_in(-5), allowPast=True)
        events = await events_by_uid(organizer, PUBLISHED_PATH)
    assert len(events) == MAX_EVENTS
    titles = {str(event["SUMMARY"]) for event in events.values()}
    assert titles == {"soon", *(f"Course {number}" for number in range(5))}


def build_event(start: datetime, zone: str = "Europe/Berlin", **fields: object) -> CalendarEvent:
    """Build an event of one hour."""
    values: dict[str, object] = {
        "uid": f"{zone} {start.isoformat()}",
        "slot_id": SlotId("5" * 24),
        "meetings": (Meeting(start, start + HOUR),),
        "time_zone": zone,
        "title": "Yoga",
        "location": None,
        "status": EventStatus.CONFIRMED,
        "sequence": 0,
        "revised_at": datetime(2026, 1, 1, tzinfo=UTC),
        "busy": True,
        **fields,
    }
    return CalendarEvent(**values)  # type: ignore[arg-type]


def events_around_changes(zone: str) -> list[CalendarEvent]:
    """Build events in the hours before and after each change of the offset in three years."""
    _, *changes = clock_changes(ZoneInfo(zone), 2027, 2029)
    instants = [(c.wall_time - c.offset_before).replace(tzinfo=UTC) for c in changes]
    starts = {instant + hours * HOUR / 2 for instant in instants for hours in range(-6, 7)}
    starts |= {datetime(2027, month, 15, 12, tzinfo=UTC) for month in range(1, 13)}
    return [build_event(start, zone) for start in sorted(starts)]


@pytest.mark.parametrize("zone", ZONES)
async def test_every_instant_is_exact_by_the_zone_definition_in_the_file(zone: str) -> None:
    events = events_around_changes(zone)
    text = (await render_calendar("Calendar", events)).decode()
    # dateutil uses only the zone definitions of the file, but does not support RDATE.
    zone_in_file = None if "RDATE" in text else tzical(StringIO(text)).get(zone)
    assert (zone_in_file is not None) == ("RDATE" not in text)
    read_events = {str(e["UID"]): e for e in parse_calendar(text).events}
    assert [timezone["TZID"] for timezone in parse_calendar(text).timezones] == [zone]
    for event in events:
        for name, instant in (
            ("DTSTART", event.meetings[0].start),
            ("DTEND", event.meetings[0].end),
        ):
            time = read_events[event.uid][name]
            assert time.dt.astimezone(UTC) == instant
            if zone_in_file is not None and "TZID" in time.params:
                by_file = time.dt.replace(tzinfo=zone_in_file, fold=0).astimezone(UTC)
                assert by_file == instant, (event.uid, name)


@pytest.mark.parametrize("zone", ZONES)
async def test_the_zone_in_the_file_agrees_with_the_time_zone_database(zone: str) -> None:
    text = await render_calendar("Calendar", events_around_changes(zone))
    (timezone,) = parse_calendar(text).timezones
    zone_in_file = timezone.to_tz(lookup_tzid=False)
    for event in events_around_changes(zone):
        local = event.meetings[0].start.astimezone(ZoneInfo(zone))
        if (local + 2 * HOUR).utcoffset() == (local - 2 * HOUR).utcoffset():
            assert local.replace(tzinfo=zone_in_file).utcoffset() == local.utcoffset()


async def test_ambiguous_local_times_are_in_utc() -> None:
    repeated = datetime(2027, 10, 31, 1, 30, tzinfo=UTC)  # the second 02:30 of the day in Berlin
    for start in (repeated, repeated - HOUR):
        (event,) = parse_calendar(await render_calendar("C", [build_event(start)])).events
        assert event["DTSTART"].dt.astimezone(UTC) == start
        assert "TZID" not in event["DTSTART"].params


async def test_every_known_zone_can_be_written_and_read() -> None:
    start = datetime(2030, 7, 1, 12, tzinfo=UTC)
    zones = sorted(available_timezones())
    events = [build_event(start, zone) for zone in zones]
    calendar = parse_calendar(await render_calendar("C", events))
    assert len(calendar.events) == len(zones)
    used = {e["DTSTART"].params.get("TZID") for e in calendar.events} - {None}
    assert used == {timezone["TZID"] for timezone in calendar.timezones} >= {"Asia/Kolkata"}


@pytest.mark.parametrize(
    "title",
    ["a,b;c\\d", "two\nlines", "\U0001f3ca" * 200, "ä" * 200, "x" * 200, '"quoted": yes',
     "END:VEVENT", "\\n", " begins and ends with blanks ", "a\u2028b\u0085c"],
)  # fmt: skip
async def test_texts_are_escaped_and_long_lines_are_folded(title: str) -> None:
    start = datetime(2030, 7, 1, 12, tzinfo=UTC)
    text = await render_calendar(title, [build_event(start, title=title, location=title)])
    lines = text.split(b"\r\n")
    assert all(len(line) <= 75 for line in lines)
    assert all(line.decode() is not None and b"\n" not in line for line in lines)
    calendar = parse_calendar(text)
    (event,) = calendar.events
    assert (event["SUMMARY"], event["LOCATION"]) == (title, title)
    # The library does not know these properties, so it does not unescape them.
    for name in ("NAME", "X-WR-CALNAME"):
        assert calendar[name] == vText(title).to_ical().decode()


@pytest.mark.parametrize("year", [1, 1969, 1970, 2089, 2090, 9999])
@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/New_York", "Nowhere/Atlantis"])
async def test_distant_years_and_unknown_zones_have_exact_instants(year: int, zone: str) -> None:
    for start in (datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, 22, 30, tzinfo=UTC)):
        (event,) = parse_calendar(await render_calendar("C", [build_event(start, zone)])).events
        assert event["DTSTART"].dt.astimezone(UTC) == start


async def test_an_event_in_the_last_second_of_the_calendar_ends_after_its_start() -> None:
    last = datetime.max.replace(tzinfo=UTC)
    meeting = Meeting(last - timedelta(milliseconds=500), last)
    text = await render_calendar("Calendar", [build_event(last - HOUR, meetings=(meeting,))])
    (event,) = parse_calendar(text.decode()).events
    assert event["DTSTART"].dt < event["DTEND"].dt == last.replace(microsecond=0)


async def test_a_calendar_has_its_name_and_a_refresh_interval() -> None:
    calendar = parse_calendar(await render_calendar("Swimming", []))
    assert (calendar["VERSION"], calendar["CALSCALE"]) == ("2.0", "GREGORIAN")
    assert calendar["PRODID"].startswith("-//slotlock//")
    assert calendar["X-WR-CALNAME"] == "Swimming"
    assert calendar["REFRESH-INTERVAL"].dt == timedelta(minutes=30)
    assert calendar.events == []
