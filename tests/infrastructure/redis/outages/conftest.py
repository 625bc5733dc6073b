"""A proxy that delays or swallows what Redis replies, and lock nodes behind it."""

from collections.abc import AsyncIterator

import pytest

from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis.keys import DEFAULT_BUDGET_MS, MAX_BUDGET_MS
from slotlock.infrastructure.redis.locks.locks import Locks
from tests.support.apps.restartable_servers import RestartableServer
from tests.support.polling import eventually
from tests.support.stores.lock_nodes import acquire_lease, open_lock_node
from tests.support.transport.delay_proxy import DelayProxy, delay_proxy


@pytest.fixture
async def proxy(valkey: RestartableServer) -> AsyncIterator[DelayProxy]:
    async with delay_proxy(valkey.port) as running:
        yield running


@pytest.fixture
async def locks(valkey: RestartableServer) -> AsyncIterator[Locks]:
    """Yield a lock node that gives a silent server up as the app does."""
    async with open_lock_node(valkey.url, budget_ms=MAX_BUDGET_MS) as opened:
        yield opened


@pytest.fixture
async def slow_locks(proxy: DelayProxy) -> AsyncIterator[Locks]:
    """Yield a lock node behind the proxy, with warm connections and a closed circuit."""
    async with open_lock_node(proxy.url, budget_ms=DEFAULT_BUDGET_MS) as locks:
        await locks.release(await acquire_lease(locks, new_slot_id()))
        await locks.wait_for_releases()
        await eventually(lambda: not locks.pipeline.is_unavailable, "Redis is in use")
        yield locks
        proxy.delay_s = 0
        proxy.thaw()
