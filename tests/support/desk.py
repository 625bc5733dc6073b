"""The acts of the booking desk, as the author of a client would write them."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo import MongoClient

from tests.support.client import Client, Json

BOOKING = """fragment B on Booking {
  id status heldUntil createdAt endedAt onBehalf waitedSince movedFrom movedTo overrode
  user { id } slot { id }
  history { at what before after heldUntil overrode by { id } }
}"""
SLOT = "fragment S on Slot { id remaining version isBooked waitlistLength capacity }"
REFUSAL = """... on Refusal { __typename code message }"""

BOOK = f"""mutation($input: BookSlotInput!) {{ bookSlot(input: $input) {{
  __typename {REFUSAL}
  ... on Booked {{ booking {{ ...B }} slot {{ ...S }} }}
  ... on AlreadyBooked {{ booking {{ ...B }} }}
  ... on LimitReached {{ limit bookingId }}
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
