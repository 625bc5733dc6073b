"""The addresses of clients behind proxies, and the public address of the server."""

import re
from collections.abc import Iterator
from secrets import token_hex

import httpx
import pytest

from slotlock.api.settings.addresses import origins_pattern, trusted_networks
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.graphql.transport.client_info import client_address
from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import AppProcess, Pair
from tests.support.apps.rate_limited import ENDLESS_WINDOWS, exceed_address_rate, rate_limited_app
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.calendars import create_calendar
from tests.support.clients.user_files import create_invitations, generated_user_csv, import_users

PUBLIC_URL = "https://example.org:8443/slotlock"
PATHS = ("calendars/private/", "exports/links/", "graphql", "board#/invitation/")
CREATE_LINK = """mutation($id: ID!) { createExportLink(id: $id, format: CSV) {
  ... on ExportLink { url }
} }"""


def counted_address(host: str) -> str | None:
    """Return the address that counts the requests of a host."""
    return client_address({"type": "http", "client": (host, 1)})


@pytest.fixture(scope="module")
def app_behind_other_proxies(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """Yield an app with low rate limits that trusts proxies of another network than the test's."""
    own = {**ENDLESS_WINDOWS, "SLOTLOCK_TRUSTED_PROXIES": "192.0.2.0/24"}
    with rate_limited_app(servers, "proxies", tmp_path_factory.mktemp("proxies"), **own) as app:
        yield app


def test_forwarded_addresses_of_an_untrusted_client_are_ignored(
    app_behind_other_proxies: AppProcess,
) -> None:
    spoofed_headers = {
        "X-Forwarded-For": "203.0.113.*, 192.0.2.1",
        "X-Real-IP": "203.0.113.*",
        "Forwarded": "for=203.0.113.*",
        "Client-IP": "203.0.113.*",
    }
    assert exceed_address_rate(app_behind_other_proxies.url, spoofed_headers)[-1] == 429


def test_an_ipv4_address_and_an_ipv6_network_of_64_bits_count_as_one_client() -> None:
    assert counted_address("192.0.2.7") == "192.0.2.7"
    network = "2001:db8:1:2::/64"
    assert counted_address("2001:db8:1:2:3::4") == counted_address("2001:db8:1:2::") == network
    assert counted_address("2001:db8:1:3::4") == "2001:db8:1:3::/64"
    assert counted_address("::ffff:192.0.2.7") == "192.0.2.7"
    assert counted_address("fe80::1%eth0") == "fe80::/64"
    assert counted_address("_hidden}{*") == "unknown"


def test_a_connection_without_an_address_is_not_counted() -> None:
    assert client_address({"type": "http", "client": None}) is None
    assert client_address({"type": "websocket"}) is None


def test_an_ipv4_network_of_proxies_is_trusted_on_a_socket_for_both_versions() -> None:
    assert trusted_networks(("10.0.0.0/8",)) == ["10.0.0.0/8", "::ffff:10.0.0.0/104"]
    assert trusted_networks(("fd00::7",)) == ["fd00::7/128"]


@pytest.fixture(scope="module")
def public_app(two_apps: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppProcess]:
    """Yield an app that knows its public address."""
    environment = {**two_apps[0].environment, "SLOTLOCK_PUBLIC_URL": PUBLIC_URL + "/"}
    with app_variant(environment, tmp_path_factory.mktemp("public")) as running:
        yield running


async def returned_addresses(organizer: BookingClient) -> list[str]:
    """Return every address that the API returns."""
    link = await organizer.execute(CREATE_LINK, id=await organizer.add_slot())
    info = await organizer.http.get(organizer.url + "/")
    user_file = generated_user_csv(group := token_hex(8), 1, group)
    await import_users(organizer, user_file)
    (row,) = await create_invitations(organizer, group=group)
    assert row["link"].endswith(row["token"] if row["link"] else "")
    return [await create_calendar(organizer), link["url"], info.json()["graphql"], row["link"]]


async def test_all_addresses_begin_with_the_public_address(
    public_app: AppProcess, http: httpx.AsyncClient
) -> None:
    _, organizer = create_booking_clients(http, 0, public_app)
    addresses = await returned_addresses(organizer)
    for address, path in zip(addresses, PATHS, strict=True):
        assert address.startswith(f"{PUBLIC_URL}/{path}")
        # The proxy removes the prefix.
        found = await http.get(organizer.url + address.removeprefix(PUBLIC_URL))
        assert found.status_code == 200 or path == "graphql"


async def test_without_it_they_are_paths(two_apps: Pair, http: httpx.AsyncClient) -> None:
    _, organizer = create_booking_clients(http, 0, two_apps[0])
    *paths, link = await returned_addresses(organizer)
    assert all(address.startswith("/") for address in paths)
    assert link == ""


@pytest.mark.parametrize(
    ("allowed", "origin", "is_allowed"),
    [
        ((), "", False),
        ((), "null", False),
        (("*",), "null", True),
        (("*",), "capacitor://localhost", True),
        (("https://a.example",), "null", False),
        (("null", "https://a.example"), "null", True),
        (("null", "https://a.example"), "https://a.example", True),
        (("http://localhost",), "http://localhost:80", True),
        (("http://localhost",), "http://localhost:8080", False),
        (("https://*.example.org:8443",), "https://a.example.org:8443", True),
        (("https://*.example.org:8443",), "https://a.example.org", False),
    ],
)
def test_only_named_origins_are_allowed(
    allowed: tuple[str, ...], origin: str, is_allowed: bool
) -> None:
    assert bool(re.fullmatch(origins_pattern(allowed), origin)) is is_allowed
