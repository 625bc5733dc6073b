"""Subscribers leave a master that hangs: for its successor, or for another node of a Cluster."""

import logging
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.client import PubSub

from slotlock.infrastructure.redis import subscriber
from slotlock.infrastructure.redis.circuit_breaker import REDIS_DEGRADED
from slotlock.infrastructure.redis.client import RedisClient, close_client, redis_client
from slotlock.infrastructure.redis.subscriber import RedisSubscriber
from tests.support.apps.redis_topologies import (
    RedisNode,
    RedisTopology,
    cluster_topology,
    sentinel_topology,
)
from tests.support.polling import eventually

CHANNEL = "channel"
OPEN_TOPOLOGY: dict[str, Callable[[Path], AbstractContextManager[RedisTopology]]] = {
    "Sentinel": partial(sentinel_topology, replicas=1),
    "Cluster": cluster_topology,
}


@pytest.fixture(autouse=True)
def ping_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the subscribers notice silence after 0.8 s instead of 4 s."""
    monkeypatch.setattr(subscriber, "PING_INTERVAL_S", 0.2)


@asynccontextmanager
async def subscribed(url: str) -> AsyncIterator[tuple[RedisSubscriber, list[bytes]]]:
    """Yield a subscriber that receives, and what it receives."""
    client, received = redis_client(url), list[bytes]()
    opened = RedisSubscriber(client, lambda _, data: received.append(data), CHANNEL)
    opened.start()
    await opened.wait_until_subscribed(20)
    yield opened, received
    await opened.stop()
    await close_client(client)


def node_of(opened: RedisSubscriber, topology: RedisTopology) -> RedisNode:
    """Return the node to which the subscriber is connected."""
    port = getattr(getattr(opened._pubsub, "connection", None), "port", None)
    return next(node for node in topology.nodes if node.port == port)


async def is_degraded() -> bool:
    """Return whether this process reports that it does not use Redis fully."""
    return bool(REDIS_DEGRADED._value.get())


@pytest.mark.parametrize("name", OPEN_TOPOLOGY)
async def test_a_subscriber_leaves_a_frozen_master_and_receives_from_another(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "slotlock.redis")
    with OPEN_TOPOLOGY[name](tmp_path) as topology:
        async with subscribed(topology.url) as (opened, received):
            frozen = node_of(opened, topology)
            other = next(node for node in topology.nodes if node is not frozen)
            frozen.process.send_signal(signal.SIGSTOP)
            await eventually(is_degraded, "the subscriber reports a silent master")
            async with Redis(port=other.port) as publisher:

                async def receives() -> bool:
                    await publisher.publish(CHANNEL, b"a message")
                    return bool(received)

                await eventually(receives, "a message after the reconnection")
            assert node_of(opened, topology) is not frozen
            assert not await is_degraded()
    messages = [record.getMessage() for record in caplog.records]
    assert len([text for text in messages if "do not arrive" in text]) == 1
    assert len([text for text in messages if "arrive again" in text]) == 1


async def test_control_without_pings_a_subscriber_stays_at_a_frozen_master(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriber, "MAX_SILENT_INTERVALS", 1_000_000)
    with sentinel_topology(tmp_path, replicas=1) as topology:
        async with subscribed(topology.url) as (opened, received):
            frozen, replica = topology.nodes
            frozen.process.send_signal(signal.SIGSTOP)

            await eventually(
                lambda: "master" in replica.run_command("ROLE"), "the replica is promoted"
            )
            async with Redis(port=replica.port) as publisher:
                for _ in range(10):
                    assert await publisher.publish(CHANNEL, b"a message") == 0
            assert node_of(opened, topology) is frozen
            assert not await is_degraded()
            assert not received


async def test_control_a_subscriber_that_does_not_choose_its_node_returns_to_the_same_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened_at: list[object] = []

    async def open_by_channel(client: RedisClient, _: int) -> PubSub:
        assert isinstance(client, RedisCluster)
        await client.initialize()
        opened_at.append(getattr(client.get_node_from_key(CHANNEL), "port", None))
        return client.pubsub()

    monkeypatch.setattr(subscriber, "open_pubsub", open_by_channel)
    with cluster_topology(tmp_path) as topology:
        async with subscribed(topology.url) as (opened, _):
            left = node_of(opened, topology)
            left.process.kill()

            await eventually(lambda: len(opened_at) > 2, "two more attempts")
            assert set(opened_at) == {left.port}
            assert await is_degraded()
