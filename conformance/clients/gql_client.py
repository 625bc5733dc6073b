"""gql under remote control, as node/wire.js does it: `python -m conformance.clients.gql_client`."""

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
    """Answer an act."""
    print(json.dumps({"id": command["id"], **content}), flush=True)


async def execute(command: Json) -> None:
    """A query or a mutation over HTTP."""
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
    """A subscription over a socket of its own, which is opened again when it breaks."""
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
    """Do what the lines on standard input say, until they end."""
    running: dict[int, asyncio.Task[None]] = {}
    acts: dict[str, Callable[[Json], Awaitable[None]]] = {"ask": execute, "subscribe": subscribe}
    while line := await asyncio.to_thread(sys.stdin.readline):
        act = json.loads(line)
        if act["act"] == "unsubscribe":
            running[act["id"]].cancel()
        else:
            running[act["id"]] = asyncio.ensure_future(acts[act["act"]](act))
    for task in running.values():
        task.cancel()
    await asyncio.gather(*running.values(), return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main())
