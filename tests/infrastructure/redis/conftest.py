"""Redis as one server, behind Sentinels and as a Cluster, and two lock nodes that use it."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from slotlock.infrastructure.redis.locks.locks import Locks
from tests.support.apps.redis_topologies import TOPOLOGIES, RedisTopology
from tests.support.apps.restartable_servers import RestartableServer, restartable_server
from tests.support.apps.variants.locks import scripts_without
from tests.support.stores.lock_nodes import LockNodes, open_lock_node


@pytest.fixture(scope="session", params=TOPOLOGIES)
def redis_topology(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisTopology]:
    """Yield servers for these tests alone, since they delete and inspect all keys."""
    with TOPOLOGIES[request.param](tmp_path_factory.mktemp("redis_topology")) as running:
        yield running


@pytest.fixture
async def lock_nodes(redis_topology: RedisTopology) -> AsyncIterator[LockNodes]:
    """Yield two lock nodes, each with its own connection."""
    async with (
        open_lock_node(redis_topology.url) as one,
        open_lock_node(redis_topology.url) as other,
    ):
        yield one, other


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[RestartableServer]:
    """Yield a server that a test may kill or pause."""
    with restartable_server(tmp_path / "valkey", "valkey") as server:
        yield server


@pytest.fixture
async def locks(valkey: RestartableServer) -> AsyncIterator[Locks]:
    """Yield a lock node of this server."""
    async with open_lock_node(valkey.url) as opened:
        yield opened


@pytest.fixture
def disable_script_guard(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Disable a guard, by its name, in every script of the locks."""

    def disable(guard: str) -> None:
        for module, name, script in scripts_without(guard):
            monkeypatch.setattr(module, name, script)

    return disable
