"""An app that must survive arbitrary input."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.apps.processes import AppProcess


@pytest.fixture
def error_free_app(app: AppProcess) -> Iterator[AppProcess]:
    """Yield the app, which must still answer after the test and must not have logged an error."""
    old_log_length = len(app.log)
    yield app
    response = httpx.post(
        app.url + "/graphql", json={"query": "{ __typename }"}, trust_env=False, timeout=20
    )
    assert response.json() == {"data": {"__typename": "Query"}}
    assert "Traceback" not in app.log[old_log_length:]
    assert " ERROR " not in app.log[old_log_length:]
