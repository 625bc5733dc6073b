"""A client as its author would write one: real HTTP, real WebSockets, nothing of slotlock's."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.support.apps.processes import AppProcess

Json = dict[str, Any]

BOOK_SLOT = """mutation Book($slot: ID!) {
  bookSlot(input: {slotId: $slot}) {
    __typename
    ... on Booked { booking { id status user { id } } slot { id remaining version } }
    ... on Refusal { code message }
    ... on Locked { slotId retryAfterMs }
    ... on AlreadyBooked { booking { id } }
  }
}"""
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
SLOT_ROSTER = """query Roster($slot: ID!) {
  slotRoster(slotId: $slot, first: 100) { nodes { id user { id } } pageInfo { hasNextPage } }
}"""
WATCH_AVAILABILITY = """subscription Watch($slots: [ID!]!) {
  slotAvailability(slotIds: $slots) {
    slotId version capacity remaining isBooked status at
  }
}"""


class GraphQLTestClient:
    """One person, or nobody in particular, at one process of the app."""

    def __init__(self, http: httpx.AsyncClient, url: str, token: str | None = None) -> None:
        self.http = http
        self.url = url
        self.token = token

    @property
    def headers(self) -> dict[str, str]:
        """The person's identity."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    async def send(self, document: str, **variables: Any) -> Json:
        """The whole answer."""
        body = {"query": document, "variables": variables}
        response = await self.http.post(self.url + "/graphql", json=body, headers=self.headers)
        answer: Json = response.json()
        return answer

    async def execute(self, document: str, **variables: Any) -> Any:
        """The only field of an answer without errors."""
        answer = await self.send(document, **variables)
        assert "errors" not in answer, answer
        (field,) = answer["data"].values()
        return field

    async def error_code(self, document: str, **variables: Any) -> str:
        """The code of the first error."""
        answer = await self.send(document, **variables)
        return str(answer["errors"][0]["extensions"]["code"])

    async def create_slot(self, **fields: Any) -> Json:
        """A slot of one place tomorrow, unless the fields say otherwise."""
        slot: Json = await self.execute(CREATE_SLOT, input={**slot_input(), **fields})
        assert slot["__typename"] == "Slot", slot
        return slot

    async def book(self, slot_id: str) -> Json:
        """What came of booking."""
        outcome: Json = await self.execute(BOOK_SLOT, slot=slot_id)
        return outcome

    async def cancel(self, booking_id: str) -> Json:
        """What came of cancelling."""
        outcome: Json = await self.execute(CANCEL_BOOKING, booking=booking_id)
        return outcome


def hours_from_now(hours: float) -> str:
    """A time from now."""
    return (datetime.now(UTC) + timedelta(hours=hours)).isoformat(timespec="seconds")


def slot_input() -> Json:
    """What every slot needs."""
    return {"title": "A slot", "startTime": hours_from_now(24), "endTime": hours_from_now(25)}


@asynccontextmanager
async def http_client() -> AsyncIterator[httpx.AsyncClient]:
    """Connections enough for a rush."""
    limits = httpx.Limits(max_connections=500, max_keepalive_connections=500)
    async with httpx.AsyncClient(timeout=30, limits=limits, trust_env=False) as http:
        yield http


class WebSocketTestClient:
    """One graphql-transport-ws socket."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def send(self, message: Json) -> None:
        """Send a message."""
        await self.connection.send(json.dumps(message))

    async def receive(self) -> Json:
        """The next message; a test that waits in vain fails instead of hanging."""
        async with asyncio.timeout(20):
            message: Json = json.loads(await self.connection.recv())
        return message

    async def subscribe(self, operation_id: str, document: str, **variables: Any) -> None:
        """Begin an operation."""
        payload = {"query": document, "variables": variables}
        await self.send({"id": operation_id, "type": "subscribe", "payload": payload})

    async def next_result(self) -> Any:
        """The only field of the next answer."""
        message = await self.receive()
        assert message["type"] == "next", message
        assert "errors" not in message["payload"], message
        (field,) = message["payload"]["data"].values()
        return field


@asynccontextmanager
async def open_websocket(
    app: AppProcess, token: str | None = None
) -> AsyncIterator[WebSocketTestClient]:
    """An acknowledged socket."""
    protocols = [Subprotocol("graphql-transport-ws")]
    url = app.websocket_url
    async with connect(url, subprotocols=protocols, proxy=None, open_timeout=30) as connection:
        opened = WebSocketTestClient(connection)
        payload = {"authorization": f"Bearer {token}"} if token else None
        await opened.send({"type": "connection_init", "payload": payload})
        assert await opened.receive() == {"type": "connection_ack"}
        yield opened
