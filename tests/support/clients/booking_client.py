"""The acts of the booking desk, as the author of a client would write them."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from bson import ObjectId
from pymongo import MongoClient

from tests.support.apps.processes import AppProcess
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.clients.teams import ACCEPT_INVITATION, CREATE_TEAM, INVITE_TO_TEAM
from tests.support.stores.users import create_user_tokens

BOOKING_FRAGMENT = """fragment B on Booking {
  id status heldUntil createdAt endedAt onBehalf waitedSince movedFrom movedTo overriddenLimits
  user { id } madeBy { id } slot { id }
  history { at action before after heldUntil overriddenLimits by { id } }
}"""
SLOT_FRAGMENT = "fragment S on Slot { id remaining version isBooked waitlistLength capacity }"
REFUSAL_FIELDS = """... on Refusal { __typename code message }"""

BOOK_WITH_OPTIONS = f"""mutation($input: BookSlotInput!) {{ bookSlot(input: $input) {{
  __typename {REFUSAL_FIELDS}
  ... on Booked {{ booking {{ ...B }} slot {{ ...S }} }}
  ... on AlreadyBooked {{ booking {{ ...B }} }}
  ... on LimitReached {{ limit otherBookingId }}
}} }} {BOOKING_FRAGMENT} {SLOT_FRAGMENT}"""
BOOK_SEVERAL = f"""mutation($input: BookSlotsInput!) {{ bookSlots(input: $input) {{
  __typename {REFUSAL_FIELDS}
  ... on AllBooked {{ bookings {{ ...B }} }}
  ... on ClaimsRefused {{ refusals {{ claim slotId refusal {{ __typename code message }} }} }}
}} }} {BOOKING_FRAGMENT}"""
CONFIRM_BOOKING = f"""mutation($booking: ID!, $key: String, $wait: Int! = 5000) {{
  confirmBooking(bookingId: $booking, idempotencyKey: $key, waitMs: $wait) {{
    __typename {REFUSAL_FIELDS}
    ... on BookingConfirmed {{ booking {{ ...B }} slot {{ ...S }} }}
  }}
}} {BOOKING_FRAGMENT} {SLOT_FRAGMENT}"""
EXTEND_HOLD = f"""mutation($booking: ID!, $key: String) {{
  extendHold(bookingId: $booking, idempotencyKey: $key) {{
    __typename {REFUSAL_FIELDS} ... on HoldExtended {{ booking {{ ...B }} slot {{ ...S }} }}
  }}
}} {BOOKING_FRAGMENT} {SLOT_FRAGMENT}"""
CANCEL_WITH_OPTIONS = f"""mutation($booking: ID!, $key: String, $wait: Int! = 5000) {{
  cancelBooking(bookingId: $booking, idempotencyKey: $key, waitMs: $wait) {{
    __typename {REFUSAL_FIELDS}
    ... on BookingCancelled {{ booking {{ ...B }} slot {{ ...S }} }}
    ... on CutoffPassed {{ cutoff }}
  }}
}} {BOOKING_FRAGMENT} {SLOT_FRAGMENT}"""
MOVE_BOOKING = f"""mutation($input: MoveBookingInput!) {{ moveBooking(input: $input) {{
  __typename {REFUSAL_FIELDS}
  ... on BookingMoved {{ booking {{ ...B }} oldBooking {{ ...B }} slot {{ ...S }} }}
}} }} {BOOKING_FRAGMENT} {SLOT_FRAGMENT}"""
JOIN_WAITLIST = f"""mutation($slot: ID!) {{ joinWaitlist(slotId: $slot) {{
  __typename {REFUSAL_FIELDS}
  ... on WaitlistJoined {{ position entry {{ id since position }} slot {{ ...S }} }}
  ... on AlreadyWaiting {{ entry {{ id since position }} }}
}} }} {SLOT_FRAGMENT}"""
LEAVE_WAITLIST = f"""mutation($slot: ID!) {{ leaveWaitlist(slotId: $slot) {{
  __typename {REFUSAL_FIELDS} ... on WaitlistLeft {{ slot {{ ...S }} }}
}} }} {SLOT_FRAGMENT}"""
SLOT_WITH_OWN_BOOKING = f"""query($slot: ID!) {{ slot(id: $slot) {{
  ...S myBooking {{ ...B }} myWaitlistEntry {{ id since position }}
}} }} {BOOKING_FRAGMENT} {SLOT_FRAGMENT}"""
BOOKING_BY_ID = (
    f"query($id: ID!) {{ node(id: $id) {{ ... on Booking {{ ...B }} }} }} {BOOKING_FRAGMENT}"
)
SLOT_HISTORY = f"""query($slot: ID!) {{
  slotHistory(slotId: $slot, first: 100) {{ nodes {{ ...B }} }}
}} {BOOKING_FRAGMENT}"""
UPDATE_SLOT = f"""mutation($input: UpdateSlotInput!) {{ updateSlot(input: $input) {{
  __typename {REFUSAL_FIELDS} ... on Slot {{ ...S }}
}} }} {SLOT_FRAGMENT}"""
CANCEL_SLOT = "mutation($slot: ID!) { cancelSlot(slotId: $slot) { __typename } }"
WATCH_MY_BOOKINGS = f"""subscription {{ myBookings {{
  action at by {{ id }} booking {{ ...B }}
}} }} {BOOKING_FRAGMENT}"""


class BookingClient(GraphQLTestClient):
    """Somebody at the desk."""

    async def book_slot(self, slot_id: str, **options: Any) -> Json:
        """What came of booking in the way that is wished."""
        outcome: Json = await self.execute(BOOK_WITH_OPTIONS, input={"slotId": slot_id, **options})
        return outcome

    async def hold(self, slot_id: str, **options: Any) -> Json:
        """The booking that is a hold."""
        outcome = await self.book_slot(slot_id, hold=True, **options)
        assert outcome["__typename"] == "Booked", outcome
        booking: Json = outcome["booking"]
        return booking

    async def book_all(self, *claims: Json, **options: Any) -> Json:
        """What came of booking several places."""
        outcome: Json = await self.execute(BOOK_SEVERAL, input={"claims": claims, **options})
        return outcome

    async def confirm(self, booking_id: str, **options: Any) -> Json:
        """What came of confirming."""
        outcome: Json = await self.execute(CONFIRM_BOOKING, booking=booking_id, **options)
        return outcome

    async def extend(self, booking_id: str, **options: Any) -> Json:
        """What came of extending."""
        outcome: Json = await self.execute(EXTEND_HOLD, booking=booking_id, **options)
        return outcome

    async def cancel_booking(self, booking_id: str, **options: Any) -> Json:
        """What came of cancelling."""
        outcome: Json = await self.execute(CANCEL_WITH_OPTIONS, booking=booking_id, **options)
        return outcome

    async def move(self, booking_id: str, slot_id: str, **options: Any) -> Json:
        """What came of moving."""
        outcome: Json = await self.execute(
            MOVE_BOOKING, input={"bookingId": booking_id, "slotId": slot_id, **options}
        )
        return outcome

    async def join(self, slot_id: str) -> Json:
        """What came of joining the waiting list."""
        outcome: Json = await self.execute(JOIN_WAITLIST, slot=slot_id)
        return outcome

    async def leave(self, slot_id: str) -> Json:
        """What came of leaving the waiting list."""
        outcome: Json = await self.execute(LEAVE_WAITLIST, slot=slot_id)
        return outcome

    async def fetch_slot(self, slot_id: str) -> Json:
        """The slot as this person sees it."""
        slot: Json = await self.execute(SLOT_WITH_OWN_BOOKING, slot=slot_id)
        return slot

    async def fetch_user_id(self) -> str:
        """This person's id."""
        me: Json = await self.execute("{ me { id } }")
        return str(me["id"])

    async def fetch_booking(self, booking_id: str) -> Json:
        """A booking as this person sees it by its id."""
        booking: Json = await self.execute(BOOKING_BY_ID, id=booking_id)
        return booking

    async def add_slot(self, **fields: Any) -> str:
        """The id of a new slot, made by an organiser."""
        return str((await self.create_slot(**fields))["id"])

    async def update_slot(self, slot_id: str, **changes: Any) -> Json:
        """What came of changing a slot, as an organiser."""
        outcome: Json = await self.execute(UPDATE_SLOT, input={"slotId": slot_id, **changes})
        return outcome

    async def cancel_slot(self, slot_id: str) -> None:
        """Call a slot off, as an organiser."""
        assert (await self.execute(CANCEL_SLOT, slot=slot_id))["__typename"] == "Slot"

    async def fetch_slot_history(self, slot_id: str) -> list[Json]:
        """The bookings of a slot that ended, as an organiser sees them."""
        nodes: list[Json] = (await self.execute(SLOT_HISTORY, slot=slot_id))["nodes"]
        return nodes

    async def create_team_with(self, *others: "BookingClient") -> str:
        """The id of a new team of this person and the others."""
        team_id = (await self.execute(CREATE_TEAM, name="Roommates"))["id"]
        for other in others:
            email = (await other.execute("{ me { email } }"))["email"]
            await self.execute(INVITE_TO_TEAM, team=team_id, email=email)
            assert (await other.execute(ACCEPT_INVITATION, team=team_id))["id"] == team_id
        return str(team_id)


async def create_booking_clients(
    http: httpx.AsyncClient, size: int, *apps: AppProcess
) -> tuple[list[BookingClient], BookingClient]:
    """So many new people, by turns at the processes, and an organiser at the first."""
    crowd = await create_user_tokens(apps[0].environment, size)
    members = [BookingClient(http, apps[i % len(apps)].url, t) for i, t in enumerate(crowd.members)]
    return members, BookingClient(http, apps[0].url, crowd.organizer)


def expire_holds(mongo_url: str, *slot_ids: str, expired_for_s: float = 0.0) -> None:
    """Let the time of every hold in these slots be over, as if the clock had jumped."""
    with closing(MongoClient[Json](mongo_url, tz_aware=True)) as client:
        slots = client.get_default_database()["slots"]
        until = datetime.now(UTC) - timedelta(seconds=expired_for_s)
        for slot_id in slot_ids:
            query = {"_id": ObjectId(slot_id[-24:])}
            slot = slots.find_one(query)
            assert slot is not None
            for place, booking in enumerate(slot["bookings"]):
                if "heldUntil" in booking:
                    here = f"bookings.{place}"
                    last = len(booking["history"]) - 1
                    # Guarded: the booking may have been confirmed since it was read.
                    mine = {
                        **query,
                        f"{here}.id": booking["id"],
                        f"{here}.heldUntil": booking["heldUntil"],
                    }
                    times = {f"{here}.heldUntil": until, f"{here}.history.{last}.heldUntil": until}
                    slots.update_one(mine, {"$set": {**times, "nextDeadline": until}})


def expire_all_holds(mongo_url: str, slot_ids: list[str]) -> None:
    """Let the holds of many slots run out in the same instant; none of them was extended."""
    with closing(MongoClient[Json](mongo_url, tz_aware=True)) as client:
        until = datetime.now(UTC)
        client.get_default_database()["slots"].update_many(
            {"_id": {"$in": [ObjectId(slot_id[-24:]) for slot_id in slot_ids]}},
            {
                "$set": {
                    "bookings.$[held].heldUntil": until,
                    "bookings.$[held].history.$[].heldUntil": until,
                    "nextDeadline": until,
                }
            },
            array_filters=[{"held.heldUntil": {"$exists": True}}],
        )


def backdate_bookings(mongo_url: str, slot_id: str, minutes: int) -> None:
    """Let every booking of a slot have been made so much earlier; holds last as long as before."""
    with closing(MongoClient[Json](mongo_url, tz_aware=True)) as client:
        slots = client.get_default_database()["slots"]
        slot = slots.find_one({"_id": ObjectId(slot_id[-24:])})
        assert slot is not None
        for place, booking in enumerate(slot["bookings"]):
            made = booking["history"][0]["at"] - timedelta(minutes=minutes)
            slots.update_one(
                {"_id": slot["_id"]}, {"$set": {f"bookings.{place}.history.0.at": made}}
            )
