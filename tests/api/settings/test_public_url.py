"""The public address of the server in the addresses that the API returns."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.calendars import create_calendar

PUBLIC_URL = "https://example.org:8443/slotlock"
CREATE_LINK = """mutation($id: ID!) { createExportLink(id: $id, format: CSV) {
  ... on ExportLink { url }
} }"""


@pytest.fixture(scope="module")
def public_app(
    two_apps: tuple[AppProcess, AppProcess], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """Yield an app that knows its public address."""
    environment = {**two_apps[0].environment, "SLOTLOCK_PUBLIC_URL": PUBLIC_URL + "/"}
    with app_variant(environment, tmp_path_factory.mktemp("public")) as running:
        yield running


async def returned_addresses(organizer: BookingClient) -> list[str]:
    """Return every address that the API returns."""
    link = await organizer.execute(CREATE_LINK, id=await organizer.add_slot())
    info = await organizer.http.get(organizer.url + "/")
    return [await create_calendar(organizer), link["url"], info.json()["graphql"]]


async def test_all_addresses_begin_with_the_public_address(
    public_app: AppProcess, http: httpx.AsyncClient
) -> None:
    _, organizer = create_booking_clients(http, 0, public_app)
    addresses = await returned_addresses(organizer)
    for address, path in zip(addresses, ("calendars/private/", "exports/links/", "graphql"),
                             strict=True):  # fmt: skip
        assert address.startswith(f"{PUBLIC_URL}/{path}")
        # The proxy removes the prefix.
        found = await http.get(organizer.url + address.removeprefix(PUBLIC_URL))
        assert found.status_code == 200 or path == "graphql"


async def test_without_it_they_are_paths(
    two_apps: tuple[AppProcess, AppProcess], http: httpx.AsyncClient
) -> None:
    _, organizer = create_booking_clients(http, 0, two_apps[0])
    assert all(address.startswith("/") for address in await returned_addresses(organizer))
