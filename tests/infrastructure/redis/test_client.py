"""Addresses of one server, of Sentinels and of a Cluster become clients with their options."""

from typing import Any

import pytest
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.connection import SSLConnection, UnixDomainSocketConnection
from redis.asyncio.sentinel import SentinelConnectionPool, SentinelManagedSSLConnection

from slotlock.infrastructure.redis.client import close_client, parse_address, redis_client

CREDENTIALS = {"username": "me", "password": "p@ss,word"}


@pytest.mark.parametrize(
    ("url", "hosts", "master", "options"),
    [
        (
            "redis+sentinel://a,b:7/slots",
            (("a", 26379), ("b", 7)),
            "slots",
            {"db": 0, "ssl": False},
        ),
        (
            "rediss+sentinel://me:p%40ss%2Cword@[::1]:7/slots/3?sentinel_password=x",
            (("::1", 7),),
            "slots",
            {"db": 3, "ssl": True, "sentinel_password": "x", **CREDENTIALS},
        ),
        ("redis+cluster://a,b:7", (("a", 6379), ("b", 7)), "", {"ssl": False}),
        (
            "rediss+cluster://me:p%40ss%2Cword@a/0",
            (("a", 6379),),
            "",
            {"ssl": True, **CREDENTIALS},
        ),
    ],
)
def test_an_address_contains_hosts_master_and_credentials(
    url: str, hosts: tuple[tuple[str, int], ...], master: str, options: dict[str, Any]
) -> None:
    address = parse_address(url)
    assert (address.hosts, address.master, address.options) == (hosts, master, options)


async def test_one_server_is_reached_by_tls_or_by_a_unix_socket() -> None:
    for url, connection_class in (
        ("rediss://:x@host", SSLConnection),
        ("unix:///run/redis.sock?db=2", UnixDomainSocketConnection),
    ):
        client = redis_client(url)
        assert isinstance(client, Redis)
        assert client.connection_pool.connection_class is connection_class
        await close_client(client)


async def test_the_master_and_the_sentinels_have_their_own_passwords() -> None:
    client = redis_client("rediss+sentinel://:x@a,b/slots?sentinel_password=y")
    assert isinstance(client, Redis)
    pool = client.connection_pool
    assert isinstance(pool, SentinelConnectionPool)
    assert pool.connection_class is SentinelManagedSSLConnection
    assert pool.connection_kwargs["password"] == "x"
    for sentinel in pool.sentinel_manager.sentinels:
        assert sentinel.connection_pool.connection_kwargs["password"] == "y"
        assert sentinel.connection_pool.connection_class is SSLConnection
    await close_client(client)


async def test_a_cluster_client_starts_with_every_host_of_the_address() -> None:
    client = redis_client("rediss+cluster://:x@a:1,b:2")
    assert isinstance(client, RedisCluster)
    assert [(node.host, node.port) for node in client.startup_nodes] == [("a", 1), ("b", 2)]
    assert client.connection_kwargs["password"] == "x"
    assert client.connection_kwargs["connection_class"] is SSLConnection
    await close_client(client)
