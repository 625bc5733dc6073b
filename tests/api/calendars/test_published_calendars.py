"""Published calendars show what every user may see, without names."""

import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.calendars import (
    CalendarUsers,
    anonymous_at_other_process,
    create_calendar,
    events_by_uid,
    get_path,
    read_calendar,
)
from tests.support.clients.campaigns import create_campaign, unpublish_campaign
from tests.support.clients.client import Json, hours_from_now

Pair = tuple[AppProcess, AppProcess]
PUBLISHED_PATH = "/calendars/published.ics"
CREATE_SLOT = "mutation($input: CreateSlotInput!) { createSlot(input: $input) { __typename } }"
MAX_EVENTS = 2_000
DAY = 24


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
        "ended": {
            "startTime": hours_from_now(-29 * DAY),
            "endTime": hours_from_now(-29 * DAY + 1),
            "allowPast": True,
        },
        "ended long ago": {
            "startTime": hours_from_now(-32 * DAY),
            "endTime": hours_from_now(-31 * DAY),
            "allowPast": True,
        },
        "not ended": {"startTime": hours_from_now(-60 * DAY), "endTime": hours_from_now(DAY)},
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
            "cancelled": "CANCELLED",
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


async def test_without_public_reads_published_calendars_need_a_token(
    servers: EmbeddedServers, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    settings = {**app_environment(servers, "closed"), "SLOTLOCK_PUBLIC_READS": "false"}
    with forked_app(settings, tmp_path) as app:
        (ada,), _ = create_booking_clients(http, 1, app)
        anonymous = BookingClient(http, app.url)
        for path in (PUBLISHED_PATH, "/calendars/campaigns/campaign_1.ics"):
            response = await get_path(anonymous, path)
            assert (response.status_code, response.json()["code"]) == (401, "UNAUTHENTICATED")
            assert response.headers["www-authenticate"] == "Bearer"
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
        await organizer.add_slot(
            title="ended",
            startTime=hours_from_now(-5),
            endTime=hours_from_now(-4),
            allowPast=True,
        )
        events = await events_by_uid(organizer, PUBLISHED_PATH)
    assert len(events) == MAX_EVENTS
    titles = {str(event["SUMMARY"]) for event in events.values()}
    assert titles == {"soon", *(f"Course {number}" for number in range(5))}
