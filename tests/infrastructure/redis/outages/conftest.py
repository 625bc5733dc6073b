"""A proxy that delays or swallows what Redis replies, and lock nodes behind it."""

from collections.abc import AsyncIterator

import pytest

from bench.delay_proxy import DelayProxy, delay_proxy
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis.client import DEFAULT_BUDGET_MS
from slotlock.infrastructure.redis.locks.locks import Locks
from tests.support.apps.restartable_servers import RestartableServer
from tests.support.stores.lock_nodes import acquire_lease, open_lock_node


@pytest.fixture
async def proxy(valkey: RestartableServer) -> AsyncIterator[DelayProxy]:
    async with delay_proxy(valkey.port) as running:
        yield running


@pytest.fixture
async def slow_locks(proxy: DelayProxy) -> AsyncIterator[Locks]:
    """Yield a lock node behind the proxy, with warm connections."""
    async with open_lock_node(proxy.url, budget_ms=DEFAULT_BUDGET_MS) as locks:
        await locks.release(await acquire_lease(locks, new_slot_id()))
        await locks.wait_for_releases()
        yield locks
        proxy.delay_s = 0
        proxy.thaw()
