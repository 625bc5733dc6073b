"""The change stream replaces lost messages, whatever happens to its cursor."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from slotlock.api.backend import Backend, open_backend
from slotlock.api.settings.settings import Settings
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.slot_state import SlotState
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.services.live.availability_hub import AvailabilitySubscription
from tests.support.apps.processes import database_url
from tests.support.apps.restartable_servers import restartable_server
from tests.support.domain.builders import build_slot
from tests.support.polling import poll_until
from tests.support.stores.slots import edit_silently, insert_new_slots


@pytest.fixture
async def backend(servers: EmbeddedServers) -> AsyncIterator[Backend]:
    """Yield a backend whose availability hub and change feed run, without pub/sub."""
    settings = Settings(mongo_url=database_url(servers, "changes"), redis_url=servers.redis_url)
    async with running_backend(settings) as opened:
        yield opened


@asynccontextmanager
async def running_backend(settings: Settings) -> AsyncIterator[Backend]:
    """Run a backend with its availability hub and its change feed."""
    async with open_backend(settings) as opened, AsyncExitStack() as stack:
        services = opened.services
        stack.push_async_callback(services.change_feed.stop)
        services.availability.start(services.slot_events, services.change_feed)
        stack.push_async_callback(services.availability.stop)
        yield opened


@asynccontextmanager
async def watched_slot(
    backend: Backend,
) -> AsyncIterator[tuple[SlotState, AvailabilitySubscription]]:
    """Yield a slot and a subscription to it, after the first stream was opened."""
    opened_before = count_opened()
    slot = build_slot(5, id=new_slot_id())
    await insert_new_slots(backend.database, slot)
    async with backend.services.availability.subscribe([slot.id]) as subscription:
        assert subscription.take().version == 1
        await until(lambda: count_opened() > opened_before, "the stream is open")
        hub = backend.services.availability
        await until(lambda: hub._compared_gap_count == hub._gap_count, "the slots are compared")
        yield slot, subscription


async def until(condition: Callable[[], bool], description: str) -> None:
    """Wait until the condition holds."""

    async def check() -> bool:
        return condition()

    await poll_until(check, bool, description)


def count_opened() -> float:
    """Return how many change streams this process has opened."""
    return REGISTRY.get_sample_value("slotlock_change_stream_opened_total") or 0.0


async def test_a_lost_message_is_replaced_by_the_change_stream(backend: Backend) -> None:
    async with watched_slot(backend) as (slot, subscription):
        state = slot
        for _ in range(3):
            state = await edit_silently(backend.database, state)
            await until(lambda: subscription.has_pending, "the change is found")
            assert subscription.take().version == state.version


async def test_control_without_the_change_stream_nothing_replaces_a_lost_message(
    backend: Backend,
) -> None:
    async with watched_slot(backend) as (slot, subscription):
        await backend.services.change_feed.stop()
        hub = backend.services.availability
        await hub.stop()
        await edit_silently(backend.database, slot)
        await hub.resync()
        assert not subscription.has_pending


async def test_with_a_dead_redis_the_newest_version_arrives(
    servers: EmbeddedServers, tmp_path: Path
) -> None:
    mongo_url = database_url(servers, "changes")
    with restartable_server(tmp_path / "valkey", "valkey") as valkey:
        async with running_backend(Settings(mongo_url=mongo_url, redis_url=valkey.url)) as backend:
            backend.services.slot_events.start()
            async with watched_slot(backend) as (slot, subscription):
                valkey.kill()
                state = slot
                for _ in range(3):
                    state = await edit_silently(backend.database, state)
                await until(lambda: latest(subscription) == state.version, "it arrives")
                # A watcher that comes while Redis is dead is served as well.
                async with backend.services.availability.subscribe([slot.id]) as late:
                    state = await edit_silently(backend.database, state)
                    await until(lambda: latest(late) == state.version, "it arrives")
                    assert latest(subscription) == state.version
            await backend.services.slot_events.stop()


def latest(subscription: AvailabilitySubscription) -> int:
    """Return the version that the reader of one slot reads next, or has read last."""
    return subscription._latest[subscription.slot_ids[0]].version


async def test_a_change_arrives_although_the_cursor_was_killed_before_it(backend: Backend) -> None:
    async with watched_slot(backend) as (slot, subscription):
        opened = count_opened()
        await backend.database.client.admin.command({"killAllSessions": []})
        await edit_silently(backend.database, slot)
        await until(lambda: subscription.has_pending, "the change is found")
        assert subscription.take().version == 2
        await until(lambda: count_opened() > opened, "another stream is open")


async def test_the_stream_ends_with_the_last_watcher_and_starts_again_with_the_next(
    backend: Backend,
) -> None:
    feed = backend.services.change_feed._feed
    task = feed._task
    assert task is None
    for _ in range(2):
        async with watched_slot(backend):
            task = feed._task
            assert task is not None
            assert not task.done()
        await until(task.done, "the stream ended")
        assert feed.stream._session is None
