"""Whom a request comes from is what the socket says, unless a proxy that is trusted says it."""

from collections.abc import Iterator

import pytest

from slotlock.api.settings.proxies import trusted_networks
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.graphql.transport.client_info import client_address
from tests.support.apps.processes import AppProcess
from tests.support.apps.rate_limited import (
    exceed_address_rate,
    rate_limited_app,
    wait_for_early_minute,
)


def counted(host: str) -> str | None:
    """Whom a request of this host is counted to."""
    return client_address({"type": "http", "client": (host, 1)})


@pytest.fixture(scope="module")
def suspicious(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """An app that believes a proxy elsewhere, and whose rates are narrow."""
    own = {"SLOTLOCK_TRUSTED_PROXIES": "192.0.2.0/24"}
    with rate_limited_app(servers, "proxies", tmp_path_factory.mktemp("proxies"), **own) as app:
        yield app


def test_who_is_no_trusted_proxy_is_counted_as_who_they_are_whatever_they_say(
    suspicious: AppProcess,
) -> None:
    wait_for_early_minute()
    spoofed = {
        "X-Forwarded-For": "203.0.113.*, 192.0.2.1",
        "X-Real-IP": "203.0.113.*",
        "Forwarded": "for=203.0.113.*",
        "Client-IP": "203.0.113.*",
    }
    assert exceed_address_rate(suspicious.url, spoofed)[-1] == 429


def test_an_address_is_counted_by_what_one_customer_has() -> None:
    assert counted("192.0.2.7") == "192.0.2.7"
    assert counted("2001:db8:1:2:3::4") == counted("2001:db8:1:2::") == "2001:db8:1:2::/64"
    assert counted("2001:db8:1:3::4") == "2001:db8:1:3::/64"
    assert counted("::ffff:192.0.2.7") == "192.0.2.7"
    assert counted("fe80::1%eth0") == "fe80::/64"
    assert counted("_hidden}{*") == "unknown"


def test_what_has_no_address_is_counted_to_none() -> None:
    assert client_address({"type": "http", "client": None}) is None
    assert client_address({"type": "websocket"}) is None


def test_a_proxy_is_known_on_a_socket_that_speaks_both_kinds_of_ip() -> None:
    assert trusted_networks(("10.0.0.0/8",)) == ["10.0.0.0/8", "::ffff:10.0.0.0/104"]
    assert trusted_networks(("fd00::7",)) == ["fd00::7/128"]
