"""Every fencing token that Redis hands out is recorded, and a check shows whether one fell."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.faults.checker.invariants import check_fences
from bench.faults.checker.report import Report
from bench.faults.controls.guards import COUNTED_FENCE, NEXT_FENCE
from bench.faults.fences import FenceRecorder
from bench.faults.history import FENCES, read_lines
from bench.faults.topology.links import Links
from bench.faults.topology.redis_servers import RedisNode, start_redis
from slotlock.infrastructure.redis.keys import lock_keys
from slotlock.infrastructure.redis.locks.lock_scripts import ACQUIRE, RELEASE
from tests.support.polling import poll_until


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[RedisNode]:
    links = Links()
    await links.start()
    redis = await start_redis("alone", tmp_path, links)
    yield redis.nodes[0]
    redis.kill()
    await links.stop()


def acquire_and_release(node: RedisNode, old: str, new: str) -> None:
    """Acquire and release a lock once, with a change of the scripts."""
    keys = lock_keys("a slot")
    node.execute("EVAL", ACQUIRE.replace(old, new), 3, *keys, "instance", 10_000, 0, -1, 0, "token")
    node.execute("EVAL", RELEASE.replace(old, new), 3, *keys, "instance", 0, "token")


@pytest.mark.parametrize(
    ("next_fence", "kinds"), [(NEXT_FENCE, []), (COUNTED_FENCE, ["fence fell"])]
)
async def test_a_fence_falls_after_a_loss_of_all_keys_only_without_the_time(
    node: RedisNode, tmp_path: Path, next_fence: str, kinds: list[str]
) -> None:
    recorder = FenceRecorder([node], tmp_path / FENCES)

    async def clients() -> bytes:
        return bytes(await asyncio.to_thread(node.execute, "CLIENT", "LIST"))

    await poll_until(clients, lambda found: b"cmd=monitor" in found, "the recorder is connected")
    for _ in range(2):
        acquire_and_release(node, NEXT_FENCE, next_fence)
        acquire_and_release(node, NEXT_FENCE, next_fence)
        node.execute("FLUSHALL")

    async def count() -> int:
        return recorder.count

    await poll_until(count, lambda recorded: recorded == 4, "all grants are recorded")
    await recorder.close()
    report = Report()
    check_fences(read_lines(tmp_path / FENCES), report)
    assert list(report.kinds()) == kinds
