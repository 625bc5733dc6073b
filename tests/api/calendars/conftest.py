"""Users who read calendars."""

import httpx
import pytest

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import create_booking_clients
from tests.support.clients.calendars import CalendarUsers


@pytest.fixture
def users(two_apps: Pair, http: httpx.AsyncClient) -> CalendarUsers:
    """Return clients for Ada at one process, Ben at the other one, and an organizer."""
    (ada, ben), organizer = create_booking_clients(http, 2, *two_apps)
    return CalendarUsers(ada, ben, organizer)
