"""What an app does with slots."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from slotlock_example import operations
from slotlock_example.client import SlotlockClient
from slotlock_example.retry import with_retry


@dataclass(frozen=True, slots=True)
class Refusal:
    """An expected outcome other than success: `code` is for programs, `message` for the user."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Booking:
    """A place of the user; a HELD one ends at `held_until` unless the user confirms it."""

    id: str
    status: str
    held_until: str | None


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot in a list."""

    id: str
    title: str
    remaining: int


@dataclass(frozen=True, slots=True)
class Availability:
    """The state of a slot; of two states, the one with the higher version is newer."""

    slot_id: str
    version: int
    remaining: int
    status: str


@dataclass(frozen=True, slots=True)
class Ticket:
    """The progress of a request in the admission queue."""

    status: str
    position: int | None
    outcome: Booking | Refusal | None


def new_key() -> str:
    """Return a key for one intention of the user; store it with a form that may be sent again."""
    return str(uuid4())


async def list_slots(client: SlotlockClient, text: str) -> list[Slot]:
    """Return all slots with places left that match the words."""
    found: list[Slot] = []
    after = None
    while True:
        page = await with_retry(client.execute, operations.LIST_SLOTS, text=text, after=after)
        found += [Slot(node["id"], node["title"], node["remaining"]) for node in page["nodes"]]
        if not page["pageInfo"]["hasNextPage"]:
            return found
        after = page["pageInfo"]["endCursor"]


async def watch_slots(
    client: SlotlockClient, slot_ids: list[str]
) -> AsyncGenerator[Availability, None]:
    """Yield the state of the slots, now and after every change.

    After a reconnect the server sends the current state again; the version orders all of them.
    """
    versions: dict[str, int] = {}
    async with aclosing(client.subscribe(operations.WATCH_SLOTS, slotIds=slot_ids)) as states:
        async for state in states:
            if state["version"] > versions.get(state["slotId"], -1):
                versions[state["slotId"]] = state["version"]
                yield Availability(
                    state["slotId"], state["version"], state["remaining"], state["status"]
                )


async def book(
    client: SlotlockClient, slot_id: str, key: str, *, hold: bool = False
) -> Booking | Refusal:
    """Book a place, or hold it until the user confirms. With one key, it has one effect."""
    place = {"slotId": slot_id, "idempotencyKey": key, "hold": hold, "waitMs": 5000}
    return _to_outcome(await with_retry(client.execute, operations.BOOK, input=place))


async def confirm(client: SlotlockClient, booking_id: str, key: str) -> Booking | Refusal:
    """Confirm a hold before it expires."""
    return _to_outcome(
        await with_retry(client.execute, operations.CONFIRM, bookingId=booking_id, key=key)
    )


async def cancel(client: SlotlockClient, booking_id: str, key: str) -> Booking | Refusal:
    """Cancel a booking or a hold, or decline an offer."""
    return _to_outcome(
        await with_retry(client.execute, operations.CANCEL, bookingId=booking_id, key=key)
    )


async def join_waitlist(client: SlotlockClient, slot_id: str) -> int | Refusal:
    """Join the waiting list of a full slot and return the position, from 1.

    After a lost response, the retry returns the refusal ALREADY_WAITING, which is fine.
    """
    outcome = await with_retry(client.execute, operations.JOIN_WAITLIST, slotId=slot_id)
    return int(outcome["position"]) if "position" in outcome else _to_refusal(outcome)


async def wait_for_place(client: SlotlockClient, slot_id: str) -> Booking | None:
    """Return the booking or offer (HELD) from the waiting list; None if the wait ended without.

    Each new state of the slot is a reason to read, also the first one after a reconnect.
    """
    async with aclosing(watch_slots(client, [slot_id])) as states:
        async for _ in states:
            place = await with_retry(client.execute, operations.MY_PLACE, slotId=slot_id)
            if place and place["myBooking"]:
                return _to_booking(place["myBooking"])
            if not place or not place["myWaitlistEntry"]:
                return None
    return None


async def follow_my_bookings(client: SlotlockClient) -> AsyncGenerator[tuple[str, Booking], None]:
    """Yield what others did to the user's bookings. Events during a lost connection are lost."""
    async with aclosing(client.subscribe(operations.FOLLOW_MY_BOOKINGS)) as events:
        async for event in events:
            yield event["action"], _to_booking(event["booking"])


async def request_ticket(client: SlotlockClient, slot_id: str, key: str) -> str | Refusal:
    """Enter the admission queue and return the id of the ticket; the same for the same key."""
    place = {"slotId": slot_id, "idempotencyKey": key}
    outcome = await with_retry(client.execute, operations.REQUEST_TICKET, input=place)
    return str(outcome["id"]) if "id" in outcome else _to_refusal(outcome)


async def follow_ticket(client: SlotlockClient, ticket_id: str) -> AsyncGenerator[Ticket, None]:
    """Yield the progress of a ticket to its end: ANSWERED with the outcome, LOST or FAILED."""
    async with aclosing(client.subscribe(operations.FOLLOW_TICKET, id=ticket_id)) as tickets:
        async for ticket in tickets:
            outcome = ticket["outcome"]
            yield Ticket(ticket["status"], ticket["position"], outcome and _to_outcome(outcome))
            if ticket["status"] != "QUEUED":
                return


def _to_outcome(outcome: dict[str, Any]) -> Booking | Refusal:
    return _to_booking(outcome["booking"]) if "booking" in outcome else _to_refusal(outcome)


def _to_refusal(outcome: dict[str, Any]) -> Refusal:
    return Refusal(outcome["code"], outcome["message"])


def _to_booking(booking: dict[str, Any]) -> Booking:
    return Booking(booking["id"], booking["status"], booking["heldUntil"])
