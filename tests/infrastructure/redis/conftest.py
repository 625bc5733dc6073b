"""Redis as one server, behind Sentinels and as a Cluster, and two lock nodes that use it."""

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from tests.support.apps.redis_topologies import TOPOLOGIES, RedisTopology
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
def disable_script_guard(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Disable a guard, by its name, in every script of the locks."""

    def disable(guard: str) -> None:
        for module, name, script in scripts_without(guard):
            monkeypatch.setattr(module, name, script)

    return disable
