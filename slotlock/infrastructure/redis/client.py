"""Opens a client to one Redis, to the master behind Sentinels or to a Cluster, by its address."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from redis.asyncio import Redis, RedisCluster, Sentinel
from redis.asyncio.client import PubSub
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool, SentinelManagedSSLConnection
from redis.backoff import NoBackoff

RedisClient = Redis | RedisCluster

CONNECT_TIMEOUT_S = 1.0
# The line waits for less, but not while its loop is too busy to read.
SOCKET_TIMEOUT_S = 2.0
PROBE_TTL_MS = 1000
# Keys tried for one that lies on each node of a Cluster.
MAX_PROBE_KEYS = 1000

SENTINEL_PORT = 26379
CLUSTER_PORT = 6379
ADDRESS_EXAMPLES = {
    "": "redis://:password@host:6379/0",
    "sentinel": "redis+sentinel://:password@host:26379,host:26379/master-name/0",
    "cluster": "redis+cluster://:password@host:7000,host:7001",
}


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """Where Redis is, understood. `shape` is "" for one server, "sentinel" or "cluster"."""

    mode: str
    url: str
    hosts: tuple[tuple[str, int], ...] = ()
    master: str = ""
    options: dict[str, Any] = field(default_factory=dict)


def parse_address(url: str) -> RedisAddress:
    """What the address says. Errors: ValueError, whose text quotes nothing of it."""
    shape = urlsplit(url).scheme.partition("+")[2]
    if shape not in ADDRESS_EXAMPLES:
        raise ValueError("has a scheme that is none of redis, redis+sentinel and redis+cluster")
    try:
        return _parse(url, shape)
    except ValueError:
        # The reason given may quote a part of the password.
        raise ValueError(f"is not like {ADDRESS_EXAMPLES[shape]}") from None


def _parse(url: str, mode: str) -> RedisAddress:
    parts = urlsplit(url)
    if not mode:
        parse_url(url)
        return RedisAddress(mode, url)
    credentials, at, hosts = parts.netloc.rpartition("@")
    each = [_options(parts, f"{credentials}{at}{host}") for host in hosts.split(",")]
    default = SENTINEL_PORT if mode == "sentinel" else CLUSTER_PORT
    where = tuple((one.pop("host"), one.pop("port", default)) for one in each)
    options, path = each[0], unquote(parts.path).strip("/").split("/")
    if mode == "cluster":
        if path not in ([""], ["0"]):
            raise ValueError("a Cluster has no databases")
        return RedisAddress(mode, url, where, options=options)
    master, db = path[0], path[1] if len(path) == 2 else "0"
    if not master or len(path) > 2:
        raise ValueError("Sentinel wants the name of a master")
    return RedisAddress(mode, url, where, master, {"db": int(db), **options})


def _options(parts: SplitResult, location: str) -> dict[str, Any]:
    scheme = parts.scheme.partition("+")[0]
    options: dict[str, Any] = {**parse_url(f"{scheme}://{location}/?{parts.query}")}
    if not options.get("host"):
        raise ValueError("a host is missing")
    options["ssl"] = options.pop("connection_class", None) is SSLConnection
    return options


def redis_client(url: str) -> RedisClient:
    """A client that fails at once rather than retrying: the breaker of its line decides what is
    next. Errors: ValueError.
    """
    address = parse_address(url)
    times: dict[str, Any] = {
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_keepalive": True,
        "retry": Retry(NoBackoff(), 0),
    }
    if address.mode == "cluster":
        nodes = [ClusterNode(host, port) for host, port in address.hosts]
        return RedisCluster(startup_nodes=nodes, **{**times, **address.options})
    if address.mode == "sentinel":
        return _sentinel_master(address, times)
    return Redis.from_url(url, **times)


def _sentinel_master(address: RedisAddress, timeouts: dict[str, Any]) -> Redis:
    options = dict(address.options)
    # The Sentinels have passwords of their own, or none.
    own = {name: options.pop(f"sentinel_{name}", None) for name in ("username", "password")}
    tls = {name: value for name, value in options.items() if name.startswith("ssl")}
    if options.pop("ssl"):
        options["connection_class"] = SentinelManagedSSLConnection
    sentinels = Sentinel(address.hosts, sentinel_kwargs={**timeouts, **tls, **own})  # type: ignore[no-untyped-call]
    master: Redis = sentinels.master_for(address.master, **{**timeouts, **options})
    return master


async def open_pubsub(client: RedisClient) -> PubSub:
    """A connection to listen on; on a Cluster to any node, for each passes on what others hear."""
    if isinstance(client, RedisCluster):
        await client.initialize()
    return client.pubsub(ignore_subscribe_messages=True)


async def check_writable(client: RedisClient) -> None:
    """One write to each node that takes writes. Errors: those of the first that does not."""
    keys = ["slotlock:probe"]
    if isinstance(client, RedisCluster):
        await client.initialize()
        tried = [f"slotlock:probe:{n}" for n in range(MAX_PROBE_KEYS)]
        keys = list({client.get_node_from_key(key): key for key in tried}.values())
    for key in keys:
        await client.set(key, b"1", px=PROBE_TTL_MS)


async def drop_connections(client: RedisClient) -> None:
    """Begin anew: idle connections to a server that has died would each fail once more."""
    if isinstance(client, RedisCluster):
        await client.aclose()  # it opens again by itself, and learns who is master of what
    else:
        await client.connection_pool.disconnect(inuse_connections=False)


async def close_client(client: RedisClient) -> None:
    """Close it for good."""
    await client.aclose()
    if isinstance(client, Redis) and isinstance(client.connection_pool, SentinelConnectionPool):
        await client.connection_pool.sentinel_manager.aclose()
