"""One process of all reads the change stream, and the others receive its digests."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from bson import ObjectId

from slotlock.api.backend import Backend
from slotlock.api.settings.settings import Settings
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.users.user import UserId
from slotlock.infrastructure import shared_change_feed
from slotlock.infrastructure.mongo.change_stream.change_feed import ChangeFeed
from slotlock.infrastructure.mongo.change_stream.change_stream import ChangeBatch, ChangeStream
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.shared_change_feed import (
    ADDED_FIELDS,
    ChangeDigest,
    SharedChangeFeed,
    to_digest,
)
from tests.support.apps.processes import database_url
from tests.support.apps.restartable_servers import restartable_server
from tests.support.polling import poll_until
from tests.support.scenarios.watched_slot import Watched, two_processes, until


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


@pytest.mark.parametrize("found", ["by its number", "by an election", "not, as a control"])
async def test_a_lost_digest_leads_to_a_comparison(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, found: str
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
    if found != "by its number":
        election_id = (
            ObjectId() if found == "by an election" else other.feed._feed.stream.election_id()
        )
        other.feed._next = (reader.feed._stream_id, reader.feed._number, election_id)
    expected = other.feed._next
    await events.subscribe_digests(other.feed._channel, other.feed.on_digest)
    await until(lambda: other.feed._next != expected, "digests come again")
    if found != "not, as a control":
        await watched.until_received(other)
    else:
        assert other.feed._comparison is None
        assert other.version < watched.slot.version
    assert not other.has_stream


async def test_only_a_digest_that_does_not_follow_the_last_one_leads_to_a_comparison() -> None:
    # Nothing is sent: nobody listens at these ports.
    client, database = connect("mongodb://127.0.0.1:1/digests")
    pipeline = AutoPipeline(redis_client("redis://127.0.0.1:1"))
    feed = SharedChangeFeed(ChangeFeed(ChangeStream(database)), pipeline)
    feed._watcher_count = 1
    compared = []
    for number in (7, 8, 9, 11, 12):
        digest = ChangeDigest("reader", "stream", number, False, shared_change_feed.NO_CHANGES)
        feed.on_digest(digest.to_message())
        if feed._comparison is not None:
            compared.append(number)
            feed._comparison.cancel()
            feed._compare()
    assert compared == [7, 11]
    await feed.stop()
    await pipeline.close()
    await client.close()


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


def test_a_digest_carries_what_later_versions_added_and_one_of_an_older_version_lacks_it() -> None:
    deleted = frozenset({SlotId("gone")})
    changes = ChangeBatch(
        {SlotId("s"): 2},
        frozenset({UserId("u")}),
        frozenset({"session"}),
        deleted,
        frozenset({SlotId("s")}),
        frozenset({CampaignId("c")}),
    )
    digest = ChangeDigest("reader", "stream", 7, False, changes)
    assert to_digest(digest.to_message()) == digest
    older = to_digest(orjson.dumps(orjson.loads(digest.to_message())[:-ADDED_FIELDS]))
    without = ChangeBatch(changes.slot_versions, changes.user_ids, changes.session_ids)
    assert older == replace(digest, changes=without)
