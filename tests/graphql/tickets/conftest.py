"""The queue of the tests of tickets."""

import pytest

from tests.support.queue.deployment import QueueDeployment, queue_deployment

__all__ = ["queue_deployment"]


@pytest.fixture
def queue(queue_deployment: QueueDeployment) -> QueueDeployment:
    """Return a deployment with 12 members whose queue is not served."""
    return queue_deployment
