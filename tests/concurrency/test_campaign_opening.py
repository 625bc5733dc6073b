"""The instant at which a campaign opens, and users who book many of its slots at once."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.apps.processes import AppProcess, Pair
from tests.support.clients.campaigns import (
    BOOK_SEVERAL_WITH_REFUSALS,
    BOOK_WITH_REFUSAL,
    MOVE_WITH_REFUSAL,
    book_with_refusal,
    create_campaign,
)
from tests.support.clients.client import Json
from tests.support.scenarios.campaign_opening import USER_COUNT, opening, too_early, too_late
from tests.support.transport.simultaneous_requests import send_simultaneously

SLOTS, BASKETS = 10, 15
LONG_WAIT = {"waitMs": 20_000}


@pytest.fixture
async def deployment(two_apps: Pair, log_dir: Path) -> AsyncIterator[Deployment]:
    """Open a deployment beside two complete processes."""
    async with open_deployment(
        two_apps[0].environment, log_dir, member_count=USER_COUNT
    ) as deployment:
        yield deployment


async def test_nothing_is_booked_before_the_opening_and_nobody_is_refused_after_it(
    deployment: Deployment, two_apps: Pair
) -> None:
    opens, responses = await opening(deployment, two_apps)
    early = [each for each in responses if each.received < opens]
    assert {each.name for each in early} == {"NotYetOpen"}
    assert (too_early(opens, responses), too_late(opens, responses)) == (0, 0)


async def test_control_opened_by_a_job_users_are_refused_after_the_opening(
    deployment: Deployment,
) -> None:
    opens, responses = await opening(deployment, [deployment.app("opening")])
    assert too_early(opens, responses) == 0
    assert too_late(opens, responses) > 0


async def test_control_opened_early_by_a_job_users_book_before_the_opening(
    deployment: Deployment,
) -> None:
    opens, responses = await opening(deployment, [deployment.app("not-before")])
    assert too_early(opens, responses) > 0


async def in_campaign(
    deployment: Deployment, app: AppProcess, size: int = SLOTS, **rules: Any
) -> list[str]:
    """Create consecutive slots of a new campaign with places for all users."""
    campaign_id = await create_campaign(deployment.organizer(app), **rules)
    return [
        await deployment.add_slot(
            app,
            campaignId=campaign_id,
            capacity=USER_COUNT,
            startTime=f"2040-05-07T{n // 2:02}:{n % 2 * 30:02}:00Z",
            endTime=f"2040-05-07T{n // 2:02}:{n % 2 * 30 + 29:02}:00Z",
        )
        for n in range(size)
    ]


async def at_once(
    deployment: Deployment, apps: Sequence[AppProcess], requests: Sequence[tuple[int, str, Json]]
) -> Counter[str]:
    """Count the outcomes of concurrent bookings, alternating between the processes."""
    shots = [
        (
            apps[n % len(apps)].url,
            deployment.user_tokens.members[client],
            query,
            {"input": {**options, **LONG_WAIT}},
        )
        for n, (client, query, options) in enumerate(requests)
    ]
    return Counter(outcome["__typename"] for outcome in await send_simultaneously(shots))


@pytest.mark.parametrize("most", [SLOTS, 3])
async def test_a_user_who_books_ten_slots_at_once_and_waits_gets_the_maximum(
    deployment: Deployment, two_apps: Pair, most: int
) -> None:
    slot_ids = await in_campaign(deployment, two_apps[0], maxBookings=most, forbidOverlap=True)
    received = await at_once(
        deployment, two_apps, [(0, BOOK_WITH_REFUSAL, {"slotId": id_}) for id_ in slot_ids]
    )
    assert received == Counter(Booked=most, LimitReached=SLOTS - most)
    assert sum(len(deployment.consistent_booking_ids(slot_id)) for slot_id in slot_ids) == most


async def test_a_class_that_books_all_slots_at_once_and_waits_gets_no_locked(
    deployment: Deployment, two_apps: Pair
) -> None:
    slot_ids = await in_campaign(deployment, two_apps[0], maxBookings=3, forbidOverlap=True)
    requests = [
        (client, BOOK_WITH_REFUSAL, {"slotId": id_}) for client in range(8) for id_ in slot_ids
    ]
    received = await at_once(deployment, two_apps, requests)
    assert received == Counter(Booked=8 * 3, LimitReached=8 * (SLOTS - 3))


async def test_a_user_who_books_several_claims_at_once_and_waits_gets_all(
    deployment: Deployment, two_apps: Pair
) -> None:
    slot_ids = await in_campaign(deployment, two_apps[0], 2 * BASKETS, forbidOverlap=True)
    baskets = [slot_ids[n : n + 2] for n in range(0, 2 * BASKETS, 2)]
    requests = [
        (0, BOOK_SEVERAL_WITH_REFUSALS, {"claims": [{"slotId": id_} for id_ in each]})
        for each in baskets
    ]
    assert await at_once(deployment, two_apps, requests) == Counter(AllBooked=BASKETS)


async def test_a_user_who_moves_several_bookings_at_once_and_waits_moves_all(
    deployment: Deployment, two_apps: Pair
) -> None:
    slot_ids = await in_campaign(deployment, two_apps[0], 2 * BASKETS, forbidOverlap=True)
    ada = deployment.client(two_apps[0], 0)
    old = [
        (await book_with_refusal(ada, slot_id))["booking"]["id"] for slot_id in slot_ids[:BASKETS]
    ]
    requests = [
        (0, MOVE_WITH_REFUSAL, {"bookingId": booking_id, "slotId": slot_id})
        for booking_id, slot_id in zip(old, slot_ids[BASKETS:], strict=True)
    ]
    assert await at_once(deployment, two_apps, requests) == Counter(BookingMoved=BASKETS)
    assert [len(deployment.consistent_booking_ids(slot_id)) for slot_id in slot_ids] == [
        0
    ] * BASKETS + [1] * BASKETS
