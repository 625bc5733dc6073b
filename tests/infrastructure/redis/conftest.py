"""The three shapes of Redis, and two offices at it."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from slotlock.infrastructure.redis.locks.locks import Locks
from tests.support.apps.redis_topologies import TOPOLOGIES, RedisTopology
from tests.support.apps.variants.locks import scripts_without
from tests.support.stores.lock_nodes import open_lock_node


@pytest.fixture(scope="session", params=TOPOLOGIES)
def redis_topology(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisTopology]:
    """Servers of the lock's own, since its tests lose all keys and look at all that are left."""
    with TOPOLOGIES[request.param](tmp_path_factory.mktemp("redis_topology")) as running:
        yield running


@pytest.fixture
async def lock_nodes(redis_topology: RedisTopology) -> AsyncIterator[tuple[Locks, Locks]]:
    """Two offices with connections of their own."""
    async with (
        open_lock_node(redis_topology.url) as one,
        open_lock_node(redis_topology.url) as other,
    ):
        yield one, other


@pytest.fixture
def disable_script_guard(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Takes a guard out of every script of the lock, by its name."""

    def disable(guard: str) -> None:
        for module, name, script in scripts_without(guard):
            monkeypatch.setattr(module, name, script)

    return disable
