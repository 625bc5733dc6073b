"""Two services on a database of each module."""

from collections.abc import Iterator

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.model.service_pair import ServicePair, open_service_pair


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest, servers: EmbeddedServers) -> Iterator[ServicePair]:
    """Yield two services on a database of their own, without background sweeps."""
    with open_service_pair(servers, request.module.__name__.rpartition(".")[2]) as opened:
        yield opened
