"""The admission queue behind Sentinels and on a Cluster."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.apps.redis_topologies import TOPOLOGIES, RedisTopology, sentinel_topology
from tests.support.polling import poll_until
from tests.support.queue.queued_users import enqueue_users, expect_final_status, watch_ticket


@asynccontextmanager
async def served_on(
    redis_topology: RedisTopology, servers: EmbeddedServers, home: Path
) -> AsyncIterator[tuple[Deployment, AppProcess]]:
    """A scene whose processes know this fleet, and the first of them."""
    settings = app_environment(servers, "queue_fleets") | {"SLOTLOCK_QUEUE_WORKER": "off"}
    one_node = {"SLOTLOCK_REDIS_URL": f"redis://127.0.0.1:{redis_topology.nodes[0].port}/0"}
    async with open_deployment(settings | one_node, home / "logs", member_count=6) as scene:
        settings["SLOTLOCK_REDIS_URL"] = redis_topology.url
        with forked_app(settings, home / "front") as front:
            yield replace(scene, environment=settings), front


@pytest.mark.parametrize("shape", ["Sentinel", "Cluster"])
async def test_tickets_are_given_watched_and_answered_in_order_on_any_shape_of_redis(
    servers: EmbeddedServers, tmp_path: Path, shape: str
) -> None:
    with TOPOLOGIES[shape](tmp_path) as redis_topology:
        async with served_on(redis_topology, servers, tmp_path) as (scene, front):
            lines = [await enqueue_users(scene, front, user_count=4, capacity=2) for _ in range(4)]
            async with watch_ticket(lines[0], 3) as watcher:
                assert (await watcher.next_result())["position"] == 4
                for _ in range(2):
                    scene.worker()
                for line in lines:
                    await line.assert_results("Booked", "Booked", "SlotFull", "SlotFull")
                await expect_final_status(watcher, "ANSWERED")


async def test_when_another_master_is_named_each_ticket_has_one_outcome_all_the_same(
    servers: EmbeddedServers, tmp_path: Path
) -> None:
    with sentinel_topology(tmp_path, replicas=1) as redis_topology:
        async with served_on(redis_topology, servers, tmp_path) as (scene, front):
            line = await enqueue_users(scene, front, user_count=4, capacity=2)
            scene.worker()
            redis_topology.nodes[0].process.kill()

            async def look() -> dict[str, list[str]]:
                return {"told": await line.result_names()}

            # What was not copied yet is lost, and told so.
            await poll_until(
                look, lambda seen: "QUEUED" not in seen["told"], "each has a final outcome"
            )
            told = await line.fetch_tickets()
            assert await line.fetch_tickets() == told
            line.assert_roster(told)
