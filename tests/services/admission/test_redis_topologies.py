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
async def deployment_on(
    topology: RedisTopology, servers: EmbeddedServers, directory: Path
) -> AsyncIterator[tuple[Deployment, AppProcess]]:
    """Open a deployment on this topology, and an app that serves no queue."""
    settings = app_environment(servers, "queue_topologies") | {"SLOTLOCK_QUEUE_WORKER": "off"}
    one_node = {"SLOTLOCK_REDIS_URL": f"redis://127.0.0.1:{topology.nodes[0].port}/0"}
    async with open_deployment(
        settings | one_node, directory / "logs", member_count=6
    ) as deployment:
        settings["SLOTLOCK_REDIS_URL"] = topology.url
        with forked_app(settings, directory / "frontend") as frontend:
            yield replace(deployment, environment=settings), frontend


@pytest.mark.parametrize("name", ["Sentinel", "Cluster"])
async def test_requests_are_queued_watched_and_answered_in_order_with_every_topology(
    servers: EmbeddedServers, tmp_path: Path, name: str
) -> None:
    with TOPOLOGIES[name](tmp_path) as topology:
        async with deployment_on(topology, servers, tmp_path) as (deployment, frontend):
            queues = [
                await enqueue_users(deployment, frontend, user_count=4, capacity=2)
                for _ in range(4)
            ]
            async with watch_ticket(queues[0], 3) as watcher:
                assert (await watcher.next_result())["position"] == 4
                for _ in range(2):
                    deployment.worker()
                for queued in queues:
                    await queued.assert_results("Booked", "Booked", "SlotFull", "SlotFull")
                await expect_final_status(watcher, "ANSWERED")


async def test_each_ticket_has_one_outcome_after_sentinel_promotes_another_master(
    servers: EmbeddedServers, tmp_path: Path
) -> None:
    with sentinel_topology(tmp_path, replicas=1) as topology:
        async with deployment_on(topology, servers, tmp_path) as (deployment, frontend):
            queued = await enqueue_users(deployment, frontend, user_count=4, capacity=2)
            deployment.worker()
            topology.nodes[0].process.kill()
            # Requests that were not replicated are lost, and their tickets report it.
            await poll_until(
                queued.result_names, lambda names: "QUEUED" not in names, "final states"
            )
            tickets = await queued.fetch_tickets()
            assert await queued.fetch_tickets() == tickets
            queued.assert_roster(tickets)
