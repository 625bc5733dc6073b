"""Faults of Redis: dead, frozen, silent, slow, full, evicting, empty, failed over, resharded."""

import asyncio
import random
import time
from collections.abc import Sequence

from bench.faults.injection.steps import Fault, freeze, separate
from bench.faults.topology.apps import FaultApp
from bench.faults.topology.deployment import Deployment
from bench.faults.topology.links import LOST, REFUSED, LinkState
from bench.faults.topology.redis_servers import HASH_SLOTS, RedisNode

MIB = 2**20
MIGRATED_SLOTS = 40
# One script, because a lock lives for some ms only. It spares the entries of the queue, because
# Redis never loses an entry without all later ones. It does delete the workers' locks.
DELETE_ONE_SCRIPT = """
local found = {}
for _, key in ipairs(redis.call('keys', 'slotlock:{*')) do
  if not string.find(key, '{queue:%d+}:') then table.insert(found, key) end
end
return #found > 0 and redis.call('del', found[ARGV[1] % #found + 1]) or 0
"""


def _choose(deployment: Deployment, rng: random.Random) -> RedisNode:
    if deployment.redis.kind == "cluster":
        return rng.choice(deployment.redis.nodes)
    return deployment.redis.find_master()


async def kill(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Kill the master, or a node of the Cluster, and start it again."""
    node = await asyncio.to_thread(_choose, deployment, rng)
    node.kill()
    await asyncio.sleep(seconds)
    await deployment.redis.start_node(node)
    return node.name


async def freeze_node(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Freeze the master, or a node of the Cluster."""
    node = await asyncio.to_thread(_choose, deployment, rng)
    await freeze([node], seconds)
    return node.name


async def _separate(
    deployment: Deployment, processes: Sequence[FaultApp], state: LinkState, seconds: float
) -> None:
    nodes = [node.name for node in deployment.redis.nodes]
    await separate(deployment, [each.name for each in processes], nodes, state, seconds)


async def silence(deployment: Deployment, _rng: random.Random, seconds: float) -> str:
    """Lose every packet between the processes and Redis."""
    await _separate(deployment, deployment.processes, LOST, seconds)
    return "all links"


async def isolate_app(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Cut an app off from Redis, which the others still reach."""
    app = rng.choice(deployment.apps)
    await _separate(deployment, [app], rng.choice((LOST, REFUSED)), seconds)
    return app.name


async def slow_down(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Give Redis a round trip of 300 to 1500 ms."""
    round_trip_s = rng.uniform(0.3, 1.5)
    await _separate(deployment, deployment.processes, LinkState(delay_s=round_trip_s / 2), seconds)
    return f"{round_trip_s * 1000:.0f} ms"


async def _limit_memory(deployment: Deployment, policy: str, seconds: float) -> str:
    for node in deployment.redis.nodes:
        await asyncio.to_thread(node.execute, "CONFIG", "SET", "maxmemory-policy", policy)
        await asyncio.to_thread(node.execute, "CONFIG", "SET", "maxmemory", 1 * MIB)
    await asyncio.sleep(seconds)
    for node in deployment.redis.nodes:
        await asyncio.to_thread(node.execute, "CONFIG", "SET", "maxmemory", 0)
    return "all nodes"


async def fill(deployment: Deployment, _rng: random.Random, seconds: float) -> str:
    """Let Redis reject all writes, because its memory is full."""
    return await _limit_memory(deployment, "noeviction", seconds)


async def evict(deployment: Deployment, _rng: random.Random, seconds: float) -> str:
    """Let Redis delete any keys, because its memory is full."""
    return await _limit_memory(deployment, "allkeys-random", seconds)


async def replace_by_empty(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Replace the master, or a node of the Cluster, by an empty one at the same address."""
    node = await asyncio.to_thread(_choose, deployment, rng)
    node.kill()
    node.empty()
    await deployment.redis.start_node(node)
    await asyncio.sleep(seconds)
    return node.name


async def flush(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Delete all keys at random times."""
    for _ in range(3):
        for node in deployment.redis.nodes:
            await asyncio.to_thread(node.execute, "FLUSHALL")
        await asyncio.sleep(rng.uniform(0, seconds / 3))
    return "all nodes"


async def delete_locks(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Delete random locks, also those that are held, so that only the version guards a slot."""
    until, deleted = time.monotonic() + seconds / 2, 0
    while time.monotonic() < until:
        node, index = rng.choice(deployment.redis.nodes), rng.randrange(1000)
        deleted += await asyncio.to_thread(node.execute, "EVAL", DELETE_ONE_SCRIPT, 0, index) or 0
    return f"{deleted} locks"


async def fail_over(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Let the Sentinels promote the replica on demand."""
    sentinel = rng.choice(deployment.redis.sentinels)
    await asyncio.to_thread(sentinel.execute, "SENTINEL", "FAILOVER", "slots")
    await asyncio.sleep(seconds)
    return sentinel.name


async def migrate_slots(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Move hash slots with their keys from one node of the Cluster to another."""
    source, target = rng.sample(deployment.redis.nodes, 2)
    await asyncio.to_thread(_migrate, source, target, deployment.redis.nodes, rng)
    await asyncio.sleep(seconds / 2)
    return f"{source.name} to {target.name}"


def _migrate(
    source: RedisNode, target: RedisNode, nodes: list[RedisNode], rng: random.Random
) -> None:
    source_id, target_id = (_node_id(node) for node in (source, target))
    owned, used = _owned_slots(source), _used_slots(source)
    chosen = used.union(rng.sample(owned, min(MIGRATED_SLOTS, len(owned))))
    for slot in sorted(chosen.intersection(owned))[:MIGRATED_SLOTS]:
        target.execute("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
        source.execute("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
        while keys := source.execute("CLUSTER", "GETKEYSINSLOT", slot, 100):
            command = ["MIGRATE", "127.0.0.1", target.port, "", 0, 1000, "REPLACE", "KEYS", *keys]
            if source.execute(*command) is None:
                break
        for node in (target, source, *nodes):
            node.execute("CLUSTER", "SETSLOT", slot, "NODE", target_id)


def _node_id(node: RedisNode) -> str:
    return str((node.execute("CLUSTER", "MYID") or b"").decode())


def _used_slots(node: RedisNode) -> set[int]:
    keys = node.execute("KEYS", "*") or ()
    return {int(node.execute("CLUSTER", "KEYSLOT", key) or 0) for key in keys}


def _owned_slots(node: RedisNode) -> list[int]:
    own_id = _node_id(node).encode()
    slots: list[int] = []
    for first, last, master, *_ in node.execute("CLUSTER", "SLOTS") or ():
        if master[2] == own_id:
            slots += range(int(first), min(int(last) + 1, HASH_SLOTS))
    return slots


FAULTS: dict[str, Fault] = {
    "Redis killed": kill,
    "Redis frozen": freeze_node,
    "Redis silent": silence,
    "Redis slow": slow_down,
    "Redis full": fill,
    "Redis evicts": evict,
    "Redis loses all keys": flush,
    "Redis loses locks": delete_locks,
    "Redis replaced by an empty one": replace_by_empty,
    "partition: app without Redis": isolate_app,
}
SENTINEL_FAULTS: dict[str, Fault] = {"Redis failed over by Sentinel": fail_over}
CLUSTER_FAULTS: dict[str, Fault] = {"Redis Cluster slots migrated": migrate_slots}
FAULTS_BY_KIND = {
    "alone": FAULTS,
    "sentinel": {**FAULTS, **SENTINEL_FAULTS},
    "cluster": {**FAULTS, **CLUSTER_FAULTS},
}
