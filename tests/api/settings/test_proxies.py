"""A client is counted by the address of its connection, unless a trusted proxy names another."""

from collections.abc import Iterator

import pytest

from slotlock.api.settings.proxies import trusted_networks
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.graphql.transport.client_info import client_address
from tests.support.apps.processes import AppProcess
from tests.support.apps.rate_limited import (
    ENDLESS_WINDOWS,
    exceed_address_rate,
    rate_limited_app,
)


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
