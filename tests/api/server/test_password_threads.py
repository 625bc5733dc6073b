"""The threads for passwords follow from the CPUs, which server processes share."""

import pytest

from slotlock.api import app_state
from slotlock.api.app_state import open_app_state
from slotlock.auth.passwords import PERMITS_PER_THREAD
from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.processes import app_settings


@pytest.mark.parametrize(
    ("cpus", "process_count", "expected"), [(4, 1, 4), (4, 2, 2), (6, 4, 2), (2, 4, 1)]
)
async def test_the_server_processes_share_the_cpus_for_passwords(
    servers: EmbeddedServers,
    monkeypatch: pytest.MonkeyPatch,
    cpus: int,
    process_count: int,
    expected: int,
) -> None:
    monkeypatch.setattr(app_state, "available_cpus", lambda: cpus)
    settings = app_settings(servers, "password_threads")
    async with open_app_state(settings, development=False, process_count=process_count) as state:
        hasher = state.graphql_server.auth.password_hasher
        assert hasher._threads._max_workers == expected
        assert hasher._scheduler._max_running == PERMITS_PER_THREAD * expected
