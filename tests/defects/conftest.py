"""The process of a scene: a complete one, or one without the guards of a control."""

import pytest

from tests.support.apps.deployment import Deployment
from tests.support.apps.processes import AppProcess


@pytest.fixture
def app(
    deployment: Deployment, two_apps: tuple[AppProcess, AppProcess], without: str
) -> AppProcess:
    """Return a process without the guards of this row of a test."""
    return deployment.app(without) if without else two_apps[0]
