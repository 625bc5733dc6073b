"""A write that gets its majority late arrives, whichever stream began meanwhile."""

from collections.abc import Awaitable, Callable, Iterator

import pytest
from bson import ObjectId, Timestamp
from pymongo import WriteConcern

from slotlock.api.settings.settings import Settings
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure import shared_change_feed
from slotlock.infrastructure.mongo.change_stream.change_stream import WATCHED_CHANGES, ChangeStream
from slotlock.infrastructure.mongo.client import Document
from tests.support.apps.processes import free_port
from tests.support.apps.restartable_servers import RestartableServer, restartable_server
from tests.support.scenarios.stalled_majority import FAILPOINTS, stalled_majority
from tests.support.scenarios.watched_slot import Watched, Watcher, two_processes, until

CASES = pytest.mark.parametrize(
    "is_control", [False, True], ids=["", "control, begun at the last applied write"]
)


@pytest.fixture(scope="module")
def mongod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartableServer]:
    """Yield a mongod that has failpoints."""
    directory = tmp_path_factory.mktemp("stalls") / "mongod"
    with restartable_server(directory, "mongod", FAILPOINTS) as running:
        yield running


@pytest.fixture
def mongo_url(mongod: RestartableServer) -> str:
    """Return the URL of a new database."""
    return mongod.url.replace("/own?", f"/stall{ObjectId()}?")


@pytest.fixture(autouse=True)
def _begin_stream(monkeypatch: pytest.MonkeyPatch, *, is_control: bool) -> None:
    """Begin streams at once, and in a control where MongoDB begins them without a time."""
    monkeypatch.setattr(shared_change_feed, "FIRST_DIGEST_S", 0.1)
    if is_control:
        monkeypatch.setattr(ChangeStream, "_open_cursor", _open_at_last_applied)


async def _open_at_last_applied(stream: ChangeStream, _: Timestamp, _options: Document) -> int:
    pipeline = [{"$changeStream": {}}, *WATCHED_CHANGES]
    majority = {"level": "majority"}
    command = {"aggregate": 1, "pipeline": pipeline, "cursor": {}, "readConcern": majority}
    return int((await stream._run(command))["cursor"]["id"])


async def edit_without_majority(watched: Watched) -> None:
    """Change the slot, and do not wait until a majority has the change."""
    slots = (
        watched.watchers[0].backend.database["slots"].with_options(write_concern=WriteConcern(1))
    )
    await slots.update_one({"_id": ObjectId(watched.slot.id)}, {"$inc": {"version": 1}})


async def assert_edit_arrives(watcher: Watcher, *, is_control: bool) -> None:
    """Wait for the edit; in a control, for two replies of the stream that do not contain it."""
    if not is_control:
        await until(lambda: watcher.version == 2, "the edit arrives")
        return
    replies = watcher.feed._number
    await until(lambda: watcher.feed._number >= replies + 2, "the stream goes on")
    assert not watcher.backend.services.availability._outdated
    assert watcher.version == 1


@CASES
async def test_a_late_majority_reaches_a_stream_that_began_in_the_stall(
    mongo_url: str, *, is_control: bool
) -> None:
    without_redis = Settings(mongo_url=mongo_url, redis_url=f"redis://127.0.0.1:{free_port()}")
    async with two_processes(without_redis) as watched:
        other, watcher = watched.watchers
        await until(lambda: other.has_stream, "each process reads a stream")
        await watcher.stack.aclose()
        await until(lambda: not watcher.has_stream, "the stream ends with its last watcher")
        with stalled_majority(mongo_url):
            await edit_without_majority(watched)
            subscribing = watcher.backend.services.availability.subscribe([watched.slot.id])
            watcher.subscription = await watcher.stack.enter_async_context(subscribing)
            await until(lambda: watcher.has_stream and watcher.has_compared, "a stream begins")
            assert watcher.version == 1
        await assert_edit_arrives(watcher, is_control=is_control)
        await assert_edit_arrives(other, is_control=False)


async def kill_reader(reader: Watcher) -> None:
    """Stop reading without a last digest."""
    await reader.feed._feed.stop()


async def stop_reader(reader: Watcher) -> None:
    """End the only subscription of the reader."""
    await reader.stack.aclose()


@CASES
@pytest.mark.parametrize("end", [kill_reader, stop_reader])
async def test_a_late_majority_reaches_the_process_that_took_over_in_the_stall(
    servers: EmbeddedServers,
    mongo_url: str,
    end: Callable[[Watcher], Awaitable[None]],
    *,
    is_control: bool,
) -> None:
    settings = Settings(mongo_url=mongo_url, redis_url=servers.redis_url)
    async with two_processes(settings) as watched:
        reader, other = await watched.until_shared()
        with stalled_majority(mongo_url):
            await edit_without_majority(watched)
            await end(reader)
            await until(lambda: other.has_stream and other.has_compared, "it takes over")
            assert other.version == 1
        await assert_edit_arrives(other, is_control=is_control)
        if end is kill_reader and not is_control:
            await assert_edit_arrives(reader, is_control=False)
