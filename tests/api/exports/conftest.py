"""Users whose bookings appear in exported rosters."""

import httpx
import pytest

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import create_booking_clients
from tests.support.clients.exports import RosterUsers, set_name_and_groups


@pytest.fixture
async def users(two_apps: Pair, http: httpx.AsyncClient) -> RosterUsers:
    """Return Ada Löwe in 5a and choir, Ben in 5b, Cleo without groups, and the organizer Olga."""
    (ada, ben, cleo), organizer = create_booking_clients(http, 3, *two_apps)
    url = two_apps[0].environment["SLOTLOCK_MONGO_URL"]
    await set_name_and_groups(url, ada, "Ada Löwe", "5a", "choir")
    await set_name_and_groups(url, ben, "Ben", "5b")
    await set_name_and_groups(url, cleo, "Cleo")
    await set_name_and_groups(url, organizer, "Olga")
    return RosterUsers(ada, ben, cleo, organizer)
