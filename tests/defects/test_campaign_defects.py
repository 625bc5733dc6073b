"""Defects of five published designs in campaign rules: each occurs only without its guard."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.apps.deployment import Deployment
from tests.support.apps.processes import AppProcess, Pair
from tests.support.clients.campaigns import (
    book_with_refusal,
    create_campaign,
    set_groups,
    unpublish_campaign,
)
from tests.support.clients.client import BOOK_SLOT, Json
from tests.support.transport.simultaneous_requests import book_simultaneously, send_simultaneously

NINE, TEN, ELEVEN, NOON = (f"2040-05-07T{hour}:00:00Z" for hour in ("09", "10", "11", "12"))
MEMBER_COUNT = 30
ROUNDS = 12
BOOK_AND_WAIT = "mutation($input: BookSlotInput!) { bookSlot(input: $input) { __typename } }"


async def add_campaign_slots(
    deployment: Deployment, app: AppProcess, count: int, **rules: Any
) -> list[str]:
    """Create slots of a new campaign, all at the same time, and return their ids."""
    campaign_id = await create_campaign(deployment.organizer(app), **rules)
    return [
        await deployment.add_slot(app, campaignId=campaign_id, capacity=MEMBER_COUNT)
        for _ in range(count)
    ]


@pytest.mark.parametrize(("without", "booked_count"), [("", 5), ("group-limits", 30)])
async def test_of_30_concurrent_requests_of_one_group_exactly_5_are_booked(
    deployment: Deployment, two_apps: Pair, app: AppProcess, without: str, booked_count: int
) -> None:
    apps = [app] if without else list(two_apps)
    organizer = deployment.organizer(app)
    for member in deployment.clients(app, MEMBER_COUNT):
        await set_groups(organizer, member, "class:5a")
    limits = [{"group": "class:*", "limit": 5}]
    (slot_id,) = await add_campaign_slots(deployment, app, 1, groupLimits=limits)
    variables = {"input": {"slotId": slot_id, "waitMs": 20_000}}
    outcomes = await send_simultaneously(
        [
            (apps[n % len(apps)].url, token, BOOK_AND_WAIT, variables)
            for n, token in enumerate(deployment.user_tokens.members)
        ]
    )
    counts = Counter(outcome["__typename"] for outcome in outcomes)
    assert counts == Counter(Booked=booked_count, GroupFull=MEMBER_COUNT - booked_count)
    assert len(deployment.consistent_booking_ids(slot_id)) == booked_count


@pytest.mark.parametrize(
    ("rule", "refusal"),
    [({"forbidOverlap": True}, "TimeConflict"), ({"maxBookings": 1}, "LimitReached")],
)
@pytest.mark.parametrize("without", ["", "user-versions"])
async def test_conflicts_and_the_bookings_of_a_user_are_checked_again_in_the_write(
    deployment: Deployment, app: AppProcess, without: str, rule: Json, refusal: str
) -> None:
    slow_app, pause_point = deployment.paused_app("commit", without)
    slot_ids = await add_campaign_slots(deployment, app, 2, **rule)
    first = asyncio.create_task(book_with_refusal(deployment.client(slow_app, 0), slot_ids[0]))
    await asyncio.to_thread(pause_point.wait_until_reached)
    second = await book_with_refusal(deployment.client(app, 0), slot_ids[1])
    pause_point.resume()
    assert second["__typename"] == "Booked"
    assert (await first)["__typename"] == ("Booked" if without else refusal)
    booked = [len(deployment.consistent_booking_ids(slot_id)) for slot_id in slot_ids]
    assert sum(booked) == (2 if without else 1)


@pytest.mark.parametrize("rule", [{"forbidOverlap": True}, {"maxBookings": 1}])
async def test_of_two_exclusive_slots_a_user_books_exactly_one_in_every_round(
    deployment: Deployment, two_apps: Pair, rule: Json
) -> None:
    refusal = "TimeConflict" if "forbidOverlap" in rule else "LimitReached"
    for number in range(ROUNDS):
        slot_ids = await add_campaign_slots(deployment, two_apps[0], 2, **rule)
        token = deployment.user_tokens.members[number % MEMBER_COUNT]
        outcomes = await send_simultaneously(
            [
                (app.url, token, BOOK_SLOT, {"slot": slot_id})
                for app, slot_id in zip(two_apps, slot_ids, strict=True)
            ]
        )
        assert sorted(outcome["__typename"] for outcome in outcomes) == ["Booked", refusal]
        booked = [len(deployment.consistent_booking_ids(slot_id)) for slot_id in slot_ids]
        assert sum(booked) == 1


@pytest.mark.parametrize(
    ("without", "outcomes"),
    [
        ("", ["Booked", "TimeConflict", "TimeConflict"]),
        ("partial-overlaps", ["Booked", "Booked", "TimeConflict"]),
        ("time-conflicts", ["Booked"] * 3),
    ],
)
async def test_overlapping_times_are_refused_even_if_they_are_not_identical(
    deployment: Deployment, app: AppProcess, without: str, outcomes: list[str]
) -> None:
    campaign_id = await create_campaign(deployment.organizer(app), forbidOverlap=True)
    times = [(NINE, ELEVEN), (TEN, NOON), (NINE, ELEVEN)]
    slot_ids = [
        await deployment.add_slot(app, campaignId=campaign_id, startTime=start, endTime=end)
        for start, end in times
    ]
    ada = deployment.client(app, 0)
    booked = [(await book_with_refusal(ada, slot_id))["__typename"] for slot_id in slot_ids]
    assert booked == outcomes


@pytest.mark.parametrize(("without", "outcome"), [("", "SlotNotFound"), ("terms", "Booked")])
async def test_a_booking_decided_before_its_campaign_was_unpublished_is_not_written_after(
    deployment: Deployment, app: AppProcess, without: str, outcome: str
) -> None:
    slow_app, pause_point = deployment.paused_app("commit")
    organizer = deployment.organizer(app)
    campaign_id = await create_campaign(organizer)
    slot_id = await deployment.add_slot(app, campaignId=campaign_id)
    booking = asyncio.create_task(book_with_refusal(deployment.client(slow_app, 0), slot_id))
    await asyncio.to_thread(pause_point.wait_until_reached)
    await unpublish_campaign(organizer, campaign_id)
    pause_point.resume()
    assert (await booking)["__typename"] == outcome
    assert len(deployment.consistent_booking_ids(slot_id)) == int(outcome == "Booked")


@pytest.mark.parametrize("without", ["", "terms"])
async def test_after_a_campaign_is_unpublished_no_concurrent_booking_is_written(
    deployment: Deployment, two_apps: Pair, app: AppProcess, without: str
) -> None:
    apps = [app] if without else list(two_apps)
    organizer = deployment.organizer(apps[0])
    campaign_id = await create_campaign(organizer)
    slot_ids = [
        await deployment.add_slot(apps[0], campaignId=campaign_id, capacity=MEMBER_COUNT)
        for _ in range(8)
    ]

    def book_all_places(slot_ids: Sequence[str]) -> list[asyncio.Task[Json]]:
        return [
            asyncio.create_task(
                book_with_refusal(deployment.client(apps[n % len(apps)], n), slot_id, waitMs=20_000)
            )
            for slot_id in slot_ids
            for n in range(MEMBER_COUNT)
        ]

    tasks = book_all_places(slot_ids[:4])
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    await unpublish_campaign(organizer, campaign_id)
    bookings_then = [deployment.consistent_booking_ids(slot_id) for slot_id in slot_ids]
    tasks += book_all_places(slot_ids[4:])
    outcomes = await asyncio.gather(*tasks)
    assert {outcome["__typename"] for outcome in outcomes} <= {"Booked", "SlotNotFound"}
    reported = {o["booking"]["id"][-24:] for o in outcomes if o["__typename"] == "Booked"}
    bookings = [deployment.consistent_booking_ids(slot_id) for slot_id in slot_ids]
    assert set().union(*bookings) == reported
    more = sum(map(len, bookings)) - sum(map(len, bookings_then))
    assert more > 0 if without else more == 0


async def test_of_30_concurrent_requests_for_the_only_place_of_a_campaign_one_is_booked(
    deployment: Deployment, two_apps: Pair
) -> None:
    campaign_id = await create_campaign(
        deployment.organizer(two_apps[0]), maxBookings=1, forbidOverlap=True
    )
    slot_id = await deployment.add_slot(two_apps[0], campaignId=campaign_id)
    outcomes = await book_simultaneously(
        [app.url for app in two_apps], deployment.user_tokens.members, slot_id
    )
    counts = Counter(outcome["__typename"] for outcome in outcomes)
    assert counts["Booked"] == 1
    assert set(counts) <= {"Booked", "Locked", "SlotFull"}
    assert len(deployment.consistent_booking_ids(slot_id)) == 1
