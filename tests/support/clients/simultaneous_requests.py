"""Requests that arrive in the same instant: all but their last byte is sent ahead.

An ordinary client spends longer on making a request than the app on answering it, so that 200 of
its "simultaneous" requests arrive one after the other, and a race that is not one proves nothing.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from tests.support.clients.client import BOOK_SLOT, Json

# On a busy machine a race without guards can go well by luck, not so many in a row.
MAX_LUCKY_RUNS = 5

TcpConnection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def send_simultaneously(calls: Sequence[tuple[str, str, str, dict[str, Any]]]) -> list[Json]:
    """The answers' only fields, for (url, token, query, variables) that all arrive at once."""
    connections = await asyncio.gather(*(_open_connection(url) for url, *_ in calls))
    try:
        # Whoever asks has been here before: no session is looked up while the race is on.
        whoami = [_request(url, token, "{ me { id } }", {}) for url, token, *_ in calls]
        await _send_all(connections, whoami)
        requests = [_request(*shot) for shot in calls]
        answers = await _send_all(connections, requests)
    finally:
        for _, writer in connections:
            writer.close()
    assert not any("errors" in answer for answer in answers), answers
    return [next(iter(answer["data"].values())) for answer in answers]


async def book_simultaneously(
    urls: Sequence[str], tokens: Sequence[str], slot_id: str
) -> list[Json]:
    """Each token's outcome of booking the same slot at the same instant, by turns at the urls."""
    return await send_simultaneously(
        [
            (urls[i % len(urls)], token, BOOK_SLOT, {"slot": slot_id})
            for i, token in enumerate(tokens)
        ]
    )


async def _open_connection(url: str) -> TcpConnection:
    address = urlsplit(url)
    return await asyncio.open_connection(address.hostname, address.port)


def _request(url: str, token: str, query: str, variables: dict[str, Any]) -> bytes:
    body = json.dumps({"query": query, "variables": variables}).encode()
    head = (
        f"POST /graphql HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n"
        f"Content-Type: application/json\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _send_all(connections: Sequence[TcpConnection], requests: Sequence[bytes]) -> list[Json]:
    for (_, writer), request in zip(connections, requests, strict=True):
        writer.write(request[:-1])
    await asyncio.gather(*(writer.drain() for _, writer in connections))
    for (_, writer), request in zip(connections, requests, strict=True):
        writer.write(request[-1:])
    return list(await asyncio.gather(*(_read_response(reader) for reader, _ in connections)))


async def _read_response(reader: asyncio.StreamReader) -> Json:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.split("content-length:")[1].split("\r\n")[0])
    answer: Json = json.loads(await reader.readexactly(length))
    return answer
