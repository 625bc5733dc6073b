"""Calendars that people subscribe to: their own by a private address, and the published ones."""

import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import slot_document
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.booking_client import BookingClient, create_booking_clients, expire_holds
from tests.support.clients.calendars import (
    CREATE_CALENDAR,
    MY_CALENDAR,
    REVOKE_CALENDAR,
    create_calendar,
    event_facts,
    events_by_uid,
    get_path,
    read_calendar,
)
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json, hours_from_now

Pair = tuple[AppProcess, AppProcess]
Three = tuple[BookingClient, BookingClient, BookingClient]
BAN = "mutation($user: ID!) { banUser(userId: $user) { __typename } }"
UNPUBLISH = "mutation($id: ID!) { unpublishCampaign(campaignId: $id) { __typename } }"
TIMETABLE = {
    "first": "2035-03-18",
    "last": "2035-04-02",
    "weekly": [{"weekday": "MONDAY", "startTime": "09:00", "endTime": "10:30"}],
}
COURSE = {"timeZone": "Europe/Berlin", "timetable": TIMETABLE}


@pytest.fixture
async def clients(two_apps: Pair, http: httpx.AsyncClient) -> Three:
    """Ada at one process, Ben at the other, and an organiser."""
    (ada, ben), organiser = await create_booking_clients(http, 2, *two_apps)
    return ada, ben, organiser


def at_other(person: BookingClient, two_apps: Pair) -> BookingClient:
    """The same address at the other process, asked by nobody in particular."""
    (url,) = {app.url for app in two_apps} - {person.url}
    return BookingClient(person.http, url)


async def test_a_calendar_lists_ones_bookings_and_nobody_elses(
    two_apps: Pair, clients: Three
) -> None:
    ada, ben, organiser = clients
    title = "Yoga, with mats; \U0001f9d8 \\ " + "x" * 150
    mine = await organiser.add_slot(title=title, location="Hall; left, 2", capacity=2)
    others = await organiser.add_slot()
    booking = (await ada.book_slot(mine))["booking"]
    await ben.book_slot(mine)
    await ben.book_slot(others)
    path = await create_calendar(ada)
    for reader in (BookingClient(ada.http, ada.url), at_other(ada, two_apps)):
        (event,) = (await events_by_uid(reader, path)).values()
        assert event_facts(event) == (title, "CONFIRMED", 0)
        assert event["LOCATION"] == "Hall; left, 2"
        document = slot_document(two_apps[0].environment["SLOTLOCK_MONGO_URL"], mine)
        assert event["DTSTART"].dt == document["start"].replace(microsecond=0, tzinfo=UTC)
        assert booking["id"][-24:] in event["UID"]
    body = (await get_path(ada, path)).text
    for secret in (
        "Somebody",
        "slotlock.test",
        (await ben.fetch_user_id())[-24:],
        (await ada.fetch_user_id())[-24:],
    ):
        assert secret not in body


async def test_a_course_is_an_event_a_meeting_at_the_same_time_by_the_clock(clients: Three) -> None:
    ada, _, organiser = clients
    slot_id = await organiser.execute(
        "mutation($input: CreateSlotInput!) { createSlot(input: $input) { ... on Slot { id } } }",
        input={"title": "Judo", **COURSE},
    )
    await ada.book_slot(slot_id["id"])
    path = await create_calendar(ada)
    calendar = await read_calendar(ada, path)
    assert [zone["TZID"] for zone in calendar.timezones] == ["Europe/Berlin"]
    starts = [event["DTSTART"] for event in calendar.events]
    berlin = ZoneInfo("Europe/Berlin")
    days = (datetime(2035, 3, 19), datetime(2035, 3, 26), datetime(2035, 4, 2))  # noqa: DTZ001
    assert [start.dt for start in starts] == [d.replace(hour=9, tzinfo=berlin) for d in days]
    assert {start.params["TZID"] for start in starts} == {"Europe/Berlin"}
    assert len({start.dt.utcoffset() for start in starts}) == 2
    before = await events_by_uid(ada, path)
    weekly = {"weekly": [{"weekday": "TUESDAY", "startTime": "09:00", "endTime": "10:30"}]}
    await organiser.update_slot(slot_id["id"], timetable={**TIMETABLE, **weekly})
    after = await events_by_uid(ada, path)
    assert list(after) == list(before)[: len(after)]
    assert all(after[uid]["SEQUENCE"] > before[uid]["SEQUENCE"] for uid in after)
    assert all(after[uid]["LAST-MODIFIED"].dt >= before[uid]["LAST-MODIFIED"].dt for uid in after)


async def test_an_edit_is_a_newer_event_and_a_call_off_a_cancelled_one(clients: Three) -> None:
    ada, ben, organiser = clients
    slot_id = await organiser.add_slot(capacity=2)
    await ada.book_slot(slot_id)
    path = await create_calendar(ada)
    (uid,) = await events_by_uid(ada, path)
    assert event_facts((await events_by_uid(ada, path))[uid]) == ("A slot", "CONFIRMED", 0)
    await ben.book_slot(slot_id)
    assert event_facts((await events_by_uid(ada, path))[uid]) == ("A slot", "CONFIRMED", 0)
    await organiser.update_slot(
        slot_id, title="Judo", startTime=hours_from_now(2), endTime=hours_from_now(3)
    )
    changed = (await events_by_uid(ada, path))[uid]
    assert event_facts(changed) == ("Judo", "CONFIRMED", 1)
    await organiser.cancel_slot(slot_id)
    off = (await events_by_uid(ada, path))[uid]
    assert off["STATUS"] == "CANCELLED"
    assert off["SEQUENCE"] > 1
    assert off["DTSTART"].dt == changed["DTSTART"].dt


async def test_holds_moves_and_cancellations_show(two_apps: Pair, clients: Three) -> None:
    ada, _, organiser = clients
    first, second, third = [await organiser.add_slot(title=title) for title in "abc"]
    path = await create_calendar(ada)

    async def seen() -> dict[str, str]:
        return {e["SUMMARY"]: e["STATUS"] for e in (await events_by_uid(ada, path)).values()}

    hold = await ada.hold(first)
    assert await seen() == {"a": "TENTATIVE"}
    await ada.confirm(hold["id"])
    assert await seen() == {"a": "CONFIRMED"}
    moved = (await ada.move(hold["id"], second))["booking"]
    assert await seen() == {"a": "CANCELLED", "b": "CONFIRMED"}
    await ada.cancel_booking(moved["id"])
    await ada.hold(third)
    expire_holds(two_apps[0].environment["SLOTLOCK_MONGO_URL"], third)
    assert await seen() == {"a": "CANCELLED", "b": "CANCELLED", "c": "CANCELLED"}


async def test_a_new_address_ends_the_old_and_revoking_ends_it_everywhere_at_once(
    two_apps: Pair, clients: Three
) -> None:
    ada, ben, _ = clients
    other = at_other(ada, two_apps)
    assert await ada.execute(MY_CALENDAR) is None
    first, second = await create_calendar(ada), await create_calendar(ada)
    bens = await create_calendar(ben)
    assert (await get_path(other, first)).status_code == 404
    await read_calendar(other, second)
    mine = await ada.execute(MY_CALENDAR)
    assert mine["url"] is None
    assert datetime.fromisoformat(mine["createdAt"]) <= datetime.now(UTC)
    assert [await ada.execute(REVOKE_CALENDAR), await ada.execute(REVOKE_CALENDAR)] == [True, False]
    assert [(await get_path(who, second)).status_code for who in (ada, other)] == [404, 404]
    assert await ada.execute(MY_CALENDAR) is None
    await read_calendar(other, bens)
    for query in (CREATE_CALENDAR, REVOKE_CALENDAR, MY_CALENDAR):
        assert await other.error_code(query) == "UNAUTHENTICATED"


async def test_the_address_is_not_kept_and_not_logged(two_apps: Pair, clients: Three) -> None:
    path = await create_calendar(clients[0])
    await read_calendar(clients[0], path)
    token = path.removeprefix("/calendars/private/").removesuffix(".ics")
    assert len(token) == 43
    assert all(token not in app.log for app in two_apps)


async def test_who_is_banned_has_no_calendar(clients: Three) -> None:
    ada, _, organiser = clients
    path = await create_calendar(ada)
    await organiser.execute(BAN, user=await ada.fetch_user_id())
    assert (await get_path(BookingClient(ada.http, ada.url), path)).status_code == 404


async def test_what_did_not_change_is_not_sent_again(two_apps: Pair, clients: Three) -> None:
    ada, ben, organiser = clients
    slot_id = await organiser.add_slot(capacity=2)
    await ada.book_slot(slot_id)
    path = await create_calendar(ada)
    first = await get_path(ada, path)
    etag = first.headers["etag"]
    assert first.headers["cache-control"] == "private, max-age=300"
    await ben.book_slot(slot_id)  # of no concern to Ada's calendar
    for who in (ada, at_other(ada, two_apps)):
        for known in (etag, f"W/{etag}", f'"x", {etag}', "*"):
            same = await get_path(who, path, **{"If-None-Match": known})
            assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", etag)
    head = await ada.http.head(ada.url + path)
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", etag)
    assert head.headers["content-length"] == str(len(first.content))
    await organiser.update_slot(slot_id, title="Judo")
    changed = await get_path(ada, path, **{"If-None-Match": etag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != etag


async def test_published_calendars_show_what_everybody_sees_and_no_names(
    two_apps: Pair, clients: Three
) -> None:
    ada, _, organiser = clients
    mark = secrets.token_hex(6)
    shown = await create_campaign(organiser, name=f"Camp, {mark}")
    hidden = await create_campaign(organiser, published=False)
    slots: dict[str, Json] = {
        "draft": {"draft": True},
        "open": {},
        "in campaign": {"campaignId": shown, "timeZone": "Australia/Sydney"},
        "in hidden": {"campaignId": hidden},
        "over": {"startTime": hours_from_now(-24 * 29), "endTime": hours_from_now(-24 * 29 + 1)},
        "long over": {"startTime": hours_from_now(-24 * 32), "endTime": hours_from_now(-24 * 31)},
        "still on": {"startTime": hours_from_now(-24 * 60), "endTime": hours_from_now(24)},
        "off": {},
    }
    for title, fields in slots.items():
        slot_id = await organiser.add_slot(title=f"{title} {mark}", **fields)
        if title == "off":
            await organiser.cancel_slot(slot_id)
        if title == "in campaign":
            booking = (await ada.book_slot(slot_id))["booking"]

    async def seen(who: BookingClient, path: str) -> dict[str, str]:
        found = (await events_by_uid(who, path)).values()
        mine = [e for e in found if mark in e["SUMMARY"]]
        return {e["SUMMARY"].removesuffix(f" {mark}"): str(e["STATUS"]) for e in mine}

    nobody = BookingClient(ada.http, ada.url)
    everything = {"open": "CONFIRMED", "in campaign": "CONFIRMED", "over": "CONFIRMED",
                  "still on": "CONFIRMED", "off": "CANCELLED"}  # fmt: skip
    for who in (nobody, at_other(ada, two_apps), organiser):
        assert await seen(who, "/calendars/published.ics") == everything
    path = f"/calendars/campaigns/{shown}.ics"
    assert await seen(nobody, path) == {"in campaign": "CONFIRMED"}
    assert (await read_calendar(nobody, path))["X-WR-CALNAME"] == f"Camp\\, {mark}"
    assert booking["id"][-24:] not in (await get_path(nobody, path)).text
    assert (await get_path(nobody, path)).headers["cache-control"] == "public, max-age=300"
    secret = f"/calendars/campaigns/{hidden}.ics"
    assert (await get_path(nobody, secret)).status_code == 404
    assert (await get_path(ada, secret)).status_code == 404
    assert await seen(organiser, secret) == {"in hidden": "CONFIRMED"}
    await organiser.execute(UNPUBLISH, id=shown)
    assert (await get_path(nobody, path)).status_code == 404
    assert "in campaign" not in await seen(nobody, "/calendars/published.ics")


async def test_where_reading_is_not_public_calendars_are_for_those_signed_in(
    servers: EmbeddedServers, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    settings = {**app_environment(servers, "closed"), "SLOTLOCK_PUBLIC_READS": "false"}
    with forked_app(settings, tmp_path) as app:
        (ada,), _ = await create_booking_clients(http, 1, app)
        nobody = BookingClient(http, app.url)
        for path in ("/calendars/published.ics", "/calendars/campaigns/campaign_1.ics"):
            refused = await get_path(nobody, path)
            assert (refused.status_code, refused.json()["code"]) == (401, "UNAUTHENTICATED")
            assert refused.headers["www-authenticate"] == "Bearer"
        answer = await get_path(ada, "/calendars/published.ics")
        assert answer.headers["cache-control"] == "private, max-age=300"
        await read_calendar(nobody, await create_calendar(ada))  # the address is its own key


@pytest.mark.parametrize(
    "path",
    ["", "private/.ics", "private/x.ics", "private/" + "A" * 43 + ".ics", "published.csv",
     "private/" + "A" * 43, "private/%00.ics", "private/" + "%F0%9F%98%80" * 43 + ".ics",
     "private/" + "x" * 3000 + ".ics", "campaigns/campaign_" + "0" * 24 + ".ics",
     "campaigns/slot_" + "0" * 24 + ".ics", "published.ics/", "private/%FF.ics"],
)  # fmt: skip
async def test_what_is_not_there_is_not_found(clients: Three, path: str) -> None:
    response = await get_path(BookingClient(clients[0].http, clients[0].url), f"/calendars/{path}")
    assert (response.status_code, response.headers["content-type"]) == (404, "application/json")


async def test_calendars_are_only_read(clients: Three) -> None:
    path = await create_calendar(clients[0])
    for method in ("POST", "PUT", "DELETE"):
        response = await clients[0].http.request(method, clients[0].url + path)
        assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")
    stranger = BookingClient(clients[0].http, clients[0].url, "no.such.token")
    assert (await get_path(stranger, "/calendars/published.ics")).status_code == 401


async def test_too_many_meetings_leave_out_what_is_farthest(
    servers: EmbeddedServers, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    extra = [
        {"startTime": at.isoformat(), "endTime": (at + timedelta(minutes=1)).isoformat()}
        for at in (datetime(2034, 1, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(480))
    ]
    timetable = {"first": "2034-01-01", "last": "2034-01-01", "extra": extra}
    with forked_app(app_environment(servers, "many"), tmp_path) as app:
        _, organiser = await create_booking_clients(http, 0, app)
        for number in range(5):
            created = await organiser.execute(
                "mutation($input: CreateSlotInput!) { createSlot(input: $input) { __typename } }",
                input={"title": f"Course {number}", "timeZone": "UTC", "timetable": timetable},
            )
            assert created["__typename"] == "Slot"
        await organiser.add_slot(title="soon")
        await organiser.add_slot(
            title="over", startTime=hours_from_now(-5), endTime=hours_from_now(-4)
        )
        found = await events_by_uid(organiser, "/calendars/published.ics")
    assert len(found) == 2_000
    titles = {str(event["SUMMARY"]) for event in found.values()}
    assert titles == {"soon", *(f"Course {number}" for number in range(5))}
