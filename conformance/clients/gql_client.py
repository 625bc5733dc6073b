"""The library gql under remote control; node/remote_control.js has the same protocol."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from gql import Client, GraphQLRequest
from gql.client import AsyncClientSession
from gql.transport.aiohttp import AIOHTTPTransport
from gql.transport.exceptions import TransportError, TransportQueryError
from gql.transport.websockets import WebsocketsTransport
from websockets.exceptions import ConnectionClosed

RETRY_DELAY_S = 0.1
AUTHORIZATION = {"authorization": f"Bearer {os.environ['TOKEN']}"} if os.environ["TOKEN"] else {}

Json = dict[str, Any]


def reply(command: Json, content: Json) -> None:
    """Send a response to a command."""
    print(json.dumps({"id": command["id"], **content}), flush=True)


async def execute(command: Json) -> None:
    """Execute a query or mutation over HTTP."""
    transport = AIOHTTPTransport(os.environ["URL"], headers=AUTHORIZATION)
    request = GraphQLRequest(command["query"], variable_values=command["variables"])
    try:
        async with Client(transport=transport) as session:
            reply(command, {"data": await session.execute(request)})
    except TransportQueryError as error:
        reply(command, {"data": error.data, "errors": error.errors})
    except TransportError as error:
        reply(command, {"failed": repr(error)})


async def subscribe(command: Json) -> None:
    """Run a subscription over a socket of its own, and reconnect after a failure."""
    while True:
        transport = WebsocketsTransport(
            os.environ["SOCKET_URL"],
            init_payload=AUTHORIZATION,
            subprotocols=[WebsocketsTransport.GRAPHQLWS_SUBPROTOCOL],
        )
        try:
            async with Client(transport=transport) as session:
                return await _follow(command, session)
        except TransportQueryError as error:
            return reply(command, {"errors": error.errors})
        except (TransportError, ConnectionClosed, OSError):
            await asyncio.sleep(RETRY_DELAY_S)


async def _follow(command: Json, session: AsyncClientSession) -> None:
    request = GraphQLRequest(command["query"], variable_values=command["variables"])
    async for data in session.subscribe(request):
        reply(command, {"data": data})
    reply(command, {"complete": True})


async def main() -> None:
    """Run the commands from standard input until it ends."""
    running: dict[int, asyncio.Task[None]] = {}
    handlers: dict[str, Callable[[Json], Awaitable[None]]] = {
        "execute": execute,
        "subscribe": subscribe,
    }
    while line := await asyncio.to_thread(sys.stdin.readline):
        message = json.loads(line)
        if message["command"] == "unsubscribe":
            running[message["id"]].cancel()
        else:
            handler = handlers[message["command"]]
            running[message["id"]] = asyncio.ensure_future(handler(message))
    for task in running.values():
        task.cancel()
    await asyncio.gather(*running.values(), return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main())
