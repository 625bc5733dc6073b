"""Opens a client for one Redis server, for the master behind Sentinels, or for a Cluster."""

import asyncio
from dataclasses import field
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from hiredis import pack_command
from redis.asyncio import Connection, Redis, RedisCluster, Sentinel
from redis.asyncio.client import PubSub
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import SentinelConnectionPool, SentinelManagedSSLConnection
from redis.backoff import NoBackoff
from redis.typing import EncodableT

from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.redis.keys import MAX_BUDGET_MS, PROBE_KEY

RedisClient = Redis | RedisCluster
# The keyword arguments of either client.
ClientOptions = dict[str, Any]

CONNECT_TIMEOUT_S = 1.0
COMMAND_TIMEOUT_S = MAX_BUDGET_MS / 1000
# Longer than COMMAND_TIMEOUT_S: a busy event loop may read a reply late.
SOCKET_TIMEOUT_S = 2.0
PROBE_TTL_MS = 1000
# Candidates among which a probe key is found for each node of a Cluster.
MAX_PROBE_KEYS = 1000

SENTINEL_PORT = 26379
CLUSTER_PORT = 6379
ADDRESS_EXAMPLES = {
    "": "redis://:password@host:6379/0",
    "sentinel": "redis+sentinel://:password@host:26379,host:26379/master-name/0",
    "cluster": "redis+cluster://:password@host:7000,host:7001",
}


@value_object
class RedisAddress:
    """A parsed address. `mode` is "" for one server, "sentinel" or "cluster"."""

    mode: str
    url: str
    hosts: tuple[tuple[str, int], ...] = ()
    master: str = ""
    options: ClientOptions = field(default_factory=dict)


def parse_address(url: str) -> RedisAddress:
    """Parse an address. Raises: ValueError with a message that quotes nothing of the address."""
    mode = urlsplit(url).scheme.partition("+")[2]
    if mode not in ADDRESS_EXAMPLES:
        raise ValueError("must have the scheme redis, redis+sentinel or redis+cluster")
    try:
        return _parse(url, mode)
    except ValueError:
        # The message of the cause may quote a part of the password.
        raise ValueError(f"is not like {ADDRESS_EXAMPLES[mode]}") from None


def _parse(url: str, mode: str) -> RedisAddress:
    parts = urlsplit(url)
    if not mode:
        parse_url(url)
        return RedisAddress(mode, url)
    credentials, at, hosts = parts.netloc.rpartition("@")
    options_by_host = [_options(parts, f"{credentials}{at}{host}") for host in hosts.split(",")]
    default_port = SENTINEL_PORT if mode == "sentinel" else CLUSTER_PORT
    endpoints = tuple(
        (options.pop("host"), options.pop("port", default_port)) for options in options_by_host
    )
    options, path = options_by_host[0], unquote(parts.path).strip("/").split("/")
    if mode == "cluster":
        if path not in ([""], ["0"]):
            raise ValueError("a Cluster has no databases")
        return RedisAddress(mode, url, endpoints, options=options)
    master, db = path[0], path[1] if len(path) == 2 else "0"
    if not master or len(path) > 2:
        raise ValueError("Sentinel needs the name of a master")
    return RedisAddress(mode, url, endpoints, master, {"db": int(db), **options})


def _options(parts: SplitResult, location: str) -> ClientOptions:
    scheme = parts.scheme.partition("+")[0]
    options: ClientOptions = {**parse_url(f"{scheme}://{location}/?{parts.query}")}
    if not options.get("host"):
        raise ValueError("a host is missing")
    options["ssl"] = options.pop("connection_class", None) is SSLConnection
    return options


class PackingConnection(Connection):
    """A connection that packs commands in C, as the synchronous client does."""

    def pack_command(self, *args: EncodableT) -> list[bytes]:
        """Return the command in the protocol of Redis."""
        name = args[0]
        if isinstance(name, str) and " " in name:  # such as "SCRIPT LOAD"
            args = (*name.split(), *args[1:])
        return [pack_command(args)]  # type: ignore[arg-type]


def redis_client(url: str) -> RedisClient:
    """Open a client that never retries, since the circuit breaker does. Raises: ValueError."""
    address = parse_address(url)
    connection_options: ClientOptions = {
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_keepalive": True,
        "retry": Retry(NoBackoff(), 0),
    }
    if address.mode == "cluster":
        nodes = [ClusterNode(host, port) for host, port in address.hosts]
        return RedisCluster(startup_nodes=nodes, **{**connection_options, **address.options})
    if address.mode == "sentinel":
        return _sentinel_master(address, connection_options)
    # A URL for TLS or for a Unix socket selects a connection class of its own.
    return Redis.from_url(url, connection_class=PackingConnection, **connection_options)


def _sentinel_master(address: RedisAddress, connection_options: ClientOptions) -> Redis:
    options = dict(address.options)
    # The Sentinels may have other credentials than the master, or none.
    credentials = {name: options.pop(f"sentinel_{name}", None) for name in ("username", "password")}
    tls = {name: value for name, value in options.items() if name.startswith("ssl")}
    if options.pop("ssl"):
        options["connection_class"] = SentinelManagedSSLConnection
    sentinel_options = {**connection_options, **tls, **credentials}
    sentinels = Sentinel(address.hosts, sentinel_kwargs=sentinel_options)  # type: ignore[no-untyped-call]
    master: Redis = sentinels.master_for(address.master, **{**connection_options, **options})
    return master


async def open_pubsub(client: RedisClient, attempt: int) -> PubSub:
    """Open a pub/sub connection, on a Cluster to another node with each attempt.

    Messages reach all nodes. By itself the client would choose the node of the first channel again,
    even if that node is frozen.
    """
    if not isinstance(client, RedisCluster):
        return client.pubsub()
    await client.initialize()
    nodes = client.get_primaries()
    return client.pubsub(node=nodes[attempt % len(nodes)])


async def check_writable(client: RedisClient) -> None:
    """Write a key to each master. Raises the error of the first one that fails."""
    keys = [PROBE_KEY]
    if isinstance(client, RedisCluster):
        await client.initialize()
        candidates = [f"{PROBE_KEY}:{n}" for n in range(MAX_PROBE_KEYS)]
        keys = list({client.get_node_from_key(key): key for key in candidates}.values())
    await asyncio.gather(*(client.set(key, b"1", px=PROBE_TTL_MS) for key in keys))


async def drop_connections(client: RedisClient) -> None:
    """Close idle connections. After a crash of the server, each would fail once more."""
    if isinstance(client, RedisCluster):
        await client.aclose()  # the next command reopens it and reads the new topology
    else:
        await client.connection_pool.disconnect(inuse_connections=False)


async def close_client(client: RedisClient) -> None:
    """Close the client and the connections to its Sentinels."""
    await client.aclose()
    if isinstance(client, Redis) and isinstance(client.connection_pool, SentinelConnectionPool):
        await client.connection_pool.sentinel_manager.aclose()
