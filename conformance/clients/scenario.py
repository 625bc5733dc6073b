"""The scenario of a client: a slot that an admin changes, and a count of subscriptions."""

import asyncio
import secrets
from dataclasses import dataclass
from typing import Any

import httpx

from conformance.apps import ADMIN_EMAIL, ADMIN_PASSWORD, ConformanceApp
from conformance.clients.client_process import RESPONSE_TIMEOUT_S, Json, RemoteClient

SIGN_IN = """mutation ($email: EmailAddress!, $password: String!) {
  login(input: {email: $email, password: $password}) { ... on Session { accessToken } }
}"""
REGISTER = """mutation ($email: EmailAddress!) {
  register(input: {name: "Ada", email: $email, password: "correct horse"}) {
    ... on Session { accessToken }
  }
}"""
CREATE = """mutation {
  createSlot(input: {
    title: "A slot", capacity: 5, startTime: "2091-05-05T09:00:00Z", endTime: "2091-05-05T10:00:00Z"
  }) { ... on Slot { id } }
}"""
READ = "query ($slot: ID!) { slot(id: $slot) { title remaining } }"
BOOK = """mutation ($slot: ID!) {
  bookSlot(input: {slotId: $slot, waitMs: 20000}) {
    __typename ... on Refusal { code message } ... on Booked { booking { id } slot { version } }
  }
}"""
CANCEL = """mutation ($booking: ID!) {
  cancelBooking(bookingId: $booking) {
    __typename ... on BookingCancelled { slot { version } }
  }
}"""
WATCH = "subscription ($slots: [ID!]!) { slotAvailability(slotIds: $slots) { version remaining } }"


class ClientCheckError(Exception):
    """A client returned an unexpected response, which the text shows."""


def expect(condition: bool, actual: object) -> None:
    """Raise ClientCheckError with the response unless the condition holds."""
    if not condition:
        raise ClientCheckError(f"unexpected response: {actual}")


def first_code(response: Json) -> str | None:
    """Return the code of the first error in a response."""
    for error in response.get("errors") or ():
        return str(error["extensions"]["code"])
    return None


@dataclass(slots=True)
class Scenario:
    """The clients of one library, and an admin who changes the slot over HTTP."""

    app: ConformanceApp
    member: RemoteClient
    anonymous: RemoteClient
    impostor: RemoteClient
    http: httpx.AsyncClient
    admin_token: str
    slot_id: str
    subscription_id: int = -1
    booking_id: str | None = None

    async def change_slot(self) -> int:
        """Let the admin book, or cancel that booking, and return the version of the slot."""
        if self.booking_id is None:
            booked = await execute(self.http, self.app, self.admin_token, BOOK, slot=self.slot_id)
            self.booking_id = str(booked["booking"]["id"])
            return int(booked["slot"]["version"])
        cancelled = await execute(
            self.http, self.app, self.admin_token, CANCEL, booking=self.booking_id
        )
        self.booking_id = None
        return int(cancelled["slot"]["version"])

    async def expect_version(self, version: int) -> None:
        """Wait until the subscription delivers this version or a later one.

        Raises:
            ClientCheckError: The subscription delivered an error.
        """
        async with asyncio.timeout(RESPONSE_TIMEOUT_S):
            while True:
                response = await self.member.next(self.subscription_id)
                has_data = response.get("data") is not None and not response.get("errors")
                expect(has_data, response)
                if response["data"]["slotAvailability"]["version"] >= version:
                    return

    async def active_subscriptions(self) -> float:
        """Return the number of active subscriptions, from the metrics of the server."""
        text = (await self.http.get(self.app.url.replace("/graphql", "/metrics"))).text
        lines = (line.split() for line in text.splitlines())
        return next(float(line[1]) for line in lines if line[0] == "slotlock_subscriptions_active")


async def execute(
    http: httpx.AsyncClient, app: ConformanceApp, token: str, document: str, **variables: Any
) -> Any:
    """Send a document with one root field and return its value; raises ClientCheckError."""
    response = await http.post(
        app.url,
        json={"query": document, "variables": variables},
        headers={"Authorization": f"Bearer {token}"} if token else {},
    )
    result = response.json()
    expect("errors" not in result, result)
    (field,) = result["data"].values()
    return field


async def sign_in(http: httpx.AsyncClient, app: ConformanceApp) -> str:
    """Sign in as the admin and return the access token."""
    credentials = {"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD}
    return str((await execute(http, app, "", SIGN_IN, **credentials))["accessToken"])


async def register(http: httpx.AsyncClient, app: ConformanceApp) -> str:
    """Register a member and return the access token."""
    email = f"{secrets.token_hex(8)}@slotlock.test"
    return str((await execute(http, app, "", REGISTER, email=email))["accessToken"])
