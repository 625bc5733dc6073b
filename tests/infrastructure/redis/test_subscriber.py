"""Callers that leave while channels are added or removed: they end, and nobody else notices."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Literal

import pytest

from slotlock.infrastructure.redis.client import RedisClient, close_client, redis_client
from slotlock.infrastructure.redis.subscriber import RedisSubscriber
from tests.support.apps.processes import free_port
from tests.support.apps.restartable_servers import RestartableServer
from tests.support.polling import eventually

# A command is sent within fewer rounds of the event loop.
MAX_ROUNDS = 10
END_TIMEOUT_S = 20.0


class Subscriber:
    """A subscriber that records what it receives, and a client that publishes."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._received: set[str] = set()
        self.subscriber = RedisSubscriber(client, self._on_message, "first")

    def _on_message(self, channel: str, _: bytes) -> None:
        self._received.add(channel)
        if channel == "bug":
            raise AttributeError("a bug in a handler")

    async def receives(self, channel: str) -> bool:
        """Publish once and return whether a message of the channel has arrived."""
        await self._client.publish(channel, "a message")
        await asyncio.sleep(0.01)
        return channel in self._received


@pytest.fixture
async def opened(valkey: RestartableServer) -> AsyncIterator[Subscriber]:
    client = redis_client(valkey.url)
    opened = Subscriber(client)
    opened.subscriber.start()
    await opened.subscriber.wait_until_subscribed(END_TIMEOUT_S)
    yield opened
    await opened.subscriber.stop()
    await close_client(client)


@pytest.mark.parametrize("command", ["subscribe", "unsubscribe"])
async def test_a_caller_who_is_cancelled_at_any_moment_ends_and_the_connection_stays(
    opened: Subscriber, command: Literal["subscribe", "unsubscribe"]
) -> None:
    subscriber = opened.subscriber
    connection = subscriber._pubsub
    for rounds in range(MAX_ROUNDS):
        channel = f"channel-{rounds}"
        if command == "unsubscribe":
            await subscriber.subscribe({channel})

        async def call_and_wait(channel: str = channel) -> None:
            await getattr(subscriber, command)({channel})
            await asyncio.Event().wait()

        task = asyncio.create_task(call_and_wait())
        for _ in range(rounds):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=END_TIMEOUT_S)
        assert done, f"the caller is still there, cancelled after {rounds} rounds"
        assert subscriber._pubsub is connection
    await subscriber.subscribe({"last"})
    await eventually(lambda: opened.receives("last"), "a message on the last channel")
    assert subscriber._pubsub is connection


async def test_a_channel_is_added_although_its_caller_was_cancelled(opened: Subscriber) -> None:
    task = asyncio.create_task(opened.subscriber.subscribe({"channel"}))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    await eventually(lambda: opened.receives("channel"), "a message on the channel")


async def test_an_unavailable_server_is_no_error(
    opened: Subscriber, valkey: RestartableServer
) -> None:
    valkey.kill()
    await opened.subscriber.subscribe({"channel"})
    await opened.subscriber.unsubscribe({"channel"})
    await opened.subscriber.subscribe({"channel"})
    valkey.start()
    await eventually(lambda: opened.receives("channel"), "a message after the restart")


async def test_a_connection_that_another_task_closes_meanwhile_is_no_error(
    opened: Subscriber,
) -> None:
    assert opened.subscriber._pubsub is not None
    connection: Any = opened.subscriber._pubsub.connection
    writer, connection._writer = connection._writer, None  # as while redis-py disconnects
    await opened.subscriber.subscribe({"channel"})
    await eventually(lambda: opened.receives("channel"), "a message on a new connection")
    writer.close()


async def test_channels_that_are_added_while_the_connection_opens_are_received(
    valkey: RestartableServer,
) -> None:
    client = redis_client(valkey.url)
    opened = Subscriber(client)
    subscriber, channels = opened.subscriber, [f"channel-{n}" for n in range(MAX_ROUNDS)]
    subscriber.start()
    for channel in channels:
        await subscriber.subscribe({channel})
        await asyncio.sleep(0)
    assert not subscriber._subscribed.is_set()
    for channel in channels:
        await eventually(partial(opened.receives, channel), f"a message on {channel}")
    await subscriber.stop()
    await close_client(client)


async def test_a_bug_in_a_handler_is_logged_and_the_connection_stays(
    opened: Subscriber, caplog: pytest.LogCaptureFixture
) -> None:
    connection = opened.subscriber._pubsub
    await opened.subscriber.subscribe({"bug", "later"})
    for channel in ("bug", "later"):
        await eventually(partial(opened.receives, channel), f"a message of {channel}")
    assert opened.subscriber._pubsub is connection
    assert "a bug in a handler" in caplog.text


async def test_a_bug_of_the_receiver_is_no_lost_connection_and_messages_arrive_again(
    opened: Subscriber, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscriber = opened.subscriber
    on_received = subscriber._on_received

    def fail_once() -> None:
        monkeypatch.setattr(subscriber, "_on_received", on_received)
        raise AttributeError("a bug", name="append", obj=None)

    monkeypatch.setattr(subscriber, "_on_received", fail_once)
    await subscriber.subscribe({"channel"})
    await eventually(lambda: opened.receives("channel"), "a message after the bug")
    assert [each.exc_info[0] for each in caplog.records if each.exc_info] == [AttributeError]


@pytest.mark.parametrize(
    "url", ["redis://{}/0", "redis+cluster://{}", "redis+sentinel://{}/slots/0"]
)
async def test_the_receiver_tries_again_while_no_node_is_reached(url: str) -> None:
    client = redis_client(url.format(f"127.0.0.1:{free_port()}"))
    subscriber = RedisSubscriber(client, lambda _channel, _data: None, "first")
    first = subscriber._attempts
    subscriber.start()
    await eventually(lambda: subscriber._attempts > first + 1, "a second attempt")
    await subscriber.stop()
    await close_client(client)
