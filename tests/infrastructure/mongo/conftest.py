"""Fixtures of the tests of MongoDB."""

from collections.abc import AsyncIterator

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.stores.slot_store import SlotStore, open_slot_store


@pytest.fixture
async def store(servers: EmbeddedServers) -> AsyncIterator[SlotStore]:
    """Yield a new database for slots."""
    async with open_slot_store(servers) as opened:
        yield opened
