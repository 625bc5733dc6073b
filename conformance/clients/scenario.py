"""What a client finds: a slot that an admin keeps changing, and a server that counts listeners."""

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
  bookSlot(input: {slotId: $slot}) {
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
    """A client did not tell what it should; the text says what it told."""


def expect(condition: bool, actual: object) -> None:
    """Errors: DisappointedError."""
    if not condition:
        raise ClientCheckError(f"it told {actual}")


def first_code(answer: Json) -> str | None:
    """The code of the first error that a client tells."""
    for error in answer.get("errors") or ():
        return str(error["extensions"]["code"])
    return None


@dataclass(slots=True)
class Scene:
    """An admin who changes what the client watches, over plain HTTP."""

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
        """Let the admin book, or cancel what they booked; the slot's version then."""
        if self.booking_id is None:
            booked = await execute(self.http, self.app, self.admin_token, BOOK, slot=self.slot_id)
            self.booking_id = str(booked["booking"]["id"])
            return int(booked["slot"]["version"])
        gone = await execute(self.http, self.app, self.admin_token, CANCEL, booking=self.booking_id)
        self.booking_id = None
        return int(gone["slot"]["version"])

    async def expect_version(self, version: int) -> None:
        """See that the subscription tells this version in the end. Errors: DisappointedError."""
        async with asyncio.timeout(RESPONSE_TIMEOUT_S):
            while True:
                told = await self.member.next(self.subscription_id)
                expect(told.get("data") is not None and not told.get("errors"), told)
                if told["data"]["slotAvailability"]["version"] >= version:
                    return

    async def active_subscriptions(self) -> float:
        """How many the server says are open."""
        text = (await self.http.get(self.app.url.replace("/graphql", "/metrics"))).text
        lines = (line.split() for line in text.splitlines())
        return next(float(line[1]) for line in lines if line[0] == "slotlock_subscriptions_active")


async def execute(
    http: httpx.AsyncClient, app: ConformanceApp, token: str, document: str, **variables: Any
) -> Any:
    """The only field of an answer without errors. Errors: DisappointedError."""
    response = await http.post(
        app.url,
        json={"query": document, "variables": variables},
        headers={"Authorization": f"Bearer {token}"} if token else {},
    )
    answer = response.json()
    expect("errors" not in answer, answer)
    (field,) = answer["data"].values()
    return field


async def sign_in(http: httpx.AsyncClient, app: ConformanceApp) -> str:
    """The admin's token."""
    named = {"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD}
    return str((await execute(http, app, "", SIGN_IN, **named))["accessToken"])


async def register(http: httpx.AsyncClient, app: ConformanceApp) -> str:
    """A new member's token."""
    email = f"{secrets.token_hex(8)}@slotlock.test"
    return str((await execute(http, app, "", REGISTER, email=email))["accessToken"])
