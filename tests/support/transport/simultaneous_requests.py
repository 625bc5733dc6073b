"""Requests that arrive at the same instant: all but their last byte is sent in advance.

An ordinary client needs more time to build a request than the app to process it. Its 200
"simultaneous" requests arrive one after the other, and such a race proves nothing.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from tests.support.clients.client import BOOK_SLOT, Json

# Without guards a race may go well by chance on a busy machine, but not this often in a row.
MAX_LUCKY_RUNS = 5

Call = tuple[str, str, str, dict[str, Any]]
TcpConnection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _continue_at_once(_number: int) -> None:
    pass


async def send_simultaneously(calls: Sequence[Call]) -> list[Json]:
    """Send (url, token, query, variables) at once and return the only field of each response."""
    return await send_in_order(calls, _continue_at_once)


async def send_in_order(
    calls: Sequence[Call], after_each: Callable[[int], Awaitable[None]]
) -> list[Json]:
    """Send requests one after the other, and await `after_each` with the number of each from 0."""
    connections = await asyncio.gather(*(_open_connection(url) for url, *_ in calls))
    try:
        # A first request of each user keeps the session lookups out of the race.
        warm_up = [_request(url, token, "{ me { id } }", {}) for url, token, *_ in calls]
        await _send_all(connections, warm_up)
        requests = [_request(*call) for call in calls]
        responses = await _send_all(connections, requests, after_each)
    finally:
        for _, writer in connections:
            writer.close()
    assert not any("errors" in response for response in responses), responses
    return [next(iter(response["data"].values())) for response in responses]


async def book_simultaneously(
    urls: Sequence[str], tokens: Sequence[str], slot_id: str
) -> list[Json]:
    """Book a slot with every token at once, at the URLs in rotation, and return the results."""
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


async def _send_all(
    connections: Sequence[TcpConnection],
    requests: Sequence[bytes],
    after_each: Callable[[int], Awaitable[None]] = _continue_at_once,
) -> list[Json]:
    for (_, writer), request in zip(connections, requests, strict=True):
        writer.write(request[:-1])
    await asyncio.gather(*(writer.drain() for _, writer in connections))
    for number, (_, writer) in enumerate(connections):
        writer.write(requests[number][-1:])
        await after_each(number)
    return list(await asyncio.gather(*(_read_response(reader) for reader, _ in connections)))


async def _read_response(reader: asyncio.StreamReader) -> Json:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.split("content-length:")[1].split("\r\n")[0])
    response: Json = json.loads(await reader.readexactly(length))
    return response
