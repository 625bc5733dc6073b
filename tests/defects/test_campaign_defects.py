"""Defects of five published designs in campaign rules: each occurs only without its guard."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.apps.deployment import Deployment
from tests.support.apps.processes import AppProcess
from tests.support.clients.campaigns import (
    book_with_refusal,
    create_campaign,
    set_groups,
    unpublish_campaign,
)
from tests.support.clients.client import BOOK_SLOT, Json
from tests.support.transport.simultaneous_requests import book_simultaneously, send_simultaneously

Pair = tuple[AppProcess, AppProcess]
NINE, TEN, ELEVEN, NOON = (f"2040-05-07T{hour}:00:00Z" for hour in ("09", "10", "11", "12"))
MEMBER_COUNT, GROUP_LIMIT = 30, 5
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


async def book_as_group(deployment: Deployment, *apps: AppProcess) -> tuple[Counter[str], int]:
    """Let 30 members of one group book a slot at once that admits 5 of the group.

    Returns the number of each outcome, and the number of bookings.
    """
    organizer = deployment.organizer(apps[0])
    for member in deployment.clients(apps[0], MEMBER_COUNT):
        await set_groups(organizer, member, "class:5a")
    limits = [{"group": "class:*", "limit": GROUP_LIMIT}]
    (slot_id,) = await add_campaign_slots(deployment, apps[0], 1, groupLimits=limits)
    variables = {"input": {"slotId": slot_id, "waitMs": 20_000}}
    outcomes = await send_simultaneously(
        [
            (apps[n % len(apps)].url, token, BOOK_AND_WAIT, variables)
            for n, token in enumerate(deployment.user_tokens.members)
        ]
    )
    counts = Counter(outcome["__typename"] for outcome in outcomes)
    return counts, len(deployment.consistent_booking_ids(slot_id))


async def test_of_30_concurrent_requests_of_one_group_exactly_5_are_booked(
    deployment: Deployment, two_apps: Pair
) -> None:
    result = await book_as_group(deployment, *two_apps)
    assert result == ({"Booked": 5, "GroupFull": 25}, 5)


async def test_control_without_the_group_limit_all_requests_of_the_group_are_booked(
    deployment: Deployment,
) -> None:
    result = await book_as_group(deployment, deployment.app("group-limits"))
    assert result == ({"Booked": 30}, 30)


async def book_two_at_once(
    deployment: Deployment, app: AppProcess, without_guards: str, **rules: Any
) -> tuple[list[str], int]:
    """Let Ada book a second slot while her booking of the first one is about to commit.

    Returns the outcomes of the second and the first booking, and the number of her bookings.
    """
    slow_app, pause_point = deployment.paused_app("commit", without_guards)
    slot_ids = await add_campaign_slots(deployment, app, 2, **rules)
    first = asyncio.create_task(book_with_refusal(deployment.client(slow_app, 0), slot_ids[0]))
    await asyncio.to_thread(pause_point.wait_until_reached)
    second = await book_with_refusal(deployment.client(app, 0), slot_ids[1])
    pause_point.resume()
    outcomes = [outcome["__typename"] for outcome in (second, await first)]
    return outcomes, sum(len(deployment.consistent_booking_ids(each)) for each in slot_ids)


async def test_time_conflicts_are_checked_again_in_the_write(
    deployment: Deployment, two_apps: Pair
) -> None:
    result = await book_two_at_once(deployment, two_apps[0], "", forbidOverlap=True)
    assert result == (["Booked", "TimeConflict"], 1)


async def test_control_without_user_versions_two_bookings_overlap(deployment: Deployment) -> None:
    app = deployment.app("user-versions")
    result = await book_two_at_once(deployment, app, "user-versions", forbidOverlap=True)
    assert result == (["Booked", "Booked"], 2)


async def test_the_bookings_of_a_user_are_counted_again_in_the_write(
    deployment: Deployment, two_apps: Pair
) -> None:
    result = await book_two_at_once(deployment, two_apps[0], "", maxBookings=1)
    assert result == (["Booked", "LimitReached"], 1)


async def test_control_without_user_versions_a_user_exceeds_the_booking_limit(
    deployment: Deployment,
) -> None:
    app = deployment.app("user-versions")
    result = await book_two_at_once(deployment, app, "user-versions", maxBookings=1)
    assert result == (["Booked", "Booked"], 2)


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


async def book_overlapping_slots(deployment: Deployment, app: AppProcess) -> list[str]:
    """Let Ada book from 9 to 11, from 10 to 12 and from 9 to 11 again. Returns the outcomes."""
    campaign_id = await create_campaign(deployment.organizer(app), forbidOverlap=True)
    times = [(NINE, ELEVEN), (TEN, NOON), (NINE, ELEVEN)]
    slot_ids = [
        await deployment.add_slot(app, campaignId=campaign_id, startTime=start, endTime=end)
        for start, end in times
    ]
    ada = deployment.client(app, 0)
    return [(await book_with_refusal(ada, slot_id))["__typename"] for slot_id in slot_ids]


async def test_overlapping_times_are_refused_even_if_they_are_not_identical(
    deployment: Deployment, two_apps: Pair
) -> None:
    outcomes = await book_overlapping_slots(deployment, two_apps[0])
    assert outcomes == ["Booked", "TimeConflict", "TimeConflict"]


async def test_control_without_partial_overlaps_only_identical_times_are_refused(
    deployment: Deployment,
) -> None:
    outcomes = await book_overlapping_slots(deployment, deployment.app("partial-overlaps"))
    assert outcomes == ["Booked", "Booked", "TimeConflict"]


async def test_control_without_a_conflict_check_overlapping_times_are_booked(
    deployment: Deployment,
) -> None:
    outcomes = await book_overlapping_slots(deployment, deployment.app("time-conflicts"))
    assert outcomes == ["Booked"] * 3


async def unpublish_before_commit(deployment: Deployment, app: AppProcess) -> tuple[str, int]:
    """Unpublish a campaign while a booking in it is about to commit.

    Returns the outcome and the number of bookings.
    """
    slow_app, pause_point = deployment.paused_app("commit")
    organizer = deployment.organizer(app)
    campaign_id = await create_campaign(organizer)
    slot_id = await deployment.add_slot(app, campaignId=campaign_id)
    booking = asyncio.create_task(book_with_refusal(deployment.client(slow_app, 0), slot_id))
    await asyncio.to_thread(pause_point.wait_until_reached)
    await unpublish_campaign(organizer, campaign_id)
    pause_point.resume()
    return (await booking)["__typename"], len(deployment.consistent_booking_ids(slot_id))


async def test_a_booking_decided_before_its_campaign_was_unpublished_is_not_written_after(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await unpublish_before_commit(deployment, two_apps[0]) == ("SlotNotFound", 0)


async def test_control_without_the_terms_in_its_slots_an_unpublished_campaign_is_booked(
    deployment: Deployment,
) -> None:
    assert await unpublish_before_commit(deployment, deployment.app("terms")) == ("Booked", 1)


async def unpublish_during_bookings(
    deployment: Deployment, apps: Sequence[AppProcess]
) -> tuple[int, int]:
    """Unpublish a campaign while many bookings in it are made.

    Returns the number of bookings right after that, and in the end.
    """
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
    return sum(map(len, bookings_then)), sum(map(len, bookings))


async def test_after_a_campaign_is_unpublished_no_concurrent_booking_is_written(
    deployment: Deployment, two_apps: Pair
) -> None:
    then, in_the_end = await unpublish_during_bookings(deployment, two_apps)
    assert then == in_the_end


async def test_control_without_the_terms_in_its_slots_bookings_go_on_after_unpublishing(
    deployment: Deployment,
) -> None:
    then, in_the_end = await unpublish_during_bookings(deployment, [deployment.app("terms")])
    assert then < in_the_end


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
