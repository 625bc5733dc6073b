"""Responses that are sent before the application is called have the security headers, too."""

from collections.abc import Iterator
from email import message_from_bytes

import pytest

from slotlock.api.middleware.security_headers import SECURITY_HEADERS
from slotlock.api.server.header_limit import MAX_HEADER_BYTES
from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.transport.raw_connection import (
    WEBSOCKET_HANDSHAKE,
    open_tcp_connection,
    read_until,
    read_until_closed,
)

EXPECTED_HEADERS = {(name.decode(), value.decode()) for name, value in SECURITY_HEADERS}
POST = b"POST /graphql HTTP/1.1\r\nHost: slotlock\r\nContent-Type: application/json\r\n"
UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
KEY, VERSION = b"Sec-WebSocket-Key: ", b"Sec-WebSocket-Version: "
# Requests with the status of their only response.
REJECTED_REQUESTS = {
    "malformed HTTP": (b"nonsense\r\n\r\n", 400),
    "a tunnel": (b"CONNECT here:80 HTTP/1.1\r\nHost: here:80\r\n\r\n", 400),
    "a header that is too large": (POST + b"X: " + b"a" * MAX_HEADER_BYTES, 431),
    "a header that does not end": (POST, 408),
    "a body that does not arrive": (POST + b"Content-Length: 9\r\n\r\n", 408),
    "a handshake by POST": (POST + UPGRADE + b"\r\n", 405),
    "a handshake with too many headers": (
        WEBSOCKET_HANDSHAKE.replace(KEY, b"X: y\r\n" * 200 + KEY),
        400,
    ),
    "a handshake without a key": (WEBSOCKET_HANDSHAKE.replace(KEY, b"X: "), 400),
    "a handshake of another version": (WEBSOCKET_HANDSHAKE.replace(VERSION, VERSION + b"1"), 400),
    "a handshake at an unknown path": (WEBSOCKET_HANDSHAKE.replace(b"/graphql", b"/nothing"), 403),
    "a handshake from another site": (
        WEBSOCKET_HANDSHAKE.replace(b"\r\n\r\n", b"\r\nOrigin: https://evil.example.org\r\n\r\n"),
        403,
    ),
}


@pytest.fixture(scope="module")
def strict_app(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """Yield an app with short timeouts and room for two sockets, one for each address."""
    settings = {
        **app_environment(servers, "strict"),
        "SLOTLOCK_HEADER_TIMEOUT_S": "2",  # enough for the requests with complete headers
        "SLOTLOCK_BODY_TIMEOUT_S": "0.6",
        "SLOTLOCK_MAX_SOCKETS": "2",
        "SLOTLOCK_STREAMS_PER_ADDRESS": "1",
        "SLOTLOCK_TRUSTED_PROXIES": "127.0.0.1",
    }
    with forked_app(settings, tmp_path_factory.mktemp("strict")) as running:
        yield running


def status_of_only_response(app: AppProcess, request: bytes) -> int:
    """Check that there is one response with each security header once; return its status."""
    with open_tcp_connection(app) as peer:
        peer.sendall(request)
        response = read_until_closed(peer)
    assert response.count(b"HTTP/1.1 ") == 1, response
    status_line, _, rest = response.partition(b"\r\n")
    headers = message_from_bytes(rest).items()
    names = {name for name, _ in EXPECTED_HEADERS}
    security_headers = [(n.lower(), v) for n, v in headers if n.lower() in names]
    assert sorted(security_headers) == sorted(EXPECTED_HEADERS)
    return int(status_line.split()[1])


@pytest.mark.parametrize("kind", REJECTED_REQUESTS)
def test_an_early_rejection_has_the_security_headers(strict_app: AppProcess, kind: str) -> None:
    request, status = REJECTED_REQUESTS[kind]
    assert status_of_only_response(strict_app, request) == status


def test_sockets_beyond_the_limits_are_rejected_with_the_security_headers(
    strict_app: AppProcess,
) -> None:
    def handshake_from(address: bytes) -> bytes:
        return WEBSOCKET_HANDSHAKE.replace(
            b"\r\n\r\n", b"\r\nX-Forwarded-For: " + address + b"\r\n\r\n"
        )

    with open_tcp_connection(strict_app) as first, open_tcp_connection(strict_app) as second:
        first.sendall(handshake_from(b"192.0.2.1"))
        assert read_until(first, b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
        assert status_of_only_response(strict_app, handshake_from(b"192.0.2.1")) == 429
        second.sendall(handshake_from(b"192.0.2.2"))
        assert read_until(second, b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
        assert status_of_only_response(strict_app, handshake_from(b"192.0.2.3")) == 503
    assert "ERROR" not in strict_app.log
