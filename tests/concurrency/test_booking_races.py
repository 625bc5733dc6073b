"""Rushes over real HTTP against two processes; each promise has a control without its guard."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from redis import Redis

from tests.support.apps.deployment import (
    app_variant,
    assert_slot_consistent,
    slot_document,
    wait_until_released,
)
from tests.support.apps.processes import AppProcess, Pair
from tests.support.clients.client import GraphQLTestClient, Json, http_client
from tests.support.stores.users import UserTokens
from tests.support.transport.simultaneous_requests import MAX_LUCKY_RUNS, book_simultaneously


async def new_slot(apps: Pair, user_tokens: UserTokens, capacity: int) -> str:
    """Create a slot without bookings and return its id."""
    async with http_client() as http:
        slot = await GraphQLTestClient(http, apps[0].url, user_tokens.organizer).create_slot(
            capacity=capacity
        )
        return str(slot["id"])


async def rush(apps: Pair, user_tokens: UserTokens, capacity: int) -> tuple[str, list[Json]]:
    """Let every user book the same new slot at once, alternating between both processes."""
    slot_id = await new_slot(apps, user_tokens, capacity)
    return slot_id, await book_simultaneously(
        [app.url for app in apps], user_tokens.members, slot_id
    )


async def rush_until_served(
    apps: Pair, user_tokens: UserTokens, capacity: int
) -> tuple[str, list[Json]]:
    """Let every user book at once, and retry each `Locked` until another outcome comes."""
    slot_id, outcomes = await rush(apps, user_tokens, capacity)
    urls = [app.url for app in apps]
    while again := [i for i, o in enumerate(outcomes) if o["__typename"] == "Locked"]:
        tokens = [user_tokens.members[i] for i in again]
        for i, outcome in zip(again, await book_simultaneously(urls, tokens, slot_id), strict=True):
            outcomes[i] = outcome
    return slot_id, outcomes


def counted(outcomes: list[Json]) -> Counter[str]:
    """Count the outcomes by type."""
    return Counter(outcome["__typename"] for outcome in outcomes)


async def test_of_200_users_exactly_one_gets_the_only_place(
    two_apps: Pair, user_tokens: UserTokens, redis: Redis
) -> None:
    slot_id, outcomes = await rush(two_apps, user_tokens, capacity=1)
    counts = counted(outcomes)
    assert counts["Booked"] == 1
    assert counts["Locked"] + counts["SlotFull"] == 199
    assert_slot_consistent(slot_document(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id), 1)
    wait_until_released(redis, slot_id)


async def test_of_200_users_exactly_10_get_the_10_places(
    two_apps: Pair, user_tokens: UserTokens, redis: Redis
) -> None:
    slot_id, outcomes = await rush_until_served(two_apps, user_tokens, capacity=10)
    assert counted(outcomes) == {"Booked": 10, "SlotFull": 190}
    document = slot_document(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id)
    assert_slot_consistent(document, 10)
    received = {o["booking"]["id"][-24:] for o in outcomes if o["__typename"] == "Booked"}
    assert received == {str(booking["id"]) for booking in document["bookings"]}
    wait_until_released(redis, slot_id)


@pytest.fixture
def run_without_guards(two_apps: Pair, log_dir: Path) -> Iterator["Without"]:
    """Run two processes without some guards, on the database of the two complete ones."""
    with ExitStack() as stack:
        yield Without(two_apps, log_dir, stack)


class Without:
    """Return a function that starts pairs of processes without a guard."""

    def __init__(self, apps: Pair, log_dir: Path, stack: ExitStack) -> None:
        self._environment, self._logs, self._stack = apps[0].environment, log_dir, stack

    def __call__(self, guards: str) -> Pair:
        first, second = (
            self._stack.enter_context(
                app_variant(self._environment, self._logs / name, without_guards=guards)
            )
            for name in "ab"
        )
        return first, second


@pytest.mark.parametrize("capacity", [1, 10])
async def test_control_without_lock_and_version_a_place_goes_to_several_users(
    run_without_guards: Without, user_tokens: UserTokens, capacity: int
) -> None:
    apps = run_without_guards("lock slot-version")
    for _ in range(MAX_LUCKY_RUNS):
        slot_id, outcomes = await rush(apps, user_tokens, capacity)
        if counted(outcomes)["Booked"] > capacity:
            break
    assert counted(outcomes)["Booked"] > capacity
    document = slot_document(apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id)
    assert document["remaining"] < 0


async def test_without_the_lock_the_version_alone_prevents_double_booking(
    run_without_guards: Without, user_tokens: UserTokens
) -> None:
    apps = run_without_guards("lock")
    slot_id, outcomes = await rush_until_served(apps, user_tokens, capacity=10)
    assert counted(outcomes) == {"Booked": 10, "SlotFull": 190}
    assert_slot_consistent(slot_document(apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id), 10)


async def test_one_user_with_200_concurrent_requests_gets_one_place(
    two_apps: Pair, user_tokens: UserTokens
) -> None:
    greedy = UserTokens([user_tokens.members[0]] * 200, user_tokens.organizer)
    slot_id, outcomes = await rush_until_served(two_apps, greedy, capacity=10)
    assert counted(outcomes) == {"Booked": 1, "AlreadyBooked": 199}
    assert_slot_consistent(slot_document(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id), 1)


async def test_places_cancelled_and_booked_in_a_rush_add_up(
    two_apps: Pair, user_tokens: UserTokens
) -> None:
    slot_id, outcomes = await rush_until_served(two_apps, user_tokens, capacity=10)
    winners = [
        (token, outcome["booking"]["id"])
        for token, outcome in zip(user_tokens.members, outcomes, strict=True)
        if outcome["__typename"] == "Booked"
    ]
    async with http_client() as http:

        async def give_back(token: str, booking_id: str) -> None:
            user = GraphQLTestClient(http, two_apps[1].url, token)
            while (await user.cancel(booking_id))["__typename"] == "Locked":
                await asyncio.sleep(0)

        async def book(app: AppProcess, token: str) -> int:
            user = GraphQLTestClient(http, app.url, token)
            while (outcome := await user.book(slot_id))["__typename"] == "Locked":
                await asyncio.sleep(0)
            return int(outcome["__typename"] == "Booked")

        others = [token for token in user_tokens.members if token not in dict(winners)]
        gave, booked = await asyncio.gather(
            asyncio.gather(*(give_back(*winner) for winner in winners)),
            asyncio.gather(*(book(two_apps[0], token) for token in others[:50])),
        )
    document = slot_document(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id)
    assert_slot_consistent(document, 10 - len(gave) + sum(booked))
