"""Whoever is refused before the application is asked gets the headers of its answers, too."""

from collections.abc import Iterator
from email import message_from_bytes

import pytest

from slotlock.api.middleware.security_headers import SECURITY_HEADERS
from slotlock.api.server.header_limit import MAX_HEADER_BYTES
from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.raw_connection import (
    WEBSOCKET_HANDSHAKE,
    open_tcp_connection,
    read_until,
    read_until_closed,
)

ALWAYS = {(name.decode(), value.decode()) for name, value in SECURITY_HEADERS}
START = b"POST /graphql HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
WANTS_SOCKET = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
KEY, VERSION = b"Sec-WebSocket-Key: ", b"Sec-WebSocket-Version: "
REFUSED = {
    "no HTTP": (b"nonsense\r\n\r\n", 400),
    "a tunnel": (b"CONNECT here:80 HTTP/1.1\r\nHost: here:80\r\n\r\n", 400),
    "a header that is too large": (START + b"X: " + b"a" * MAX_HEADER_BYTES, 431),
    "a header that does not end": (START, 408),
    "a body that does not come": (START + b"Content-Length: 9\r\n\r\n", 408),
    "a socket by POST": (START + WANTS_SOCKET + b"\r\n", 405),
    "a socket with too many headers": (
        WEBSOCKET_HANDSHAKE.replace(KEY, b"X: y\r\n" * 200 + KEY),
        400,
    ),
    "a socket without a key": (WEBSOCKET_HANDSHAKE.replace(KEY, b"X: "), 400),
    "a socket of another version": (WEBSOCKET_HANDSHAKE.replace(VERSION, VERSION + b"1"), 400),
    "a socket that is nowhere": (WEBSOCKET_HANDSHAKE.replace(b"/graphql", b"/nothing"), 403),
    "a socket of another site": (
        WEBSOCKET_HANDSHAKE.replace(b"\r\n\r\n", b"\r\nOrigin: https://evil.example.org\r\n\r\n"),
        403,
    ),
}


@pytest.fixture(scope="module")
def strict(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """An app that waits for little and has room for two sockets, one an address."""
    settings = {
        **app_environment(servers, "strict"),
        "SLOTLOCK_HEADER_TIMEOUT_S": "2",  # the others are begun and read in time
        "SLOTLOCK_BODY_TIMEOUT_S": "0.6",
        "SLOTLOCK_MAX_SOCKETS": "2",
        "SLOTLOCK_STREAMS_PER_ADDRESS": "1",
        "SLOTLOCK_TRUSTED_PROXIES": "127.0.0.1",
    }
    with forked_app(settings, tmp_path_factory.mktemp("strict")) as running:
        yield running


def refused(app: AppProcess, sent: bytes) -> int:
    """The status of the only answer, which has each of the headers once."""
    with open_tcp_connection(app) as peer:
        peer.sendall(sent)
        told = read_until_closed(peer)
    assert told.count(b"HTTP/1.1 ") == 1, told
    status, _, rest = told.partition(b"\r\n")
    headers = message_from_bytes(rest).items()
    names = {name for name, _ in ALWAYS}
    assert sorted((n.lower(), v) for n, v in headers if n.lower() in names) == sorted(ALWAYS)
    return int(status.split()[1])


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_early_is_told_what_every_answer_tells(
    strict: AppProcess, what: str
) -> None:
    sent, status = REFUSED[what]
    assert refused(strict, sent) == status


def test_sockets_for_which_there_is_no_room_are_told_so_too(strict: AppProcess) -> None:
    def of(address: bytes) -> bytes:
        return WEBSOCKET_HANDSHAKE.replace(
            b"\r\n\r\n", b"\r\nX-Forwarded-For: " + address + b"\r\n\r\n"
        )

    with open_tcp_connection(strict) as one, open_tcp_connection(strict) as another:
        one.sendall(of(b"192.0.2.1"))
        assert read_until(one, b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
        assert refused(strict, of(b"192.0.2.1")) == 429
        another.sendall(of(b"192.0.2.2"))
        assert read_until(another, b"\r\n\r\n").startswith(b"HTTP/1.1 101 ")
        assert refused(strict, of(b"192.0.2.3")) == 503
    assert "ERROR" not in strict.log
