"""What a client finds: a slot that an admin keeps changing, and a server that counts listeners."""

import asyncio
import secrets
from dataclasses import dataclass
from typing import Any

import httpx

from conformance.apps import ADMIN_EMAIL, ADMIN_PASSWORD, App
from conformance.clients.remote import TOLD_WITHIN_S, Json, Remote

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


class DisappointedError(Exception):
    """A client did not tell what it should; the text says what it told."""


def expect(true: bool, told: object) -> None:
    """Errors: DisappointedError."""
    if not true:
        raise DisappointedError(f"it told {told}")


def first_code(answer: Json) -> str | None:
    """The code of the first error that a client tells."""
    for error in answer.get("errors") or ():
        return str(error["extensions"]["code"])
    return None


@dataclass(slots=True)
class Scene:
    """An admin who changes what the client watches, over plain HTTP."""

    app: App
    member: Remote
    nobody: Remote
    pretender: Remote
    http: httpx.AsyncClient
    admin: str
    slot: str
    watched: int = -1
    booking: str | None = None

    async def change(self) -> int:
        """Let the admin book, or cancel what they booked; the slot's version then."""
        if self.booking is None:
            booked = await post(self.http, self.app, self.admin, BOOK, slot=self.slot)
            self.booking = str(booked["booking"]["id"])
            return int(booked["slot"]["version"])
        gone = await post(self.http, self.app, self.admin, CANCEL, booking=self.booking)
        self.booking = None
        return int(gone["slot"]["version"])

    async def hears(self, version: int) -> None:
        """See that the subscription tells this version in the end. Errors: DisappointedError."""
        async with asyncio.timeout(TOLD_WITHIN_S):
            while True:
                told = await self.member.next(self.watched)
                expect(told.get("data") is not None and not told.get("errors"), told)
                if told["data"]["slotAvailability"]["version"] >= version:
                    return

    async def subscriptions(self) -> float:
        """How many the server says are open."""
        text = (await self.http.get(self.app.url.replace("/graphql", "/metrics"))).text
        lines = (line.split() for line in text.splitlines())
        return next(float(line[1]) for line in lines if line[0] == "slotlock_subscriptions_active")


async def post(http: httpx.AsyncClient, app: App, token: str, query: str, **variables: Any) -> Any:
    """The only field of an answer without errors. Errors: DisappointedError."""
    response = await http.post(
        app.url,
        json={"query": query, "variables": variables},
        headers={"Authorization": f"Bearer {token}"} if token else {},
    )
    answer = response.json()
    expect("errors" not in answer, answer)
    (field,) = answer["data"].values()
    return field


async def sign_in(http: httpx.AsyncClient, app: App) -> str:
    """The admin's token."""
    named = {"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD}
    return str((await post(http, app, "", SIGN_IN, **named))["accessToken"])


async def register(http: httpx.AsyncClient, app: App) -> str:
    """A new member's token."""
    email = f"{secrets.token_hex(8)}@slotlock.test"
    return str((await post(http, app, "", REGISTER, email=email))["accessToken"])
