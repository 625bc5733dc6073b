"""Finds which bookings of unconfirmed updates a majority has, and what that says of the updates."""

from collections.abc import Mapping, Sequence

from bson import ObjectId

from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.shared.values import value_object
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.slots.change_set import CommitResult, SlotUpdate
from slotlock.infrastructure.mongo.slots.queries import booking_ids_projection


@value_object
class StoredBookings:
    """Which new bookings MongoDB has, live or ended, and the versions of their slots."""

    booking_ids: frozenset[BookingId]
    versions: Mapping[SlotId, int]

    def result_of(self, update: SlotUpdate, *, is_confirmed: bool) -> CommitResult:
        """Return the outcome of an update that adds bookings."""
        if new_booking_ids(update) <= self.booking_ids:
            return CommitResult.WRITTEN
        version = self.versions.get(update.before.id)
        # After an election, a read may be older than the one that the update is based on. So an
        # older version says nothing, and neither does a missing slot: it may not be there yet.
        if version is None:
            return CommitResult.CONFLICT if is_confirmed else CommitResult.UNKNOWN
        # Versions only grow: a write that is conditional on an older one never happens.
        is_outdated = version > update.before.version
        return CommitResult.CONFLICT if is_outdated else CommitResult.UNKNOWN


async def find_stored_bookings(
    database: Database, slot_updates: Sequence[SlotUpdate]
) -> StoredBookings:
    """Find which new bookings a majority has: a bulk write says how many, and not which."""
    ids = [ObjectId(id_) for update in slot_updates for id_ in new_booking_ids(update)]
    query = {"_id": {"$in": [ObjectId(update.before.id) for update in slot_updates]}}
    found = await database["slots"].find(query, booking_ids_projection(ids)).to_list()
    live = {entry["id"] for document in found for entry in document["bookings"]}
    # Another command may have ended one since.
    not_live = {"_id": {"$in": [id_ for id_ in ids if id_ not in live]}}
    ended = await database["ended_bookings"].find(not_live, {"_id": 1}).to_list()
    return StoredBookings(
        frozenset(BookingId(str(id_)) for id_ in live | {each["_id"] for each in ended}),
        {SlotId(str(document["_id"])): document["version"] for document in found},
    )


def new_booking_ids(update: SlotUpdate) -> set[BookingId]:
    """Return the ids of the bookings that an update adds."""
    return {booking.id for booking in update.after.change.added}
