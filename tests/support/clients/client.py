"""GraphQL clients over real HTTP and WebSockets, without any code of slotlock."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.support.apps.processes import AppProcess
from tests.support.polling import TIMEOUT_S

Json = dict[str, Any]
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # the default loads the CA certificates

BOOK_SLOT = """mutation Book($slot: ID!, $wait: Int! = 0) {
  bookSlot(input: {slotId: $slot, waitMs: $wait}) {
    __typename
    ... on Booked { booking { id status user { id } } slot { id remaining version } }
    ... on Refusal { code message }
    ... on Locked { slotId retryAfterMs }
    ... on AlreadyBooked { booking { id } }
  }
}"""
# No response waits for the release of its lock: the next request may reach another process before.
LOCK_WAIT_MS = 5000
CANCEL_BOOKING = """mutation Cancel($booking: ID!) {
  cancelBooking(bookingId: $booking) {
    __typename
    ... on BookingCancelled { booking { id status cancelledAt } slot { id remaining version } }
    ... on Refusal { code message }
  }
}"""
CREATE_SLOT = """mutation Create($input: CreateSlotInput!) {
  createSlot(input: $input) {
    __typename
    ... on Slot {
      id title startTime endTime timeZone capacity remaining isBooked version status kind location
    }
    ... on InvalidInput { code message fields { field message } }
  }
}"""
IMPORT_RESOURCES = """mutation($names: [String!]!) { importResources(names: $names) {
  __typename ... on Refusal { message }
} }"""
SLOT_ROSTER = """query Roster($slot: ID!) {
  slotRoster(slotId: $slot, first: 100) { nodes { id user { id } } pageInfo { hasNextPage } }
}"""
WATCH_AVAILABILITY = """subscription Watch($slots: [ID!]!) {
  slotAvailability(slotIds: $slots) {
    slotId version capacity remaining isBooked status at
  }
}"""


class GraphQLTestClient:
    """A user, or an anonymous client, of one process of the app."""

    def __init__(self, http: httpx.AsyncClient, url: str, token: str | None = None) -> None:
        self.http = http
        self.url = url
        self.token = token

    @property
    def headers(self) -> dict[str, str]:
        """The headers that identify the user."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    async def send(self, document: str, **variables: Any) -> Json:
        """Send a document and return the whole response."""
        body = {"query": document, "variables": variables}
        response = await self.http.post(self.url + "/graphql", json=body, headers=self.headers)
        result: Json = response.json()
        return result

    async def execute(self, document: str, **variables: Any) -> Any:
        """Send a document and return its only field. The response must have no errors."""
        result = await self.send(document, **variables)
        assert "errors" not in result, result
        (field,) = result["data"].values()
        return field

    async def all_nodes(self, document: str, **variables: Any) -> list[Json]:
        """Return the nodes on all pages of the list, or of the node's `slots`, in a document."""
        nodes: list[Json] = []
        after = None
        while True:
            page = await self.execute(document, after=after, **variables)
            page = page.get("slots", page)
            nodes += page["nodes"]
            if not page["pageInfo"]["hasNextPage"]:
                return nodes
            after = page["pageInfo"]["endCursor"]

    async def error_code(self, document: str, **variables: Any) -> str:
        """Send a document and return the code of the first error."""
        result = await self.send(document, **variables)
        return str(result["errors"][0]["extensions"]["code"])

    async def create_slot(self, **fields: Any) -> Json:
        """Create a slot with these fields; by default it has one place and starts tomorrow."""
        await self.import_resources(fields.get("resource"))
        slot: Json = await self.execute(CREATE_SLOT, input={**slot_input(), **fields})
        assert slot["__typename"] == "Slot", slot
        return slot

    async def import_resources(self, *names: str | None) -> None:
        """Create those of the resources that do not exist. None stands for no resource."""
        if wanted := [name for name in names if name]:
            imported = await self.execute(IMPORT_RESOURCES, names=wanted)
            assert imported["__typename"] == "ResourcesImported", imported

    async def book(self, slot_id: str) -> Json:
        """Book a place and return the result."""
        outcome: Json = await self.execute(BOOK_SLOT, slot=slot_id, wait=LOCK_WAIT_MS)
        return outcome

    async def cancel(self, booking_id: str) -> Json:
        """Cancel a booking and return the result."""
        outcome: Json = await self.execute(CANCEL_BOOKING, booking=booking_id)
        return outcome


def hours_from_now(hours: float) -> str:
    """Return the time this many hours from now in ISO 8601."""
    return (datetime.now(UTC) + timedelta(hours=hours)).isoformat(timespec="seconds")


def times_in(hours: float, length: float = 1) -> Json:
    """Return the times of a slot that begins this many hours from now, and its length in hours."""
    return {"startTime": hours_from_now(hours), "endTime": hours_from_now(hours + length)}


def slot_input() -> Json:
    """Return the required fields of a new slot, which starts tomorrow."""
    return {"title": "A slot", **times_in(24)}


@asynccontextmanager
async def http_client() -> AsyncIterator[httpx.AsyncClient]:
    """Open an HTTP client for concurrent requests of many users.

    aiohttp sends its requests. httpcore looks at each of its connections for every request.
    """
    async with (
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        ) as session,
        httpx.AsyncClient(
            transport=AiohttpTransport(NO_TLS, client=session), timeout=TIMEOUT_S, trust_env=False
        ) as http,
    ):
        yield http


class WebSocketTestClient:
    """A WebSocket that speaks graphql-transport-ws."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def send(self, message: Json) -> None:
        """Send a message."""
        await self.connection.send(json.dumps(message))

    async def receive(self) -> Json:
        """Return the next message. Fails after TIMEOUT_S."""
        async with asyncio.timeout(TIMEOUT_S):
            message: Json = json.loads(await self.connection.recv())
        return message

    async def subscribe(self, operation_id: str, document: str, **variables: Any) -> None:
        """Start an operation."""
        payload = {"query": document, "variables": variables}
        await self.send({"id": operation_id, "type": "subscribe", "payload": payload})

    async def next_result(self) -> Any:
        """Return the only field of the next result, which must have no errors."""
        message = await self.receive()
        assert message["type"] == "next", message
        assert "errors" not in message["payload"], message
        (field,) = message["payload"]["data"].values()
        return field


@asynccontextmanager
async def open_websocket(
    app: AppProcess, token: str | None = None, address: str | None = None
) -> AsyncIterator[WebSocketTestClient]:
    """Open a WebSocket up to the acknowledgement of the server.

    `address` is stated by the client as a proxy would, for apps that trust it.
    """
    async with connect(
        app.websocket_url,
        subprotocols=[Subprotocol("graphql-transport-ws")],
        additional_headers={"X-Forwarded-For": address} if address else None,
        proxy=None,
        open_timeout=30,
    ) as connection:
        websocket = WebSocketTestClient(connection)
        payload = {"authorization": f"Bearer {token}"} if token else None
        await websocket.send({"type": "connection_init", "payload": payload})
        assert await websocket.receive() == {"type": "connection_ack"}
        yield websocket
