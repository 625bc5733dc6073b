"""A campaign's figures are those that anybody gets who counts its documents."""

import asyncio
import secrets
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import httpx
import pytest

from tests.support.apps.deployment import object_id
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json, hours_from_now
from tests.support.model.stored_state import booking_history
from tests.support.scenarios.campaign_activity import (
    CampaignFixture,
    create_campaign_fixture,
    run_random_actions,
)

Pair = tuple[AppProcess, AppProcess]
NAMES = (f"{secrets.token_hex(4)} figures" for _ in count())
FIGURES = """query($campaign: ID!, $time: TimeSeriesInput, $first: Int! = 100,
                   $slot: String, $group: String) {
  campaignStatistics(campaignId: $campaign, timeSeries: $time) {
    at slotCount places taken held free waiting people
    slots(first: $first, after: $slot) {
      nodes { slot { id } places taken held waiting } pageInfo { hasNextPage endCursor }
    }
    groups(first: $first, after: $group) {
      nodes { group people booked bookings waiting } pageInfo { hasNextPage endCursor }
    }
    timeSeries { at booked givenBack taken }
  } }"""


async def figures(person: BookingClient, campaign: str, **more: Any) -> Json:
    """The figures of a campaign."""
    found: Json = await person.execute(FIGURES, campaign=campaign, **more)
    return found


def instant(text: str) -> datetime:
    """A time that was answered."""
    return datetime.fromisoformat(text)


def live_in(slot: Json, now: datetime) -> list[Json]:
    """The bookings of a slot that count."""
    return [b for b in slot["bookings"] if "heldUntil" not in b or b["heldUntil"] > now]


def counted(at: CampaignFixture, now: datetime) -> Json:
    """The figures, counted by hand."""
    slots = [slot for slot in at.slot_documents() if slot["status"] == "published"]
    live = [booking for slot in slots for booking in live_in(slot, now)]
    turns = [turn for slot in slots for turn in slot["waitlist"]]
    places = sum(slot["capacity"] for slot in slots)
    return {
        "slotCount": len(slots),
        "places": places,
        "taken": len(live),
        "held": sum("heldUntil" in booking for booking in live),
        "free": places - len(live),
        "waiting": len(turns),
        "people": len({booking["user"] for booking in live}),
    }


def groups_counted(at: CampaignFixture, now: datetime) -> list[Json]:
    """The figures of each group, counted by hand."""
    slots = [slot for slot in at.slot_documents() if slot["status"] == "published"]
    live = [booking for slot in slots for booking in live_in(slot, now)]
    carrying = Counter(g for b in live for g in b.get("groups", ()))
    booked = Counter(g for g, _ in {(g, b["user"]) for b in live for g in b.get("groups", ())})
    waiting = Counter(g for s in slots for turn in s["waitlist"] for g in turn.get("groups", ()))
    campaign = at.documents("campaigns", _id=object_id(at.campaign_id))[0]
    (eligible,) = campaign["terms"]["eligibleGroups"]
    people = Counter(
        g
        for user in at.documents("users")
        if set(user.get("groups", ())) & set(eligible)
        for g in user["groups"]
    )
    return [
        {
            "group": group,
            "people": people[group],
            "booked": booked[group],
            "bookings": carrying[group],
            "waiting": waiting[group],
        }
        for group in sorted({*eligible, *carrying, *waiting})
    ]


def happened(at: CampaignFixture, now: datetime) -> list[tuple[datetime, int]]:
    """When places were taken (1) and given back (-1), in order."""
    slots = {slot["_id"]: slot for slot in at.slot_documents()}
    found = []
    for slot in slots.values():
        for booking in slot["bookings"]:
            found.append((booking_history(booking)[0].at, 1))
            if slot["cancellation"]:
                found.append((slot["cancellation"]["at"], -1))
            elif booking not in live_in(slot, now):
                found.append((booking["heldUntil"], -1))
    for booking in at.documents("ended_bookings", slot={"$in": list(slots)}):
        found += [(booking_history(booking)[0].at, 1), (booking["endedAt"], -1)]
    return sorted(found)


@pytest.mark.parametrize("seed", [1, 2])
async def test_figures_are_what_the_documents_come_to_after_any_story(
    two_apps: Pair, http: httpx.AsyncClient, seed: int
) -> None:
    at = await create_campaign_fixture(http, two_apps, next(NAMES))
    await run_random_actions(at, 80, seed)
    await at.organizer.cancel_slot(at.slot_ids[2])
    await at.organizer.add_slot(campaignId=at.campaign_id, draft=True)
    await run_random_actions(at, 20, seed + 100)
    at.expire_every_second_hold()

    found = await figures(at.organizer, at.campaign_id, time={"every": "MINUTE"})
    now = instant(found["at"])
    assert {name: found[name] for name in counted(at, now)} == counted(at, now)
    assert found["groups"]["nodes"] == groups_counted(at, now)
    assert [node["slot"]["id"] for node in found["slots"]["nodes"]] == [
        slot_id for slot_id in at.slot_ids if slot_id != at.slot_ids[2]
    ]
    for name in ("places", "taken", "held", "waiting"):
        assert sum(node[name] for node in found["slots"]["nodes"]) == found[name]

    told, points = happened(at, now), found["timeSeries"]
    for point, following in zip(points, [*points[1:], None], strict=True):
        begin = instant(point["at"])
        end = instant(following["at"]) if following else now + timedelta(seconds=1)
        within = [each for when, each in told if begin <= when < end]
        assert (point["booked"], point["givenBack"]) == (within.count(1), within.count(-1))
        assert point["taken"] == sum(each for when, each in told if when < end)
    assert points[-1]["taken"] == found["taken"]


async def test_figures_agree_with_each_other_while_people_book(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    at = await create_campaign_fixture(http, two_apps, next(NAMES), member_count=6)
    story = asyncio.create_task(run_random_actions(at, 40, 7))
    looks = 0
    while not story.done() or not looks:
        found = await figures(at.organizer, at.campaign_id, time={"every": "MINUTE"})
        assert found["timeSeries"][-1]["taken"] == found["taken"]
        assert sum(node["taken"] for node in found["slots"]["nodes"]) == found["taken"]
        looks += 1
    await story


async def test_slots_and_groups_come_in_pages(two_apps: Pair, http: httpx.AsyncClient) -> None:
    at = await create_campaign_fixture(http, two_apps, next(NAMES), member_count=3, slot_count=5)
    await run_random_actions(at, 10, 1)
    whole = await figures(at.organizer, at.campaign_id)
    slots, groups, pages, more = [], [], 0, True
    cursors: dict[str, Any] = {}
    while more:
        page = await figures(at.organizer, at.campaign_id, first=2, **cursors)
        slots += page["slots"]["nodes"]
        groups += page["groups"]["nodes"]
        more = page["slots"]["pageInfo"]["hasNextPage"]
        ends = {"slot": page["slots"]["pageInfo"]["endCursor"]}
        ends["group"] = page["groups"]["pageInfo"]["endCursor"] or cursors.get("group")
        cursors, pages = ends, pages + 1
    assert pages == 3
    assert slots == whole["slots"]["nodes"]
    assert groups == whole["groups"]["nodes"]


async def test_time_is_shown_from_the_opening_until_now_unless_said_otherwise(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    _, organiser = await create_booking_clients(http, 0, *two_apps)
    opens = hours_from_now(-2.5)
    campaign = await create_campaign(organiser, opensAt=opens)
    points = (await figures(organiser, campaign, time={}))["timeSeries"]
    assert [instant(p["at"]) - instant(opens) for p in points] == [
        timedelta(hours=hours) for hours in range(3)
    ]
    # What opens later is shown by its last interval, and what is too long by its beginning.
    campaign = await create_campaign(organiser, opensAt=hours_from_now(1))
    assert len((await figures(organiser, campaign, time={"every": "DAY"}))["timeSeries"]) == 1
    campaign = await create_campaign(organiser, opensAt=hours_from_now(-24))
    points = (await figures(organiser, campaign, time={"every": "MINUTE"}))["timeSeries"]
    assert len(points) == 1000
    assert instant(points[-1]["at"]) < datetime.now(UTC) - timedelta(hours=7)
    # Nothing is known of the future.
    time = {"from": hours_from_now(5), "until": hours_from_now(9)}
    assert (await figures(organiser, campaign, time=time))["timeSeries"] == []
    assert (await figures(organiser, campaign))["timeSeries"] is None


@pytest.mark.parametrize(
    "time",
    [
        {"every": "MINUTE", "from": "0001-01-01T00:00:00Z", "until": "9999-12-31T23:59:59Z"},
        {"every": "MINUTE", "from": "2020-01-01T00:00:00Z", "until": "2020-01-02T00:00:00Z"},
    ],
)
async def test_more_points_than_can_be_shown_are_bad_user_input(
    two_apps: Pair, http: httpx.AsyncClient, time: Json
) -> None:
    _, organiser = await create_booking_clients(http, 0, *two_apps)
    campaign = await create_campaign(organiser)
    assert await organiser.error_code(FIGURES, campaign=campaign, time=time) == "BAD_USER_INPUT"


async def test_any_time_without_an_end_has_an_answer(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    _, organiser = await create_booking_clients(http, 0, *two_apps)
    campaign = await create_campaign(organiser)
    for begin, number in (("0001-01-01T00:00:00Z", 1000), ("9999-12-31T23:59:59Z", 0)):
        for every in ("MINUTE", "DAY"):
            time = {"every": every, "from": begin}
            points = (await figures(organiser, campaign, time=time))["timeSeries"]
            assert len(points) == number


async def test_figures_are_for_organisers(two_apps: Pair, http: httpx.AsyncClient) -> None:
    (ada,), organiser = await create_booking_clients(http, 1, *two_apps)
    campaign = await create_campaign(organiser)
    assert await ada.error_code(FIGURES, campaign=campaign) == "FORBIDDEN"
    nobody = BookingClient(http, two_apps[0].url)
    assert await nobody.error_code(FIGURES, campaign=campaign) == "UNAUTHENTICATED"
    empty = await figures(organiser, campaign)
    assert (empty["slotCount"], empty["taken"], empty["people"]) == (0, 0, 0)
    assert empty["slots"]["nodes"] == empty["groups"]["nodes"] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"campaign": "nonsense"},
        {"campaign": "slot_" + "0" * 24},
        {"slot": "nonsense"},
        {"group": "nonsense"},
        {"group": "W10="},
        {"first": 0},
        {"first": 101},
    ],
)
async def test_what_cannot_be_is_bad_user_input(
    two_apps: Pair, http: httpx.AsyncClient, wrong: Json
) -> None:
    _, organiser = await create_booking_clients(http, 0, *two_apps)
    asked = {"campaign": await create_campaign(organiser), **wrong}
    assert await organiser.error_code(FIGURES, **asked) == "BAD_USER_INPUT"


async def test_there_are_no_figures_of_no_campaign(two_apps: Pair, http: httpx.AsyncClient) -> None:
    _, organiser = await create_booking_clients(http, 0, *two_apps)
    assert await organiser.execute(FIGURES, campaign="campaign_" + "0" * 24) is None
