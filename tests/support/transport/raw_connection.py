"""Raw TCP connections, for requests that violate HTTP or the WebSocket protocol."""

import json
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests.support.apps.processes import AppProcess
from tests.support.clients.client import Json

WEBSOCKET_HANDSHAKE = (
    b"GET /graphql HTTP/1.1\r\nHost: slotlock\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"
)
TEXT_OPCODE = 1


@contextmanager
def open_tcp_connection(
    app: AppProcess, receive_buffer: int | None = None
) -> Iterator[socket.socket]:
    """Open a connection to the app, optionally with a receive buffer of this size in bytes."""
    address = urlsplit(app.url)
    with socket.socket() as peer:
        if receive_buffer is not None:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        peer.settimeout(20)
        peer.connect((address.hostname, address.port))
        yield peer


def websocket_frame(payload: bytes, opcode: int = TEXT_OPCODE) -> bytes:
    """Return a message in one masked frame (RFC 6455, 5.2) with a mask of zeros."""
    length = len(payload)
    if length < 126:
        size = bytes([0x80 | length])
    elif length < 1 << 16:
        size = struct.pack("!BH", 0x80 | 126, length)
    else:
        size = struct.pack("!BQ", 0x80 | 127, length)
    return bytes([0x80 | opcode]) + size + bytes(4) + payload


def message_frame(content: Json) -> bytes:
    """Return a frame with a message of graphql-transport-ws."""
    return websocket_frame(json.dumps(content).encode())


def subscribe_frame(operation_id: str, document: str, **variables: object) -> bytes:
    """Return a frame that starts an operation."""
    payload = {"query": document, "variables": variables}
    return message_frame({"id": operation_id, "type": "subscribe", "payload": payload})


def initialize_websocket(peer: socket.socket, token: str | None = None) -> None:
    """Open a WebSocket on a connection up to the acknowledgement."""
    payload = {"authorization": f"Bearer {token}"} if token else None
    peer.sendall(WEBSOCKET_HANDSHAKE)
    read_until(peer, b"\r\n\r\n")
    peer.sendall(message_frame({"type": "connection_init", "payload": payload}))
    read_until(peer, b"connection_ack")


def read_until(peer: socket.socket, end: bytes) -> bytes:
    """Return all bytes up to and including these. Fails if the server closes before."""
    received = b""
    while end not in received:
        chunk = peer.recv(65_536)
        assert chunk, f"the server closed after {received!r}"
        received += chunk
    return received


def read_until_closed(peer: socket.socket) -> bytes:
    """Return all bytes until the server closes the connection."""
    received = b""
    try:
        while chunk := peer.recv(65_536):
            received += chunk
    except ConnectionError:
        pass
    return received


def reset_connection(peer: socket.socket) -> None:
    """Reset a connection, as a machine does after a power cycle."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
