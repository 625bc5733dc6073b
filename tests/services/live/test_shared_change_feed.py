"""One process of all reads the change stream, and the others receive its digests."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import orjson
import pytest

from slotlock.api.backend import Backend, open_backend, run_live_hubs
from slotlock.api.settings.settings import Settings
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.users.user import UserId
from slotlock.infrastructure import shared_change_feed
from slotlock.infrastructure.mongo.changes.stream import Changes
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.shared_change_feed import (
    ChangeDigest,
    SharedChangeFeed,
    to_digest,
)
from slotlock.services.live.availability import AvailabilitySubscription
from tests.support.apps.processes import database_url
from tests.support.apps.restartable_servers import restartable_server
from tests.support.domain.builders import build_slot
from tests.support.polling import poll_until
from tests.support.stores.slot_edits import edit_silently
from tests.support.stores.slots import insert_new_slots


@dataclass
class Watcher:
    """A process with a subscription to the slot."""

    backend: Backend
    subscription: AvailabilitySubscription
    stack: AsyncExitStack

    @property
    def feed(self) -> SharedChangeFeed:
        """The changes that the process receives."""
        return self.backend.services.change_feed

    @property
    def has_stream(self) -> bool:
        """Whether the process has a change stream open."""
        return self.feed._feed._stream._cursor_id != 0

    @property
    def has_compared(self) -> bool:
        """Whether no comparison of all slots is under way."""
        is_outdated = self.backend.services.availability._is_any_outdated
        return self.feed._comparison is None and not is_outdated

    @property
    def version(self) -> int:
        """The latest version of the slot that the process received."""
        return self.subscription._latest[self.subscription.slot_ids[0]].version


@dataclass
class Watched:
    """A slot and two processes that watch it."""

    slot: SlotState
    watchers: tuple[Watcher, Watcher]

    async def until_shared(self) -> tuple[Watcher, Watcher]:
        """Wait until only one of the processes has a stream; return it, and then the other."""

        def is_shared() -> bool:
            roles = [(watcher.has_stream, watcher.feed._next) for watcher in self.watchers]
            return sorted((has, next_ is None) for has, next_ in roles) == [
                (False, False),
                (True, True),
            ] and all(watcher.has_compared for watcher in self.watchers)

        await until(is_shared, "one process reads the stream, the other one its digests")
        first, second = self.watchers
        return (first, second) if first.has_stream else (second, first)

    async def edit(self) -> None:
        """Change the slot without a message."""
        self.slot = await edit_silently(self.watchers[0].backend.database, self.slot)

    async def until_received(self, *watchers: Watcher) -> None:
        """Wait until these processes have the latest version."""
        await until(
            lambda: all(watcher.version == self.slot.version for watcher in watchers),
            "the lost message is replaced",
        )


async def until(condition: Callable[[], bool], description: str) -> None:
    """Wait until the condition holds."""

    async def check() -> bool:
        return condition()

    await poll_until(check, bool, description)


@asynccontextmanager
async def two_processes(settings: Settings) -> AsyncIterator[Watched]:
    """Run the live updates of two processes that watch one slot."""
    slot = build_slot(5, id=new_slot_id())
    async with AsyncExitStack() as stack:
        watchers: list[Watcher] = []
        for _ in range(2):
            backend = await stack.enter_async_context(open_backend(settings))
            await stack.enter_async_context(run_live_hubs(backend.services))
            if not watchers:
                await insert_new_slots(backend.database, slot)
            own = await stack.enter_async_context(AsyncExitStack())
            subscribing = backend.services.availability.subscribe([slot.id])
            watchers.append(Watcher(backend, await own.enter_async_context(subscribing), own))
        yield Watched(slot, (watchers[0], watchers[1]))


@pytest.fixture
async def watched(servers: EmbeddedServers) -> AsyncIterator[Watched]:
    """Yield a slot that two processes watch."""
    settings = Settings(mongo_url=database_url(servers, "digests"), redis_url=servers.redis_url)
    async with two_processes(settings) as opened:
        yield opened


async def until_one_stream(backend: Backend) -> None:
    """Wait until mongod has one change stream open for this database."""
    filters = {"cursor.originatingCommand.aggregate": 1}
    pipeline = [{"$currentOp": {"idleCursors": True}}, {"$match": filters}]
    command = {"aggregate": 1, "pipeline": pipeline, "cursor": {}}

    async def count() -> int:
        reply = await backend.database.client.admin.command(command)
        originating = [op["cursor"]["originatingCommand"] for op in reply["cursor"]["firstBatch"]]
        return sum(origin["$db"] == backend.database.name for origin in originating)

    # A cursor that a command is about to use is not listed.
    await poll_until(count, lambda found: found == 1, "one stream is open")


async def test_one_stream_serves_two_processes_and_passes_to_the_one_that_stays(
    watched: Watched,
) -> None:
    reader, other = await watched.until_shared()
    await until_one_stream(reader.backend)
    await watched.edit()
    await watched.until_received(reader, other)

    await reader.stack.aclose()
    await watched.edit()
    await watched.until_received(other)
    await until(lambda: other.has_stream and not reader.has_stream, "the stream passes on")
    await watched.edit()
    await watched.until_received(other)
    await until_one_stream(other.backend)


async def test_another_process_reads_the_stream_after_the_reader_died(watched: Watched) -> None:
    reader, other = await watched.until_shared()
    await reader.feed._feed.stop()  # without a last digest
    await watched.edit()
    await watched.until_received(other)
    assert other.has_stream
    await watched.edit()
    await watched.until_received(reader, other)


@pytest.mark.parametrize("is_checked", [True, False], ids=["numbers", "control, without numbers"])
async def test_a_lost_digest_leads_to_a_comparison(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, *, is_checked: bool
) -> None:
    reader, other = await watched.until_shared()
    monkeypatch.setattr(shared_change_feed, "SILENCE_S", 60.0)
    expected = other.feed._next
    await until(lambda: other.feed._next != expected, "a digest without a short timeout")
    events = other.backend.services.slot_events
    await events.unsubscribe_digests(other.feed._channel)
    await watched.edit()
    await watched.until_received(reader)
    missed = reader.feed._number
    await until(lambda: reader.feed._number > missed, "the digest is published")
    assert other.version < watched.slot.version
    if not is_checked:
        other.feed._next = (reader.feed._stream_id, reader.feed._number)
    expected = other.feed._next
    await events.subscribe_digests(other.feed._channel, other.feed.on_digest)
    await until(lambda: other.feed._next != expected, "digests come again")
    if is_checked:
        await watched.until_received(other)
    else:
        assert other.feed._comparison is None
        assert other.version < watched.slot.version
    assert not other.has_stream


async def test_without_redis_each_process_reads_a_stream_until_redis_is_back(
    servers: EmbeddedServers, tmp_path: Path
) -> None:
    mongo_url = database_url(servers, "digests")
    with restartable_server(tmp_path / "valkey", "valkey") as valkey:
        async with two_processes(Settings(mongo_url=mongo_url, redis_url=valkey.url)) as watched:
            await watched.until_shared()
            valkey.kill()
            await watched.edit()
            await watched.until_received(*watched.watchers)
            await until(lambda: all(w.has_stream for w in watched.watchers), "two streams")
            await watched.edit()
            await watched.until_received(*watched.watchers)

            valkey.start()
            # Changes while the streams become one again.
            for _ in range(5):
                await watched.edit()
                await watched.until_received(*watched.watchers)
            await watched.until_shared()
            await watched.edit()
            await watched.until_received(*watched.watchers)


def test_a_digest_carries_deleted_slots_and_one_of_an_older_version_has_none() -> None:
    deleted = frozenset({SlotId("gone")})
    changes = Changes({SlotId("s"): 2}, frozenset({UserId("u")}), frozenset({"session"}), deleted)
    digest = ChangeDigest("reader", "stream", 7, False, changes)
    assert to_digest(digest.to_message()) == digest
    *older_fields, _ = orjson.loads(digest.to_message())
    older = to_digest(orjson.dumps(older_fields))
    assert older == replace(digest, changes=replace(changes, deleted_slot_ids=frozenset()))
