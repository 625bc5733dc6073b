"""What the five designs did wrong with the rules of campaigns: each defect with its guard."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.apps.processes import AppProcess
from tests.support.clients.campaigns import (
    book_with_refusal,
    create_campaign,
    set_groups,
    unpublish_campaign,
)
from tests.support.clients.client import BOOK_SLOT, Json
from tests.support.clients.simultaneous_requests import book_simultaneously, send_simultaneously

Pair = tuple[AppProcess, AppProcess]
Clash = tuple[list[str], int]
NINE, TEN, ELEVEN, NOON = (f"2040-05-07T{hour}:00:00Z" for hour in ("09", "10", "11", "12"))
CLASS, LIMIT = 30, 5
ROUNDS = 25


@pytest.fixture
async def deployment(two_apps: Pair, log_dir: Path) -> AsyncIterator[Deployment]:
    """A scene beside two processes that lack nothing."""
    async with open_deployment(two_apps[0].environment, log_dir, member_count=CLASS) as deployment:
        yield deployment


async def in_campaign(
    deployment: Deployment, app: AppProcess, size: int, **rules: Any
) -> list[str]:
    """So many slots of a new campaign, all at the same time."""
    campaign_id = await create_campaign(deployment.organizer(app), **rules)
    return [
        await deployment.add_slot(app, campaignId=campaign_id, capacity=CLASS) for _ in range(size)
    ]


async def a_class_rushes(deployment: Deployment, *apps: AppProcess) -> tuple[Counter[str], int]:
    """30 of a class want one course at once, of which 5 may: the answers, and how many have it."""
    organizer = deployment.organizer(apps[0])
    for user in deployment.clients(apps[0], CLASS):
        await set_groups(organizer, user, "class:5a")
    limits = [{"group": "class:*", "limit": LIMIT}]
    (slot_id,) = await in_campaign(deployment, apps[0], 1, groupLimits=limits)
    options = {"input": {"slotId": slot_id, "waitMs": 20_000}}
    query = "mutation($input: BookSlotInput!) { bookSlot(input: $input) { __typename } }"
    received = await send_simultaneously(
        [
            (apps[n % len(apps)].url, t, query, options)
            for n, t in enumerate(deployment.user_tokens.members)
        ]
    )
    return Counter(each["__typename"] for each in received), len(
        deployment.consistent_booking_ids(slot_id)
    )


async def test_of_30_of_a_class_who_rush_exactly_5_get_in(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await a_class_rushes(deployment, *two_apps) == ({"Booked": 5, "GroupFull": 25}, 5)


async def test_control_without_comparing_a_class_limit_all_of_them_get_in(
    deployment: Deployment,
) -> None:
    assert await a_class_rushes(deployment, deployment.app("group-limits")) == ({"Booked": 30}, 30)


async def two_that_clash(deployment: Deployment, app: AppProcess, off: str, **rules: Any) -> Clash:
    """While Ada books, she books what clashes elsewhere: the answers, and how many she has."""
    slow, stage = deployment.paused_app("commit", off)
    slot_ids = await in_campaign(deployment, app, 2, **rules)
    late = asyncio.create_task(book_with_refusal(deployment.client(slow, 0), slot_ids[0]))
    await asyncio.to_thread(stage.wait_until_reached)
    early = await book_with_refusal(deployment.client(app, 0), slot_ids[1])
    stage.resume()
    received = [outcome["__typename"] for outcome in (early, await late)]
    return received, sum(len(deployment.consistent_booking_ids(slot_id)) for slot_id in slot_ids)


async def test_what_was_free_of_clashes_when_it_was_looked_at_is_asked_again_at_the_write(
    deployment: Deployment, two_apps: Pair
) -> None:
    received = await two_that_clash(deployment, two_apps[0], "", forbidOverlap=True)
    assert received == (["Booked", "TimeConflict"], 1)


async def test_control_without_pages_two_bookings_clash(deployment: Deployment) -> None:
    received = await two_that_clash(
        deployment, deployment.app("user-versions"), "user-versions", forbidOverlap=True
    )
    assert received == (["Booked", "Booked"], 2)


async def test_how_many_a_person_has_is_counted_again_at_the_write(
    deployment: Deployment, two_apps: Pair
) -> None:
    received = await two_that_clash(deployment, two_apps[0], "", maxBookings=1)
    assert received == (["Booked", "LimitReached"], 1)


async def test_control_without_pages_a_person_has_more_than_they_may(
    deployment: Deployment,
) -> None:
    received = await two_that_clash(
        deployment, deployment.app("user-versions"), "user-versions", maxBookings=1
    )
    assert received == (["Booked", "Booked"], 2)


@pytest.mark.parametrize("rule", [{"forbidOverlap": True}, {"maxBookings": 1}])
async def test_of_two_that_rule_each_other_out_one_person_gets_exactly_one_however_often(
    deployment: Deployment, two_apps: Pair, rule: Json
) -> None:
    for number in range(ROUNDS):
        one, other = await in_campaign(deployment, two_apps[0], 2, **rule)
        token = deployment.user_tokens.members[number % CLASS]
        shots = [(two_apps[0].url, token, BOOK_SLOT, {"slot": one})]
        shots += [(two_apps[1].url, token, BOOK_SLOT, {"slot": other})]
        received = sorted(outcome["__typename"] for outcome in await send_simultaneously(shots))
        refusal = "TimeConflict" if "forbidOverlap" in rule else "LimitReached"
        assert received == ["Booked", refusal]
        assert (
            len(deployment.consistent_booking_ids(one))
            + len(deployment.consistent_booking_ids(other))
            == 1
        )


async def times_that_overlap(deployment: Deployment, app: AppProcess) -> list[str]:
    """What Ada is told who books from nine to eleven, from ten to twelve, and from nine again."""
    campaign_id = await create_campaign(deployment.organizer(app), forbidOverlap=True)
    times = [(NINE, ELEVEN), (TEN, NOON), (NINE, ELEVEN)]
    slot_ids = [
        await deployment.add_slot(app, campaignId=campaign_id, startTime=start, endTime=end)
        for start, end in times
    ]
    ada = deployment.client(app, 0)
    return [(await book_with_refusal(ada, slot_id))["__typename"] for slot_id in slot_ids]


async def test_what_overlaps_is_refused_and_not_only_what_is_at_the_same_time(
    deployment: Deployment, two_apps: Pair
) -> None:
    received = await times_that_overlap(deployment, two_apps[0])
    assert received == ["Booked", "TimeConflict", "TimeConflict"]


async def test_control_without_overlaps_only_the_same_times_are_refused(
    deployment: Deployment,
) -> None:
    received = await times_that_overlap(deployment, deployment.app("partial-overlaps"))
    assert received == ["Booked", "Booked", "TimeConflict"]


async def test_control_without_a_check_of_clashes_anything_is_booked(
    deployment: Deployment,
) -> None:
    assert await times_that_overlap(deployment, deployment.app("time-conflicts")) == ["Booked"] * 3


async def unpublished_meanwhile(deployment: Deployment, app: AppProcess) -> tuple[str, int]:
    """A campaign is hidden by a process before a booking is written: what came of that."""
    slow, stage = deployment.paused_app("commit")
    organizer = deployment.organizer(app)
    campaign_id = await create_campaign(organizer)
    slot_id = await deployment.add_slot(app, campaignId=campaign_id)
    late = asyncio.create_task(book_with_refusal(deployment.client(slow, 0), slot_id))
    await asyncio.to_thread(stage.wait_until_reached)
    await unpublish_campaign(organizer, campaign_id)
    stage.resume()
    return (await late)["__typename"], len(deployment.consistent_booking_ids(slot_id))


async def test_what_was_decided_before_a_campaign_was_hidden_is_not_written_after_it(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await unpublished_meanwhile(deployment, two_apps[0]) == ("Closed", 0)


async def test_control_without_its_terms_in_the_slots_a_hidden_campaign_is_booked(
    deployment: Deployment,
) -> None:
    assert await unpublished_meanwhile(deployment, deployment.app("terms")) == ("Booked", 1)


async def hidden_in_a_rush(deployment: Deployment, apps: list[AppProcess]) -> tuple[int, int]:
    """Places are booked while the campaign is hidden: how many then, and how many in the end."""
    organizer = deployment.organizer(apps[0])
    campaign_id = await create_campaign(organizer)
    slot_ids = [
        await deployment.add_slot(apps[0], campaignId=campaign_id, capacity=CLASS) for _ in range(8)
    ]

    def wave(slot_ids: Sequence[str]) -> list[asyncio.Task[Json]]:
        return [
            asyncio.create_task(
                book_with_refusal(deployment.client(apps[n % len(apps)], n), slot_id, waitMs=20_000)
            )
            for slot_id in slot_ids
            for n in range(CLASS)
        ]

    rush = wave(slot_ids[:4])
    await asyncio.wait(rush, return_when=asyncio.FIRST_COMPLETED)
    await unpublish_campaign(organizer, campaign_id)
    then = [deployment.consistent_booking_ids(slot_id) for slot_id in slot_ids]
    rush += wave(slot_ids[4:])
    received = await asyncio.gather(*rush)
    assert {outcome["__typename"] for outcome in received} <= {"Booked", "Closed"}
    booked = {o["booking"]["id"][-24:] for o in received if o["__typename"] == "Booked"}
    now = [deployment.consistent_booking_ids(slot_id) for slot_id in slot_ids]
    assert set().union(*now) == booked
    return sum(map(len, then)), sum(map(len, now))


async def test_once_a_campaign_is_hidden_in_a_rush_no_booking_is_written_any_more(
    deployment: Deployment, two_apps: Pair
) -> None:
    for _ in range(2):
        then, in_the_end = await hidden_in_a_rush(deployment, list(two_apps))
        assert then == in_the_end


async def test_control_without_its_terms_in_the_slots_a_rush_goes_on_after_it_was_hidden(
    deployment: Deployment,
) -> None:
    then, in_the_end = await hidden_in_a_rush(deployment, [deployment.app("terms")])
    assert then < in_the_end


async def test_a_rush_for_one_place_in_a_campaign_gives_it_to_one(
    deployment: Deployment, two_apps: Pair
) -> None:
    campaign_id = await create_campaign(
        deployment.organizer(two_apps[0]), maxBookings=1, forbidOverlap=True
    )
    slot_id = await deployment.add_slot(two_apps[0], campaignId=campaign_id)
    received = await book_simultaneously(
        [app.url for app in two_apps], deployment.user_tokens.members, slot_id
    )
    names = Counter(outcome["__typename"] for outcome in received)
    assert names["Booked"] == 1
    assert set(names) <= {"Booked", "Locked", "SlotFull"}
    assert len(deployment.consistent_booking_ids(slot_id)) == 1
