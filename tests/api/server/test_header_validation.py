"""A header that a proxy may read in another way is rejected with 400, and the connection closes."""

import json
import re

import pytest

from tests.support.apps.processes import AppProcess
from tests.support.transport.raw_connection import (
    WEBSOCKET_HANDSHAKE,
    open_tcp_connection,
    read_until_closed,
)

BODY = json.dumps({"query": "{ __typename }"}).encode()
HOST = b"Host: slotlock\r\n"
JSON = b"Content-Type: application/json\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
LAST_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: slotlock\r\nConnection: close\r\n\r\n"


def post(
    fields: bytes = b"",
    body: bytes = BODY,
    *,
    length: bytes = LENGTH,
    host: bytes = HOST,
    target: bytes = b"/graphql",
    version: bytes = b"HTTP/1.1",
) -> bytes:
    """Return a POST with more fields."""
    head = b"POST %s %s\r\n%s%s%s%s\r\n" % (target, version, host, JSON, fields, length)
    return head + body


def chunked(fields: bytes = b"", body: bytes = CHUNKS, coding: bytes = b"", **more: bytes) -> bytes:
    """Return a POST in chunks, or with another transfer coding."""
    length = b"Transfer-Encoding: %s\r\n" % coding if coding else CHUNKED
    return post(fields, body, length=length, **more)


def send(app: AppProcess, request: bytes) -> bytes:
    """Return what the server sends to a request and LAST_REQUEST until it closes the connection."""
    with open_tcp_connection(app) as peer:
        peer.sendall(request + LAST_REQUEST)
        return read_until_closed(peer)


MALFORMED = {
    "no host": post(host=b""),
    "two hosts": post(host=HOST + HOST),
    "two different hosts": post(host=HOST + b"Host: other\r\n"),
    "two hosts in HTTP/1.0": post(host=HOST + HOST, version=b"HTTP/1.0"),
    "hosts joined by a comma": post(host=b"Host: here, there\r\n"),
    "a host with a space": post(host=b"Host: a b\r\n"),
    "a host with a path": post(host=b"Host: a/b\r\n"),
    "a host with a user": post(host=b"Host: user@a\r\n"),
    "a host outside ASCII": post(host=b"Host: \xc3\xa9\r\n"),
    "a port that is no number": post(host=b"Host: a:8x\r\n"),
    "two authorizations": post(b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n"),
    "two types": post(JSON),
    "two origins": post(b"Origin: https://a\r\norigin: https://b\r\n"),
    "a coding before chunked": chunked(coding=b"gzip, chunked"),
    "codings in two fields": chunked(b"Transfer-Encoding: gzip\r\n"),
    "chunked twice": chunked(coding=b"chunked, chunked"),
    "chunked in two fields": chunked(CHUNKED),
    "an unknown coding": chunked(coding=b"gzip"),
    "an empty coding": chunked(coding=b" "),
    "identity": chunked(coding=b"identity"),
    "chunks in HTTP/1.0": chunked(version=b"HTTP/1.0"),
    "a length and chunks": chunked(LENGTH),
    "two equal lengths": post(LENGTH),
    "two different lengths": post(b"Content-Length: 1\r\n"),
    "a list of lengths": post(length=LENGTH.replace(b"\r", b", %d\r" % len(BODY))),
    "a length with a sign": post(length=LENGTH.replace(b": ", b": +")),
    "a negative length": post(length=b"Content-Length: -1\r\n"),
    "an empty length": post(length=b"Content-Length:\r\n"),
    "a length beyond 64 bits": post(length=b"Content-Length: %s\r\n" % (b"9" * 30)),
    "a folded line": post(b"X: a\r\n b\r\n"),
    "a space before the colon": post(b"X : a\r\n"),
    "a space before the first field": post(host=b" " + HOST),
    "a field without a name": post(b": a\r\n"),
    "a field without a colon": post(b"X\r\n"),
    "NUL in a name": post(b"X\0: a\r\n"),
    "NUL in a value": post(b"X: a\0b\r\n"),
    "CR in a value": post(b"X: a\rb\r\n"),
    "lines without CR": post().replace(b"\r\n", b"\n"),
    "HTTP/2.0": post(version=b"HTTP/2.0"),
    "HTTP/0.9": post(version=b"HTTP/0.9"),
    "no version": b"GET /healthz\r\n\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a target with a fragment": post(target=b"/graphql#part"),
    "a target with a space": post(target=b"/graph ql"),
    "a target with NUL": post(target=b"/graphql\0"),
    "a target without a slash": post(target=b"graphql"),
    "an unknown method": post().replace(b"POST", b"FETCH"),
    "a size that is no number": chunked(body=CHUNKS.replace(b"\r", b"z\r", 1)),
    "a negative size": chunked(body=b"-" + CHUNKS),
    "a size beyond 64 bits": chunked(body=b"f" * 17 + CHUNKS),
    "a chunk longer than its size": chunked(body=CHUNKS.replace(b"}", b"}}")),
    "two authorizations of a handshake": WEBSOCKET_HANDSHAKE.replace(
        b"\r\n\r\n", b"\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n"
    ),
    "a handshake without a host": WEBSOCKET_HANDSHAKE.replace(HOST, b""),
    "two keys of a handshake": WEBSOCKET_HANDSHAKE.replace(
        b"\r\n\r\n", b"\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    ),
}


@pytest.mark.parametrize("target", [b"/graphql", b"/users/import"])
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_gets_400_and_is_the_last_of_its_connection(
    app: AppProcess, name: str, target: bytes
) -> None:
    response = send(app, MALFORMED[name].replace(b"/graphql", target))
    assert re.findall(rb"HTTP/1\.1 (\d+)", response) == [b"400"]


UNUSUAL = {
    "HTTP/1.0 without a host": post(host=b"", version=b"HTTP/1.0"),
    "an empty host": post(host=b"Host:\r\n"),
    "a host with a port": post(host=b"Host: my_host.example:80\r\n"),
    "an address of IPv6": post(host=b"Host: [::1]:80\r\n"),
    "an absolute target": post(target=b"http://slotlock/graphql"),
    "chunked in capitals": chunked(coding=b"CHUNKED"),
    "chunked in a list with an empty element": chunked(coding=b", chunked"),
    "an extension of a chunk": chunked(body=CHUNKS.replace(b"\r", b";a=b\r", 1)),
    "no space before a value": post(host=b"Host:slotlock\r\n"),
    "spaces around a value": post(host=b"Host: \t slotlock \t \r\n"),
    "a tab and Latin-1 in a value": post(b"X: a\tb\xe9\r\n"),
    "several values of a list": post(b"Accept: text/csv\r\nAccept: application/json\r\n"),
    "two fields of no interest": post(b"X: a\r\nX: b\r\n"),
    "an empty line before the request": b"\r\n" + post(),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_unusual_request_is_served(app: AppProcess, name: str) -> None:
    response = send(app, UNUSUAL[name])
    assert response.startswith(b"HTTP/1.1 200 ")
    assert b'{"data":{"__typename":"Query"}}' in response


def test_a_trailer_is_no_part_of_the_header(app: AppProcess) -> None:
    body = json.dumps({"query": "{ me { id } }"}).encode()
    trailer = b"0\r\nAuthorization: Bearer none\r\n\r\n"
    chunk = b"%x\r\n%s\r\n" % (len(body), body)
    as_header = send(app, chunked(b"Authorization: Bearer none\r\n", chunk + b"0\r\n\r\n"))
    as_trailer, no_token = (send(app, chunked(body=chunk + end)) for end in (trailer, b"0\r\n\r\n"))
    body_of = re.compile(rb"\{.*?\}(?=HTTP)")
    assert body_of.findall(as_trailer) == body_of.findall(no_token) != body_of.findall(as_header)
