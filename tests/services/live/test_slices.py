"""A change of a slot with thousands of watchers leaves the event loop to others in between."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.services.booking.book import BookingOptions, book_slot
from slotlock.services.container import Services
from slotlock.services.live import availability_hub
from slotlock.services.live.availability_hub import PUBLISH_BATCH_SIZE, AvailabilitySubscription
from slotlock.services.live.fan_out import WAKEUP_BATCH_SIZE
from tests.support.model.operations import MORNING
from tests.support.model.service_pair import ServicePair, open_service_pair
from tests.support.queue.deployment import with_own_redis_database
from tests.support.stores.slots import insert_slot

WATCHERS = 2000
SUBSCRIPTIONS = 5 * PUBLISH_BATCH_SIZE
CHANGES = 5


@pytest.fixture(params=[True, False], ids=["in slices", "control, all at once"])
def has_slices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether the tasks of the watchers wake in slices."""
    if not request.param:
        monkeypatch.setattr(availability_hub, "WAKEUP_BATCH_SIZE", WATCHERS)
        monkeypatch.setattr(availability_hub, "PUBLISH_BATCH_SIZE", WATCHERS + 1)
    return bool(request.param)


@pytest.fixture
def pair(servers: EmbeddedServers, has_slices: bool) -> Iterator[ServicePair]:
    """Yield services that were built with or without slices."""
    with open_service_pair(with_own_redis_database(servers), "slices") as opened:
        yield opened


add_slot = partial(insert_slot, capacity=9, start=MORNING.replace(year=2041))


class Watchers:
    """Readers of one slot, each in a task of its own that works as long as an encoding does."""

    def __init__(self, slot_id: SlotId) -> None:
        self.slot_id = slot_id
        self.versions = [0] * WATCHERS

    def count(self, version: int) -> int:
        """Return how many have read this version."""
        return self.versions.count(version)

    async def read(self, number: int, subscription: AvailabilitySubscription) -> None:
        """Read states without end."""
        async with aclosing(subscription.states()) as states:
            async for state in states:
                hashlib.pbkdf2_hmac("sha256", b"response", b"", 100)
                self.versions[number] = state.version

    async def wait_for_all(self, version: int) -> list[int]:
        """Wait for all watchers; return how many had read it at each loop iteration."""
        counts = [0]
        while counts[-1] < WATCHERS:
            await asyncio.sleep(0)
            counts.append(self.count(version))
        return counts


@asynccontextmanager
async def open_watchers(services: Services) -> AsyncIterator[tuple[Watchers, Availability]]:
    """Yield the watchers of a new slot once all have read its first state, and that state."""
    watchers = Watchers(await add_slot(services))
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        reading = []
        for number in range(WATCHERS):
            subscription = await stack.enter_async_context(
                services.availability.subscribe([watchers.slot_id])
            )
            state = subscription._latest[watchers.slot_id]
            reading.append(tasks.create_task(watchers.read(number, subscription)))
        await watchers.wait_for_all(1)
        yield watchers, state
        for task in reading:
            task.cancel()


def test_an_iteration_of_the_event_loop_serves_one_slice_of_the_watchers(
    pair: ServicePair, has_slices: bool
) -> None:
    services = pair.services[0]

    async def largest_slice() -> int:
        async with open_watchers(services) as (watchers, state):
            services.availability.publish(replace(state, version=2))
            counts = await watchers.wait_for_all(2)
            return max(after - before for before, after in pairwise(counts))

    assert pair.runner.run(largest_slice()) == (WAKEUP_BATCH_SIZE if has_slices else WATCHERS)


def test_a_state_reaches_all_subscriptions_in_slices_and_a_newer_one_overtakes_it(
    pair: ServicePair, has_slices: bool
) -> None:
    services = pair.services[0]

    async def largest_slice() -> int:
        slot_id = await add_slot(services)
        async with AsyncExitStack() as stack:
            subscriptions = [
                await stack.enter_async_context(services.availability.subscribe([slot_id]))
                for _ in range(SUBSCRIPTIONS)
            ]
            state = subscriptions[0].take()
            counts = [0]
            for version in range(2, 2 + CHANGES):
                services.availability.publish(replace(state, version=version))
                counts.append(sum(s._latest[slot_id].version > 1 for s in subscriptions))
                await asyncio.sleep(0)
            while subscriptions[-1]._latest[slot_id].version < CHANGES + 1:
                counts.append(sum(s._latest[slot_id].version > 1 for s in subscriptions))
                await asyncio.sleep(0)
            while any(s._latest[slot_id].version < CHANGES + 1 for s in subscriptions):
                await asyncio.sleep(0)
            return max(after - before for before, after in pairwise(counts))

    assert pair.runner.run(largest_slice()) == (PUBLISH_BATCH_SIZE if has_slices else SUBSCRIPTIONS)


def test_bookings_elsewhere_get_through_while_a_change_is_delivered(
    pair: ServicePair, has_slices: bool
) -> None:
    services, caller = pair.services[0], pair.callers[0]

    async def bookings_in_between() -> int:
        between = 0
        async with open_watchers(services) as (watchers, state):
            for version in range(2, 2 + CHANGES):
                other_id = await add_slot(services)
                services.availability.publish(replace(state, version=version))
                while not watchers.count(version):
                    await asyncio.sleep(0)
                result = await book_slot(
                    services, caller, other_id, caller.user_id, BookingOptions()
                )
                assert isinstance(result.outcome, Booked)
                between += watchers.count(version) < WATCHERS
                await watchers.wait_for_all(version)
        return between

    assert (pair.runner.run(bookings_in_between()) > 0) == has_slices


def test_a_watcher_that_was_not_woken_yet_reads_the_latest_state_alone(pair: ServicePair) -> None:
    services = pair.services[0]

    async def last_version_read_first() -> set[int]:
        async with open_watchers(services) as (watchers, state):
            services.availability.publish(replace(state, version=2))
            services.availability.publish(replace(state, version=3))
            await watchers.wait_for_all(3)
            return set(watchers.versions)

    assert pair.runner.run(last_version_read_first()) == {3}
