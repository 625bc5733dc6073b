"""A queue that only the processes of one test module use, and a deployment on it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.queue.queued_users import IsolatedQueue, open_isolated_queue


@pytest.fixture(scope="module")
def isolated_queue(
    request: pytest.FixtureRequest,
    servers: EmbeddedServers,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[IsolatedQueue]:
    """A Redis and a database for this module alone, with an app that serves no queue."""
    name = request.module.__name__.rpartition(".")[2]
    with open_isolated_queue(servers, tmp_path_factory.mktemp("queue"), name) as opened:
        yield opened


@pytest.fixture
async def deployment(isolated_queue: IsolatedQueue, log_dir: Path) -> AsyncIterator[Deployment]:
    """Twelve members and an empty Redis."""
    async with open_deployment(isolated_queue.environment, log_dir) as opened:
        opened.redis.flushall()
        yield opened
