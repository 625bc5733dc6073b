"""The admission queue behind Sentinels and on a Cluster."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from slotlock.api.embedded import Servers
from tests.support.desk import wait_for
from tests.support.fleets import SHAPES, Fleet, behind_sentinel
from tests.support.processes import AppProcess, environment
from tests.support.queue_scenes import heard_the_end, stand, watching
from tests.support.stage import Scene, scene_on
from tests.support.troupe import forked_app


@asynccontextmanager
async def served_on(
    fleet: Fleet, servers: Servers, home: Path
) -> AsyncIterator[tuple[Scene, AppProcess]]:
    """A scene whose processes know this fleet, and the first of them."""
    settings = environment(servers, "queue_fleets") | {"SLOTLOCK_QUEUE_WORKER": "off"}
    one_node = {"SLOTLOCK_REDIS_URL": f"redis://127.0.0.1:{fleet.nodes[0].port}/0"}
    async with scene_on(settings | one_node, home / "logs", people=6) as scene:
        settings["SLOTLOCK_REDIS_URL"] = fleet.url
        with forked_app(settings, home / "front") as front:
            yield replace(scene, environment=settings), front


@pytest.mark.parametrize("shape", ["Sentinel", "Cluster"])
async def test_tickets_are_given_watched_and_answered_in_order_on_any_shape_of_redis(
    servers: Servers, tmp_path: Path, shape: str
) -> None:
    with SHAPES[shape](tmp_path) as fleet:
        async with served_on(fleet, servers, tmp_path) as (scene, front):
            lines = [await stand(scene, front, size=4, places=2) for _ in range(4)]
            async with watching(lines[0], 3) as watcher:
                assert (await watcher.next())["place"] == 4
                for _ in range(2):
                    scene.worker()
                for line in lines:
                    await line.assert_served("Booked", "Booked", "SlotFull", "SlotFull")
                await heard_the_end(watcher, "ANSWERED")


async def test_when_another_master_is_named_each_ticket_has_one_outcome_all_the_same(
    servers: Servers, tmp_path: Path
) -> None:
    with behind_sentinel(tmp_path, replicas=1) as fleet:
        async with served_on(fleet, servers, tmp_path) as (scene, front):
            line = await stand(scene, front, size=4, places=2)
            scene.worker()
            fleet.nodes[0].process.kill()

            async def look() -> dict[str, list[str]]:
                return {"told": await line.told()}

            # What was not copied yet is lost, and told so.
            await wait_for(
                look, lambda seen: "QUEUED" not in seen["told"], "each has a final outcome"
            )
            told = await line.look()
            assert await line.look() == told
            line.assert_roster(told)
