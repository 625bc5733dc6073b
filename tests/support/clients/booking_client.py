"""A client for every booking operation, and changes of stored holds that replace waiting."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from bson import ObjectId

from tests.support.apps.processes import AppProcess
from tests.support.clients.client import LOCK_WAIT_MS, GraphQLTestClient, Json
from tests.support.clients.teams import ACCEPT_INVITATION, CREATE_TEAM, INVITE_TO_TEAM
from tests.support.stores.empty_database import stored_database
from tests.support.stores.users import create_user_tokens

# The clock of a process is behind MongoDB's by up to a round trip.
CLOCK_LAG_S = 0.1

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
JOIN_WAITLIST = f"""mutation($slot: ID!, $user: ID) {{ joinWaitlist(slotId: $slot, userId: $user) {{
  __typename {REFUSAL_FIELDS}
  ... on WaitlistJoined {{ position entry {{ id since position }} slot {{ ...S }} }}
  ... on AlreadyWaiting {{ entry {{ id since position }} }}
}} }} {SLOT_FRAGMENT}"""
LEAVE_WAITLIST = f"""mutation($slot: ID!, $user: ID) {{
  leaveWaitlist(slotId: $slot, userId: $user) {{
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
DELETE_SLOT = """mutation($slot: ID!, $scope: SeriesScope! = THIS) {
  deleteSlot(slotId: $slot, scope: $scope) {
    __typename ... on SlotsDeleted { slotIds } ... on Refusal { code }
    ... on SlotHasBookings { slot { id } } ... on SlotNotFound { slotId }
  }
}"""
WATCH_MY_BOOKINGS = f"""subscription($own: Boolean! = false, $user: ID) {{
  myBookings(includeOwn: $own, userId: $user) {{
  action at by {{ id }} booking {{ ...B }} edits {{ field before after }}
}} }} {BOOKING_FRAGMENT}"""


class BookingClient(GraphQLTestClient):
    """A user who books places, or an organizer who manages slots."""

    async def book_slot(self, slot_id: str, **options: Any) -> Json:
        """Book a place with these options and return the result."""
        booking = {"slotId": slot_id, "waitMs": LOCK_WAIT_MS, **options}
        outcome: Json = await self.execute(BOOK_WITH_OPTIONS, input=booking)
        return outcome

    async def hold(self, slot_id: str, **options: Any) -> Json:
        """Hold a place and return the booking."""
        outcome = await self.book_slot(slot_id, hold=True, **options)
        assert outcome["__typename"] == "Booked", outcome
        booking: Json = outcome["booking"]
        return booking

    async def book_all(self, *claims: Json, **options: Any) -> Json:
        """Book several places at once and return the result."""
        booking = {"claims": claims, "waitMs": LOCK_WAIT_MS, **options}
        outcome: Json = await self.execute(BOOK_SEVERAL, input=booking)
        return outcome

    async def confirm(self, booking_id: str, **options: Any) -> Json:
        """Confirm a hold and return the result."""
        outcome: Json = await self.execute(CONFIRM_BOOKING, booking=booking_id, **options)
        return outcome

    async def extend(self, booking_id: str, **options: Any) -> Json:
        """Extend a hold and return the result."""
        outcome: Json = await self.execute(EXTEND_HOLD, booking=booking_id, **options)
        return outcome

    async def cancel_booking(self, booking_id: str, **options: Any) -> Json:
        """Cancel a booking and return the result."""
        outcome: Json = await self.execute(CANCEL_WITH_OPTIONS, booking=booking_id, **options)
        return outcome

    async def move(self, booking_id: str, slot_id: str, **options: Any) -> Json:
        """Move a booking to another slot and return the result."""
        move = {"bookingId": booking_id, "slotId": slot_id, "waitMs": LOCK_WAIT_MS, **options}
        outcome: Json = await self.execute(MOVE_BOOKING, input=move)
        return outcome

    async def join(self, slot_id: str, user_id: str | None = None) -> Json:
        """Join the waitlist, or put another user on it, and return the result."""
        outcome: Json = await self.execute(JOIN_WAITLIST, slot=slot_id, user=user_id)
        return outcome

    async def leave(self, slot_id: str, user_id: str | None = None) -> Json:
        """Leave the waitlist, or take another user off it, and return the result."""
        outcome: Json = await self.execute(LEAVE_WAITLIST, slot=slot_id, user=user_id)
        return outcome

    async def fetch_slot(self, slot_id: str) -> Json:
        """Return the slot with this user's own booking and waitlist entry."""
        slot: Json = await self.execute(SLOT_WITH_OWN_BOOKING, slot=slot_id)
        return slot

    async def fetch_user_id(self) -> str:
        """Return this user's id."""
        me: Json = await self.execute("{ me { id } }")
        return str(me["id"])

    async def fetch_booking(self, booking_id: str) -> Json:
        """Return a booking by its id."""
        booking: Json = await self.execute(BOOKING_BY_ID, id=booking_id)
        return booking

    async def add_slot(self, **fields: Any) -> str:
        """Create a slot as an organizer and return its id."""
        return str((await self.create_slot(**fields))["id"])

    async def update_slot(self, slot_id: str, **changes: Any) -> Json:
        """Change a slot as an organizer and return the result."""
        await self.import_resources(changes.get("resource"))
        outcome: Json = await self.execute(UPDATE_SLOT, input={"slotId": slot_id, **changes})
        return outcome

    async def cancel_slot(self, slot_id: str) -> None:
        """Cancel a slot as an organizer."""
        assert (await self.execute(CANCEL_SLOT, slot=slot_id))["__typename"] == "Slot"

    async def delete_slot(self, slot_id: str, **options: Any) -> Json:
        """Delete a slot as an organizer and return the result."""
        result: Json = await self.execute(DELETE_SLOT, slot=slot_id, **options)
        return result

    async def fetch_slot_history(self, slot_id: str) -> list[Json]:
        """Return the ended bookings of a slot as an organizer sees them."""
        nodes: list[Json] = (await self.execute(SLOT_HISTORY, slot=slot_id))["nodes"]
        return nodes

    async def create_team_with(self, *others: "BookingClient") -> str:
        """Create a team of this user and the others and return its id."""
        team_id = (await self.execute(CREATE_TEAM, name="Roommates"))["id"]
        for other in others:
            email = (await other.execute("{ me { email } }"))["email"]
            await self.execute(INVITE_TO_TEAM, team=team_id, email=email)
            assert (await other.execute(ACCEPT_INVITATION, team=team_id))["id"] == team_id
        return str(team_id)


def create_booking_clients(
    http: httpx.AsyncClient, size: int, *apps: AppProcess
) -> tuple[list[BookingClient], BookingClient]:
    """Create this many members, spread over the processes, and an organizer at the first."""
    tokens = create_user_tokens(apps[0].environment, size)
    members = [
        BookingClient(http, apps[i % len(apps)].url, t) for i, t in enumerate(tokens.members)
    ]
    return members, BookingClient(http, apps[0].url, tokens.organizer)


def expire_holds(mongo_url: str, *slot_ids: str, expired_for_s: float = 0.0) -> None:
    """Move the end of every hold in these slots into the past of all processes."""
    slots = stored_database(mongo_url)["slots"]
    ended_at = datetime.now(UTC) - timedelta(seconds=expired_for_s)
    for slot_id in slot_ids:
        query = {"_id": ObjectId(slot_id[-24:])}
        slot = slots.find_one(query)
        assert slot is not None
        for index, booking in enumerate(slot["bookings"]):
            if "heldUntil" in booking:
                path = f"bookings.{index}"
                last = len(booking["history"]) - 1
                # The booking may have been confirmed since it was read.
                unchanged = {
                    **query,
                    f"{path}.id": booking["id"],
                    f"{path}.heldUntil": booking["heldUntil"],
                }
                times = {
                    f"{path}.heldUntil": ended_at,
                    f"{path}.history.{last}.heldUntil": ended_at,
                }
                slots.update_one(unchanged, {"$set": {**times, "nextDeadline": ended_at}})
    time.sleep(CLOCK_LAG_S)


def expire_all_holds(mongo_url: str, slot_ids: list[str]) -> None:
    """Let the holds of many slots expire at the same instant. None may have been extended."""
    ended_at = datetime.now(UTC)
    stored_database(mongo_url)["slots"].update_many(
        {"_id": {"$in": [ObjectId(slot_id[-24:]) for slot_id in slot_ids]}},
        {
            "$set": {
                "bookings.$[held].heldUntil": ended_at,
                "bookings.$[held].history.$[].heldUntil": ended_at,
                "nextDeadline": ended_at,
            }
        },
        array_filters=[{"held.heldUntil": {"$exists": True}}],
    )


def backdate_bookings(mongo_url: str, slot_id: str, minutes: int) -> None:
    """Move the creation of every booking of a slot into the past. The end of holds stays."""
    slots = stored_database(mongo_url)["slots"]
    slot = slots.find_one({"_id": ObjectId(slot_id[-24:])})
    assert slot is not None
    for index, booking in enumerate(slot["bookings"]):
        is_short = "history" not in booking
        at = booking["at"] if is_short else booking["history"][0]["at"]
        field = f"bookings.{index}." + ("at" if is_short else "history.0.at")
        earlier = {"$set": {field: at - timedelta(minutes=minutes)}}
        slots.update_one({"_id": slot["_id"]}, earlier)
