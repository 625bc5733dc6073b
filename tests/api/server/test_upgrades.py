"""Who asks for another protocol than there is here is answered as if they had not asked for it."""

import json
import re
import time

import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.raw_connection import open_tcp_connection

WITHIN = b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n"
ASKED = json.dumps({"query": "{ __typename }"}).encode()


def request(body: bytes, upgrade: bytes = b"h2c") -> list[bytes]:
    """The header and the body of a request."""
    lines = b"Connection: Upgrade\r\nUpgrade: %s\r\nContent-Type: application/json" % upgrade
    start = b"POST /graphql HTTP/1.1\r\nHost: here\r\n" + lines
    return [start + b"\r\nContent-Length: %d\r\n\r\n" % len(body), body]


def told(app: AppProcess, pieces: list[bytes]) -> bytes:
    """What is answered to these and a last request."""
    last = b"GET /last HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
    answer = b""
    with open_tcp_connection(app) as connection:
        for piece in [*pieces, last]:
            connection.sendall(piece)
            time.sleep(0.02)  # so that it comes as a piece of its own
        while more := connection.recv(10_000):
            answer += more
    return answer


@pytest.mark.parametrize("upgrade", [b"h2c", b"TLS/1.0", b"foo"])
@pytest.mark.parametrize("whole", [True, False])
def test_its_body_is_read_and_no_request_of_its_own(
    app: AppProcess, upgrade: bytes, whole: bool
) -> None:
    def statuses(body: bytes) -> list[bytes]:
        pieces = request(body, upgrade)
        answer = told(app, [b"".join(pieces)] if whole else pieces)
        return re.findall(rb"HTTP/1\.1 (\d+) ", answer)

    assert statuses(ASKED) == [b"200", b"404"]
    assert statuses(WITHIN) == [b"400", b"404"]


def test_many_in_one_piece_are_all_answered(app: AppProcess) -> None:
    answer = told(app, [b"".join(request(ASKED)) * 500])
    assert answer.count(b'"Query"}}') == 500


def test_a_tunnel_is_refused(app: AppProcess) -> None:
    with open_tcp_connection(app) as connection:
        connection.sendall(b"CONNECT here:80 HTTP/1.1\r\nHost: here:80\r\n\r\n" + WITHIN)
        answer = b""
        while more := connection.recv(10_000):
            answer += more
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
