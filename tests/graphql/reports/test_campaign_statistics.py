"""The statistics of a campaign equal the counts of its documents."""

import asyncio
import secrets
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import httpx
import pytest

from tests.support.apps.deployment import object_id
from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient, backdate_bookings
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json, hours_from_now, open_websocket
from tests.support.model.stored_state import booking_history
from tests.support.scenarios.campaign_activity import (
    CampaignFixture,
    create_campaign_fixture,
    run_random_actions,
)

NAMES = (f"{secrets.token_hex(4)} statistics" for _ in count())
STATISTICS = """query($campaign: ID!, $time: TimeSeriesInput, $first: Int! = 100,
                   $slot: String, $group: String) {
  campaignStatistics(campaignId: $campaign, timeSeries: $time) {
    at slotCount places taken held free waiting userCount
    slots(first: $first, after: $slot) {
      nodes { slot { id } places taken held waiting } pageInfo { hasNextPage endCursor }
    }
    groups(first: $first, after: $group) {
      nodes { group userCount booked bookings waiting } pageInfo { hasNextPage endCursor }
    }
    timeSeries { at booked givenBack taken }
  } }"""


async def fetch_statistics(client: BookingClient, campaign: str, **more: Any) -> Json:
    """Return the statistics of a campaign."""
    statistics: Json = await client.execute(STATISTICS, campaign=campaign, **more)
    return statistics


def parse_time(text: str) -> datetime:
    """Parse a time of a response."""
    return datetime.fromisoformat(text)


def live_bookings(slot: Json, now: datetime) -> list[Json]:
    """Return the bookings of a slot, without expired holds."""
    return [b for b in slot["bookings"] if "heldUntil" not in b or b["heldUntil"] > now]


def expected_totals(fixture: CampaignFixture, now: datetime) -> Json:
    """Return the expected totals, counted from the documents."""
    slots = [slot for slot in fixture.slot_documents() if slot["status"] == "published"]
    live = [booking for slot in slots for booking in live_bookings(slot, now)]
    waiting = [entry for slot in slots for entry in slot["waitlist"]]
    places = sum(slot["capacity"] for slot in slots)
    return {
        "slotCount": len(slots),
        "places": places,
        "taken": len(live),
        "held": sum("heldUntil" in booking for booking in live),
        "free": places - len(live),
        "waiting": len(waiting),
        "userCount": len({booking["user"] for booking in live}),
    }


def expected_groups(fixture: CampaignFixture, now: datetime) -> list[Json]:
    """Return the expected statistics of each group, counted from the documents."""
    slots = [slot for slot in fixture.slot_documents() if slot["status"] == "published"]
    live = [booking for slot in slots for booking in live_bookings(slot, now)]
    bookings = Counter(group for booking in live for group in booking.get("groups", ()))
    booked = Counter(
        group
        for group, _ in {
            (group, booking["user"]) for booking in live for group in booking.get("groups", ())
        }
    )
    waiting = Counter(
        group for slot in slots for entry in slot["waitlist"] for group in entry.get("groups", ())
    )
    campaign = fixture.documents("campaigns", _id=object_id(fixture.campaign_id))[0]
    (eligible,) = campaign["terms"]["eligibleGroups"]
    users = Counter(
        group
        for user in fixture.documents("users")
        if set(user.get("groups", ())) & set(eligible)
        for group in user["groups"]
    )
    return [
        {
            "group": group,
            "userCount": users[group],
            "booked": booked[group],
            "bookings": bookings[group],
            "waiting": waiting[group],
        }
        for group in sorted({*eligible, *bookings, *waiting})
    ]


def expected_changes(fixture: CampaignFixture, now: datetime) -> list[tuple[datetime, int]]:
    """Return the times when places were taken (1) and released (-1), in order."""
    slots = {slot["_id"]: slot for slot in fixture.slot_documents()}
    changes = []
    for slot in slots.values():
        for booking in slot["bookings"]:
            changes.append((booking_history(booking)[0].at, 1))
            if slot.get("cancellation"):
                changes.append((slot["cancellation"]["at"], -1))
            elif booking not in live_bookings(slot, now):
                changes.append((booking["heldUntil"], -1))
    for booking in fixture.documents("ended_bookings", slot={"$in": list(slots)}):
        changes += [(booking_history(booking)[0].at, 1), (booking["endedAt"], -1)]
    return sorted(changes)


@pytest.mark.parametrize("seed", [1, 2])
async def test_statistics_equal_the_counts_of_the_documents_after_random_actions(
    two_apps: Pair, http: httpx.AsyncClient, seed: int
) -> None:
    fixture = await create_campaign_fixture(http, two_apps, next(NAMES))
    await run_random_actions(fixture, 80, seed)
    await fixture.organizer.cancel_slot(fixture.slot_ids[2])
    await fixture.organizer.add_slot(campaignId=fixture.campaign_id, draft=True)
    await run_random_actions(fixture, 20, seed + 100)
    fixture.expire_every_second_hold()

    statistics = await fetch_statistics(
        fixture.organizer, fixture.campaign_id, time={"every": "MINUTE"}
    )
    now = parse_time(statistics["at"])
    assert {name: statistics[name] for name in expected_totals(fixture, now)} == expected_totals(
        fixture, now
    )
    assert statistics["groups"]["nodes"] == expected_groups(fixture, now)
    assert [node["slot"]["id"] for node in statistics["slots"]["nodes"]] == [
        slot_id for slot_id in fixture.slot_ids if slot_id != fixture.slot_ids[2]
    ]
    for name in ("places", "taken", "held", "waiting"):
        assert sum(node[name] for node in statistics["slots"]["nodes"]) == statistics[name]

    changes, points = expected_changes(fixture, now), statistics["timeSeries"]
    for point, following in zip(points, [*points[1:], None], strict=True):
        begin = parse_time(point["at"])
        end = parse_time(following["at"]) if following else now + timedelta(seconds=1)
        within = [change for time, change in changes if begin <= time < end]
        assert (point["booked"], point["givenBack"]) == (within.count(1), within.count(-1))
        assert point["taken"] == sum(change for time, change in changes if time < end)
    assert points[-1]["taken"] == statistics["taken"]


async def test_statistics_agree_while_users_book(two_apps: Pair, http: httpx.AsyncClient) -> None:
    fixture = await create_campaign_fixture(http, two_apps, next(NAMES), member_count=6)
    activity = asyncio.create_task(run_random_actions(fixture, 40, 7))
    checks = 0
    while not activity.done() or not checks:
        statistics = await fetch_statistics(
            fixture.organizer, fixture.campaign_id, time={"every": "MINUTE"}
        )
        assert statistics["timeSeries"][-1]["taken"] == statistics["taken"]
        assert sum(node["taken"] for node in statistics["slots"]["nodes"]) == statistics["taken"]
        checks += 1
    await activity


async def test_the_time_series_begins_at_the_opening_by_default(organizer: BookingClient) -> None:
    opens = hours_from_now(-2.5)
    campaign = await create_campaign(organizer, opensAt=opens)
    points = (await fetch_statistics(organizer, campaign, time={}))["timeSeries"]
    assert [parse_time(p["at"]) - parse_time(opens) for p in points] == [
        timedelta(hours=hours) for hours in range(3)
    ]
    # A campaign that opens later has one point. A series that is too long is cut at 1000 points.
    campaign = await create_campaign(organizer, opensAt=hours_from_now(1))
    assert (
        len((await fetch_statistics(organizer, campaign, time={"every": "DAY"}))["timeSeries"]) == 1
    )
    campaign = await create_campaign(organizer, opensAt=hours_from_now(-24))
    points = (await fetch_statistics(organizer, campaign, time={"every": "MINUTE"}))["timeSeries"]
    assert len(points) == 1000
    assert parse_time(points[-1]["at"]) < datetime.now(UTC) - timedelta(hours=7)
    # A range in the future has no points.
    time = {"from": hours_from_now(5), "until": hours_from_now(9)}
    assert (await fetch_statistics(organizer, campaign, time=time))["timeSeries"] == []
    assert (await fetch_statistics(organizer, campaign))["timeSeries"] is None


@pytest.mark.parametrize(
    "time",
    [
        {"every": "MINUTE", "from": "0001-01-01T00:00:00Z", "until": "9999-12-31T23:59:59Z"},
        {"every": "MINUTE", "from": "2020-01-01T00:00:00Z", "until": "2020-01-02T00:00:00Z"},
    ],
)
async def test_a_time_series_with_too_many_points_is_bad_user_input(
    organizer: BookingClient, time: Json
) -> None:
    campaign = await create_campaign(organizer)
    assert await organizer.error_code(STATISTICS, campaign=campaign, time=time) == "BAD_USER_INPUT"


async def test_an_endless_time_series_has_at_most_1000_points(organizer: BookingClient) -> None:
    campaign = await create_campaign(organizer)
    for begin, number in (("0001-01-01T00:00:00Z", 1000), ("9999-12-31T23:59:59Z", 0)):
        for every in ("MINUTE", "DAY"):
            time = {"every": every, "from": begin}
            points = (await fetch_statistics(organizer, campaign, time=time))["timeSeries"]
            assert len(points) == number


@pytest.mark.parametrize("invalid", [{"campaign": "nonsense"}, {"campaign": "slot_" + "0" * 24}])
async def test_invalid_statistics_arguments_are_bad_user_input(
    organizer: BookingClient, invalid: Json
) -> None:
    variables = {"campaign": await create_campaign(organizer), **invalid}
    assert await organizer.error_code(STATISTICS, **variables) == "BAD_USER_INPUT"


async def test_an_unknown_campaign_has_no_statistics(organizer: BookingClient) -> None:
    assert await organizer.execute(STATISTICS, campaign="campaign_" + "0" * 24) is None


PEAK = """query($campaign: ID!) { campaignStatistics(campaignId: $campaign) {
  taken withoutBooking peak { at booked perSecond }
} }"""
WATCH_STATISTICS = """subscription($campaign: ID!) {
  campaignStatistics(campaignId: $campaign) { taken free slotCount }
}"""


async def test_statistics_have_the_minute_with_the_most_bookings_and_who_may_still_book(
    two_apps: Pair, http: httpx.AsyncClient, mongo_url: str
) -> None:
    fixture = await create_campaign_fixture(http, two_apps, next(NAMES), member_count=6)
    before = await fixture.organizer.execute(PEAK, campaign=fixture.campaign_id)
    assert before == {"taken": 0, "withoutBooking": 6, "peak": None}
    slot_id = await fixture.organizer.add_slot(campaignId=fixture.campaign_id, capacity=9)
    for member in fixture.members[:2]:
        await member.hold(slot_id)
    cancelled = (await fixture.members[2].hold(slot_id))["id"]
    backdate_bookings(mongo_url, slot_id, minutes=30)
    await fixture.members[2].cancel(cancelled)
    await fixture.members[3].book(slot_id)
    found = await fixture.organizer.execute(PEAK, campaign=fixture.campaign_id)
    assert (found["taken"], found["withoutBooking"]) == (3, 3)
    # The holds of one minute, with the one that ended; a new minute may have begun among them.
    assert found["peak"]["booked"] in (2, 3)
    assert found["peak"]["perSecond"] == found["peak"]["booked"] / 60
    assert parse_time(found["peak"]["at"]).second == 0
    assert parse_time(found["peak"]["at"]) < datetime.now(UTC) - timedelta(minutes=29)


FULL = """query($campaign: ID!) { campaignStatistics(campaignId: $campaign) {
  slots { nodes { fullSince } }
} }"""


async def test_statistics_have_since_when_a_slot_is_full(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    fixture = await create_campaign_fixture(http, two_apps, next(NAMES), 2, slot_count=0)
    organizer, (ada, ben) = fixture.organizer, fixture.members
    slot_id = await organizer.add_slot(campaignId=fixture.campaign_id, capacity=2)

    async def full_since() -> Any:
        found = await organizer.execute(FULL, campaign=fixture.campaign_id)
        return found["slots"]["nodes"][0]["fullSince"]

    await organizer.book_slot(slot_id, userId=await ada.fetch_user_id())
    assert await full_since() is None
    last = (await ben.book_slot(slot_id))["booking"]
    created = await ben.execute(
        "query($id: ID!) { node(id: $id) { ... on Booking { createdAt } } }", id=last["id"]
    )
    assert await full_since() == created["createdAt"]
    await ben.cancel_booking(last["id"])
    assert await full_since() is None


async def test_statistics_are_watched_by_organizers_alone(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    fixture = await create_campaign_fixture(http, two_apps, next(NAMES), 2, slot_count=1)
    organizer, campaign = fixture.organizer, fixture.campaign_id
    async with open_websocket(two_apps[1], organizer.token) as watcher:
        await watcher.subscribe("1", WATCH_STATISTICS, campaign=campaign)
        assert await watcher.next_result() == {"taken": 0, "free": 1, "slotCount": 1}
        await fixture.members[0].book(fixture.slot_ids[0])
        assert await watcher.next_result() == {"taken": 1, "free": 0, "slotCount": 1}
        await organizer.add_slot(campaignId=campaign, capacity=3)
        assert await watcher.next_result() == {"taken": 1, "free": 3, "slotCount": 2}
        await watcher.subscribe("2", WATCH_STATISTICS, campaign="campaign_" + "0" * 24)
        assert (await watcher.receive())["payload"][0]["extensions"]["code"] == "BAD_USER_INPUT"
    async with open_websocket(two_apps[0], fixture.members[0].token) as member:
        await member.subscribe("1", WATCH_STATISTICS, campaign=campaign)
        assert (await member.receive())["payload"][0]["extensions"]["code"] == "FORBIDDEN"
