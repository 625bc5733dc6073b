"""Upgrades to unsupported protocols are ignored: the request is processed without them."""

import json
import re
import time

import pytest

from tests.support.apps.processes import AppProcess
from tests.support.transport.raw_connection import open_tcp_connection, read_until_closed

SMUGGLED_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: slotlock\r\n\r\n"
BODY = json.dumps({"query": "{ __typename }"}).encode()
LAST_REQUEST = b"GET /last HTTP/1.1\r\nHost: slotlock\r\nConnection: close\r\n\r\n"


def upgrade_request(body: bytes, upgrade: bytes = b"h2c") -> list[bytes]:
    """Return the header and the body of a request with an upgrade."""
    lines = b"Connection: Upgrade\r\nUpgrade: %s\r\nContent-Type: application/json" % upgrade
    start = b"POST /graphql HTTP/1.1\r\nHost: slotlock\r\n" + lines
    return [start + b"\r\nContent-Length: %d\r\n\r\n" % len(body), body]


def send_pieces(app: AppProcess, pieces: list[bytes]) -> bytes:
    """Return the responses to these pieces of requests and to LAST_REQUEST."""
    with open_tcp_connection(app) as peer:
        for piece in [*pieces, LAST_REQUEST]:
            peer.sendall(piece)
            time.sleep(0.02)  # lets the server read each piece by itself
        return read_until_closed(peer)


@pytest.mark.parametrize("upgrade", [b"h2c", b"TLS/1.0", b"foo"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_body_is_read_as_the_body_and_not_as_another_request(
    app: AppProcess, upgrade: bytes, whole: bool
) -> None:
    def statuses(body: bytes) -> list[bytes]:
        pieces = upgrade_request(body, upgrade)
        responses = send_pieces(app, [b"".join(pieces)] if whole else pieces)
        return re.findall(rb"HTTP/1\.1 (\d+) ", responses)

    assert statuses(BODY) == [b"200", b"404"]
    assert statuses(SMUGGLED_REQUEST) == [b"400", b"404"]


def test_many_upgrade_requests_in_one_read_are_all_answered(app: AppProcess) -> None:
    responses = send_pieces(app, [b"".join(upgrade_request(BODY)) * 500])
    assert responses.count(b'"Query"}}') == 500


@pytest.mark.parametrize("connection", [b"close, Upgrade", b"Upgrade, close"])
def test_the_last_request_of_a_connection_is_answered_without_its_upgrade(
    app: AppProcess, connection: bytes
) -> None:
    request = b"".join(upgrade_request(BODY)).replace(b"Upgrade\r", connection + b"\r", 1)
    with open_tcp_connection(app) as peer:
        peer.sendall(request)
        assert read_until_closed(peer).startswith(b"HTTP/1.1 200 ")


def test_connect_is_rejected_as_the_only_request(app: AppProcess) -> None:
    with open_tcp_connection(app) as peer:
        peer.sendall(b"CONNECT here:80 HTTP/1.1\r\nHost: here:80\r\n\r\n" + SMUGGLED_REQUEST)
        response = read_until_closed(peer)
    assert response.startswith(b"HTTP/1.1 400 ")
    assert response.count(b"HTTP/1.1 ") == 1
