"""Checks of Redis or Valkey: version, role, eviction, memory and persistence."""

from collections.abc import AsyncIterator, Mapping
from time import time
from typing import Any

from redis.asyncio import RedisCluster
from redis.exceptions import RedisClusterException, RedisError

from slotlock.api.settings.settings import Settings
from slotlock.cli.doctor.finding import Finding, check_clock, fail, ok, warning
from slotlock.devserver.binaries import VALKEY
from slotlock.infrastructure.redis.client import (
    RedisClient,
    check_writable,
    close_client,
    parse_address,
    redis_client,
)

BYTES_PER_REQUEST = 600
MAX_MEMORY_SHARE = 0.8
MEGABYTE = 1024 * 1024

Info = Mapping[str, Any]


async def check_redis(settings: Settings) -> AsyncIterator[Finding]:
    """Yield a finding for each check, of each master."""
    url = settings.redis_url or ""
    client = redis_client(url)
    try:
        await check_writable(client)
        servers = await _read_servers(client)
        if isinstance(client, RedisCluster):
            yield ok("Redis", f"a Cluster with {len(servers)} masters accepts writes")
        for name, (sent_s, info, server_s, received_s) in servers.items():
            mode = parse_address(url).mode
            yield _check_version(name, info, mode)
            limit_s = settings.max_clock_skew_s
            yield check_clock(f"Redis clock{name}", sent_s, server_s, received_s, limit_s)
            yield _check_eviction(name, info)
            yield _check_memory(name, info, settings, len(servers))
            yield _check_persistence(name, info)
    except (RedisError, RedisClusterException, OSError) as error:
        # The text may quote the address, but never the password.
        reason = " ".join(str(error).split()) or type(error).__name__
        yield fail(
            "Redis",
            f"{reason}; bookings continue without it, but slower and without the queue",
            "start it, or correct SLOTLOCK_REDIS_URL and its user",
        )
    finally:
        await close_client(client)


async def _read_servers(client: RedisClient) -> dict[str, tuple[float, Info, float, float]]:
    """Return INFO and TIME of each master, with the times before and after TIME.

    The key is empty for a single server, else it names the master.
    """
    if not isinstance(client, RedisCluster):
        return {"": await _read_server(client, {})}
    return {
        f" {node.name}": await _read_server(client, {"target_nodes": node})
        for node in client.get_primaries()
    }


async def _read_server(
    client: RedisClient, target: dict[str, Any]
) -> tuple[float, Info, float, float]:
    info = await client.info(**target)
    sent_s = time()
    seconds, microseconds = await client.time(**target)
    return sent_s, info, seconds + microseconds / 1e6, time()


def _check_version(name: str, info: Info, mode: str) -> Finding:
    check = f"Redis{name}"
    product = "Valkey" if "valkey_version" in info else "Redis"
    version = str(info.get("valkey_version") or info["redis_version"])
    if int(version.split(".")[0]) < VALKEY.min_major_version:
        return fail(check, f"{product} {version} is too old", "upgrade to Redis 7 or Valkey 8")
    if info.get("cluster_enabled") and mode != "cluster":
        advice = "begin SLOTLOCK_REDIS_URL with redis+cluster://"
        return fail(check, f"{product} {version} is a node of a Cluster", advice)
    role = f", master {name.strip()}" if name else ""
    behind = ", found through Sentinel" if mode == "sentinel" else ""
    return ok(check, f"{product} {version} accepts writes{role}{behind}")


def _check_eviction(name: str, info: Info) -> Finding:
    check, policy = f"Redis eviction{name}", info["maxmemory_policy"]
    if policy == "noeviction":
        return ok(check, f"maxmemory-policy is {policy}")
    found = f"maxmemory-policy is {policy}, so requests in the queue and locks may disappear"
    return fail(check, found, "run CONFIG SET maxmemory-policy noeviction, and change its file")


def _check_memory(name: str, info: Info, settings: Settings, servers: int) -> Finding:
    check = f"Redis memory{name}"
    used, limit = info["used_memory"], info["maxmemory"]
    queue = settings.queue_partitions * settings.queue_length * BYTES_PER_REQUEST // servers
    if not limit:
        return ok(check, f"{used / MEGABYTE:.0f} MB used, no maxmemory")
    found = f"{used / MEGABYTE:.0f} of {limit / MEGABYTE:.0f} MB used"
    if used > MAX_MEMORY_SHARE * limit:
        return fail(check, found, "raise maxmemory, or find what else uses this Redis")
    if queue > limit:
        found += f", and a full admission queue needs {queue / MEGABYTE:.0f} MB"
        return warning(check, found, "raise maxmemory, or lower SLOTLOCK_QUEUE_LENGTH")
    return ok(check, found)


def _check_persistence(name: str, info: Info) -> Finding:
    check = f"Redis persistence{name}"
    if "err" in (info.get("aof_last_write_status"), info.get("rdb_last_bgsave_status")):
        return fail(check, "the last write to its disk failed", "see the log of Redis and its disk")
    if info.get("aof_enabled"):
        return ok(check, "append-only file; the queue survives a restart of Redis")
    return ok(check, "no append-only file; a restart of Redis may lose requests in the queue")
