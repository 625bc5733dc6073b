"""The acts of the booking desk, as the author of a client would write them."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from bson import ObjectId
from pymongo import MongoClient

from tests.support.client import Client, Json
from tests.support.people import make_crowd
from tests.support.processes import AppProcess
from tests.support.teams import ACCEPT, CREATE_TEAM, INVITE

BOOKING = """fragment B on Booking {
  id status heldUntil createdAt endedAt onBehalf waitedSince movedFrom movedTo overrode
  user { id } madeBy { id } slot { id }
  history { at what before after heldUntil overrode by { id } }
}"""
SLOT = "fragment S on Slot { id remaining version isBooked waitlistLength capacity }"
REFUSAL = """... on Refusal { __typename code message }"""

BOOK = f"""mutation($input: BookSlotInput!) {{ bookSlot(input: $input) {{
  __typename {REFUSAL}
  ... on Booked {{ booking {{ ...B }} slot {{ ...S }} }}
  ... on AlreadyBooked {{ booking {{ ...B }} }}
  ... on LimitReached {{ limit otherBookingId }}
}} }} {BOOKING} {SLOT}"""
BOOK_ALL = f"""mutation($input: BookSlotsInput!) {{ bookSlots(input: $input) {{
  __typename {REFUSAL}
  ... on AllBooked {{ bookings {{ ...B }} }}
  ... on ClaimsRefused {{ refusals {{ claim slotId refusal {{ __typename code message }} }} }}
}} }} {BOOKING}"""
CONFIRM = f"""mutation($booking: ID!, $key: String, $wait: Int! = 5000) {{
  confirmBooking(bookingId: $booking, idempotencyKey: $key, waitMs: $wait) {{
    __typename {REFUSAL}
    ... on BookingConfirmed {{ booking {{ ...B }} slot {{ ...S }} }}
  }}
}} {BOOKING} {SLOT}"""
EXTEND = f"""mutation($booking: ID!, $key: String) {{
  extendHold(bookingId: $booking, idempotencyKey: $key) {{
    __typename {REFUSAL} ... on HoldExtended {{ booking {{ ...B }} slot {{ ...S }} }}
  }}
}} {BOOKING} {SLOT}"""
CANCEL = f"""mutation($booking: ID!, $key: String, $wait: Int! = 5000) {{
  cancelBooking(bookingId: $booking, idempotencyKey: $key, waitMs: $wait) {{
    __typename {REFUSAL}
    ... on BookingCancelled {{ booking {{ ...B }} slot {{ ...S }} }}
    ... on CutoffPassed {{ cutoff }}
  }}
}} {BOOKING} {SLOT}"""
MOVE = f"""mutation($input: MoveBookingInput!) {{ moveBooking(input: $input) {{
  __typename {REFUSAL}
  ... on BookingMoved {{ booking {{ ...B }} oldBooking {{ ...B }} slot {{ ...S }} }}
}} }} {BOOKING} {SLOT}"""
JOIN = f"""mutation($slot: ID!) {{ joinWaitlist(slotId: $slot) {{
  __typename {REFUSAL}
  ... on WaitlistJoined {{ position entry {{ id since position }} slot {{ ...S }} }}
  ... on AlreadyWaiting {{ entry {{ id since position }} }}
}} }} {SLOT}"""
LEAVE = f"""mutation($slot: ID!) {{ leaveWaitlist(slotId: $slot) {{
  __typename {REFUSAL} ... on WaitlistLeft {{ slot {{ ...S }} }}
}} }} {SLOT}"""
MINE = f"""query($slot: ID!) {{ slot(id: $slot) {{
  ...S myBooking {{ ...B }} myWaitlistEntry {{ id since position }}
}} }} {BOOKING} {SLOT}"""
NODE = f"query($id: ID!) {{ node(id: $id) {{ ... on Booking {{ ...B }} }} }} {BOOKING}"
HISTORY = f"""query($slot: ID!) {{
  slotHistory(slotId: $slot, first: 100) {{ nodes {{ ...B }} }}
}} {BOOKING}"""
UPDATE = f"""mutation($input: UpdateSlotInput!) {{ updateSlot(input: $input) {{
  __typename {REFUSAL} ... on Slot {{ ...S }}
}} }} {SLOT}"""
CALL_OFF = "mutation($slot: ID!) { cancelSlot(slotId: $slot) { __typename } }"
NEWS = f"""subscription {{ myBookings {{
  what at by {{ id }} booking {{ ...B }}
}} }} {BOOKING}"""


class Person(Client):
    """Somebody at the desk."""

    async def wish(self, slot_id: str, **wish: Any) -> Json:
        """What came of booking in the way that is wished."""
        outcome: Json = await self.ask(BOOK, input={"slotId": slot_id, **wish})
        return outcome

    async def hold(self, slot_id: str, **wish: Any) -> Json:
        """The booking that is a hold."""
        outcome = await self.wish(slot_id, hold=True, **wish)
        assert outcome["__typename"] == "Booked", outcome
        booking: Json = outcome["booking"]
        return booking

    async def book_all(self, *claims: Json, **wish: Any) -> Json:
        """What came of booking several places."""
        outcome: Json = await self.ask(BOOK_ALL, input={"claims": claims, **wish})
        return outcome

    async def confirm(self, booking_id: str, **more: Any) -> Json:
        """What came of confirming."""
        outcome: Json = await self.ask(CONFIRM, booking=booking_id, **more)
        return outcome

    async def extend(self, booking_id: str, **more: Any) -> Json:
        """What came of extending."""
        outcome: Json = await self.ask(EXTEND, booking=booking_id, **more)
        return outcome

    async def give_back(self, booking_id: str, **more: Any) -> Json:
        """What came of cancelling."""
        outcome: Json = await self.ask(CANCEL, booking=booking_id, **more)
        return outcome

    async def move(self, booking_id: str, slot_id: str, **more: Any) -> Json:
        """What came of moving."""
        outcome: Json = await self.ask(
            MOVE, input={"bookingId": booking_id, "slotId": slot_id, **more}
        )
        return outcome

    async def join(self, slot_id: str) -> Json:
        """What came of joining the waiting list."""
        outcome: Json = await self.ask(JOIN, slot=slot_id)
        return outcome

    async def leave(self, slot_id: str) -> Json:
        """What came of leaving the waiting list."""
        outcome: Json = await self.ask(LEAVE, slot=slot_id)
        return outcome

    async def mine(self, slot_id: str) -> Json:
        """The slot as this person sees it."""
        slot: Json = await self.ask(MINE, slot=slot_id)
        return slot

    async def id(self) -> str:
        """This person's id."""
        me: Json = await self.ask("{ me { id } }")
        return str(me["id"])

    async def seen(self, booking_id: str) -> Json:
        """A booking as this person sees it by its id."""
        booking: Json = await self.ask(NODE, id=booking_id)
        return booking

    async def slot(self, **fields: Any) -> str:
        """The id of a new slot, made by an organiser."""
        return str((await self.create_slot(**fields))["id"])

    async def update(self, slot_id: str, **changes: Any) -> Json:
        """What came of changing a slot, as an organiser."""
        outcome: Json = await self.ask(UPDATE, input={"slotId": slot_id, **changes})
        return outcome

    async def call_off(self, slot_id: str) -> None:
        """Call a slot off, as an organiser."""
        assert (await self.ask(CALL_OFF, slot=slot_id))["__typename"] == "Slot"

    async def history(self, slot_id: str) -> list[Json]:
        """The bookings of a slot that ended, as an organiser sees them."""
        nodes: list[Json] = (await self.ask(HISTORY, slot=slot_id))["nodes"]
        return nodes

    async def team_up(self, *others: "Person") -> str:
        """The id of a new team of this person and the others."""
        team_id = (await self.ask(CREATE_TEAM, name="Roommates"))["id"]
        for other in others:
            email = (await other.ask("{ me { email } }"))["email"]
            await self.ask(INVITE, team=team_id, email=email)
            assert (await other.ask(ACCEPT, team=team_id))["id"] == team_id
        return str(team_id)


async def staffed(
    http: httpx.AsyncClient, size: int, *apps: AppProcess
) -> tuple[list[Person], Person]:
    """So many new people, by turns at the processes, and an organiser at the first."""
    crowd = await make_crowd(apps[0].environment, size)
    members = [Person(http, apps[i % len(apps)].url, t) for i, t in enumerate(crowd.members)]
    return members, Person(http, apps[0].url, crowd.organiser)


async def wait_for(
    look: Callable[[], Awaitable[Json]], true: Callable[[Json], Any], what: str
) -> Json:
    """What is seen once it is so; waits for a state, not for a time."""
    deadline = time.monotonic() + 20
    while not true(seen := await look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain: {what}; it is {seen}")
        await asyncio.sleep(0.02)
    return seen


def let_holds_run_out(mongo_url: str, *slot_ids: str, ago_s: float = 0.0) -> None:
    """Let the time of every hold in these slots be over, as if the clock had jumped."""
    with closing(MongoClient[Json](mongo_url, tz_aware=True)) as client:
        slots = client.get_default_database()["slots"]
        until = datetime.now(UTC) - timedelta(seconds=ago_s)
        for slot_id in slot_ids:
            query = {"_id": ObjectId(slot_id[-24:])}
            slot = slots.find_one(query)
            assert slot is not None
            for place, booking in enumerate(slot["bookings"]):
                if "until" in booking:
                    here = f"bookings.{place}"
                    last = len(booking["log"]) - 1
                    # Guarded: the booking may have been confirmed since it was read.
                    mine = {**query, f"{here}.id": booking["id"], f"{here}.until": booking["until"]}
                    times = {f"{here}.until": until, f"{here}.log.{last}.until": until}
                    slots.update_one(mine, {"$set": {**times, "due": until}})


def let_all_run_out(mongo_url: str, slot_ids: list[str]) -> None:
    """Let the holds of many slots run out in the same instant; none of them was extended."""
    with closing(MongoClient[Json](mongo_url, tz_aware=True)) as client:
        until = datetime.now(UTC)
        client.get_default_database()["slots"].update_many(
            {"_id": {"$in": [ObjectId(slot_id[-24:]) for slot_id in slot_ids]}},
            {
                "$set": {
                    "bookings.$[held].until": until,
                    "bookings.$[held].log.$[].until": until,
                    "due": until,
                }
            },
            array_filters=[{"held.until": {"$exists": True}}],
        )


def let_bookings_be_older(mongo_url: str, slot_id: str, minutes: int) -> None:
    """Let every booking of a slot have been made so much earlier; holds last as long as before."""
    with closing(MongoClient[Json](mongo_url, tz_aware=True)) as client:
        slots = client.get_default_database()["slots"]
        slot = slots.find_one({"_id": ObjectId(slot_id[-24:])})
        assert slot is not None
        for place, booking in enumerate(slot["bookings"]):
            made = booking["log"][0]["at"] - timedelta(minutes=minutes)
            slots.update_one({"_id": slot["_id"]}, {"$set": {f"bookings.{place}.log.0.at": made}})
