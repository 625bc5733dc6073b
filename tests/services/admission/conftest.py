"""A deployment on a queue that only the processes of one test module use."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.queue.queued_users import IsolatedQueue


@pytest.fixture
async def deployment(isolated_queue: IsolatedQueue, log_dir: Path) -> AsyncIterator[Deployment]:
    """Yield twelve members and an empty Redis."""
    async with open_deployment(isolated_queue.environment, log_dir) as opened:
        opened.redis.flushall()
        yield opened
