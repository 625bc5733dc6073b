"""The query of a caller for one slot, and its part of a shared result.

Concurrent queries are one command to MongoDB, which reads for all of them. Each caller then gets
what its own query alone would have returned, and never a row of another caller.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from bson import ObjectId
from pymongo.asynchronous.collection import AsyncCollection

from slotlock.domain.booking.booking import Booking, BookingId, SlotId, WaitlistEntry
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.expressions import is_expired, unexpired_deadlines
from slotlock.infrastructure.mongo.slots.slot_documents import LOADED_FIELDS, to_slot_state

MAX_WAITLIST_LENGTH = 1000
_HAS_GROUP_LIMITS = {
    "$or": [
        {"$ne": [{"$ifNull": [f"${limits}", []]}, []]}
        for limits in ("groupLimits", "campaign.groupLimits")
    ]
}
_GROUP_NAMES = {
    "$reduce": {
        "input": "$bookings.groups",
        "initialValue": [],
        "in": {"$setUnion": ["$$value", "$$this"]},
    }
}
_BOOKINGS_OF_GROUP = {
    "$filter": {
        "input": "$bookings.groups",
        "as": "groups",
        "cond": {"$in": ["$$group", "$$groups"]},
    }
}
_GROUP_COUNTS = {
    "$map": {
        "input": _GROUP_NAMES,
        "as": "group",
        "in": {"group": "$$group", "count": {"$size": _BOOKINGS_OF_GROUP}},
    }
}


@value_object
class SlotQuery:
    """Which slot to load, and which of its bookings and waitlist entries.

    Loaded are the bookings of these users, the bookings with these ids, the holds that expired,
    the booking of a one-place slot, the users' waitlist entries, and the first `waitlist_depth`
    entries with one more for each hold that expired. Where groups are limited and a place is free,
    or may become free by an update, the whole waitlist is loaded: the next user may be far behind.
    """

    slot_id: SlotId
    now: datetime
    user_ids: Sequence[UserId] = ()
    booking_ids: Sequence[BookingId] = ()
    waitlist_depth: int = 1
    for_update: bool = False


@value_object
class SlotParts:
    """The parts of slots that several queries need together; see `SlotQuery`."""

    now: datetime
    user_ids: frozenset[UserId]
    booking_ids: frozenset[BookingId]
    waitlist_depth: int
    for_update: bool

    @classmethod
    def of(cls, queries: Sequence[SlotQuery], *, for_update: bool = False) -> "SlotParts":
        """Return enough for all these queries."""
        return cls(
            max([query.now for query in queries]),
            frozenset[UserId]().union(*[query.user_ids for query in queries]),
            frozenset[BookingId]().union(*[query.booking_ids for query in queries]),
            max([query.waitlist_depth for query in queries]),
            for_update or any(query.for_update for query in queries),
        )

    def to_projection(self) -> Document:
        """Return the projection to these parts."""
        return slot_projection(
            self.now,
            self.user_ids,
            self.booking_ids,
            self.waitlist_depth,
            for_update=self.for_update,
        )


def slot_projection(
    now: datetime,
    user_ids: Iterable[UserId] = (),
    booking_ids: Iterable[BookingId] = (),
    waitlist_depth: int = 1,
    *,
    for_update: bool = False,
) -> Document:
    """Return the projection to what a `SlotQuery` with these fields loads of a slot."""
    users = [ObjectId(user_id) for user_id in user_ids]
    wanted = [{"$in": ["$$this.user", "$$present"]}, is_expired("$$this", now)]
    if ids := [ObjectId(booking_id) for booking_id in booking_ids]:
        wanted.append({"$in": ["$$this.id", ids]})
    expired = {"$filter": {"input": "$bookings", "cond": is_expired("$$this", now)}}
    expired_count = {"$size": expired}
    may_promote = True if for_update else {"$gt": [{"$add": ["$remaining", expired_count]}, 0]}
    depth = {
        "$cond": [
            {"$and": [_HAS_GROUP_LIMITS, may_promote]},
            MAX_WAITLIST_LENGTH,
            {"$add": [expired_count, waitlist_depth]},
        ]
    }
    own_entries = _filter_with_users("waitlist", users, {"$in": ["$$this.user", "$$present"]})
    return {
        **dict.fromkeys(LOADED_FIELDS, 1),
        "bookings": {
            "$cond": [
                {"$eq": ["$capacity", 1]},  # clients see who booked a one-place slot
                "$bookings",
                _filter_with_users("bookings", users, {"$or": wanted}),
            ]
        },
        "groupCounts": {"$cond": [_HAS_GROUP_LIMITS, _GROUP_COUNTS, []]},
        # Without a waitlist, MongoDB need not count the expired holds.
        "waitlist": {"$cond": [{"$eq": ["$waitlist", []]}, [], {"$slice": ["$waitlist", depth]}]},
        "ownWaitlistEntries": own_entries,
        "waitlistLength": {"$size": "$waitlist"},
        "nextDeadline": {"$min": unexpired_deadlines(now)},
    }


async def find_states(
    slots: AsyncCollection[Document],
    query: Document,
    now: datetime,
    user_ids: Iterable[UserId] = (),
    **options: Any,
) -> list[SlotState]:
    """Return the slots of a query; `options` are those of the driver."""
    found = slots.find(query, slot_projection(now, user_ids), **options)
    return [to_slot_state(document) async for document in found]


def _filter_with_users(array: str, users: Sequence[ObjectId], condition: Document) -> Document:
    """Return the expression for the elements that fulfil a condition.

    Its variable `present` has those of the users who are in the array. MongoDB finds them by a set:
    for each element, `$in` compares one value after the other, and most of a crowd are not there.
    """
    present = {"$setIntersection": [f"${array}.user", users]}
    filtered = {"$filter": {"input": f"${array}", "cond": condition}}
    return {"$let": {"vars": {"present": present}, "in": filtered}}


class SharedSlot:
    """A slot that was loaded for several queries at once."""

    def __init__(self, slot: SlotState) -> None:
        self._slot = slot
        self._bookings_by_user: dict[UserId, list[int]] = {}
        self._bookings_by_id: dict[BookingId, int] = {}
        self._entries_by_user: dict[UserId, list[int]] = {}
        for index, booking in enumerate(slot.bookings):
            self._bookings_by_user.setdefault(booking.user_id, []).append(index)
            self._bookings_by_id[booking.id] = index
        for index, entry in enumerate(slot.waitlist):
            self._entries_by_user.setdefault(entry.user_id, []).append(index)
        self._holds = [
            (index, held_until)
            for index, booking in enumerate(slot.bookings)
            if (held_until := booking.held_until) is not None
        ]

    def part_for(self, query: SlotQuery) -> SlotState:
        """Return the slot as this query alone would have loaded it."""
        expired = [index for index, held_until in self._holds if held_until <= query.now]
        waitlist, loaded = self._waitlist_for(query, len(expired))
        return replace(
            self._slot,
            bookings=self._bookings_for(query, expired),
            waitlist=waitlist,
            loaded_waitlist=loaded,
            next_deadline=self._next_deadline(query),
        )

    def _next_deadline(self, query: SlotQuery) -> datetime | None:
        # A hold that expired for a later query of the batch may still be a deadline for this one.
        deadlines = [held_until for _, held_until in self._holds if held_until > query.now]
        if self._slot.next_deadline is not None:
            deadlines.append(self._slot.next_deadline)
        return min(deadlines, default=None)

    def _bookings_for(self, query: SlotQuery, expired: Sequence[int]) -> tuple[Booking, ...]:
        if self._slot.slot.capacity == 1:
            return self._slot.bookings
        own = set(expired)
        for user_id in query.user_ids:
            own.update(self._bookings_by_user.get(user_id, ()))
        own.update(
            self._bookings_by_id[id_] for id_ in query.booking_ids if id_ in self._bookings_by_id
        )
        return tuple(self._slot.bookings[index] for index in sorted(own))

    def _waitlist_for(
        self, query: SlotQuery, expired_count: int
    ) -> tuple[tuple[WaitlistEntry, ...], int]:
        slot, loaded = self._slot, self._slot.loaded_waitlist
        has_free_place = slot.remaining + expired_count > 0
        if not (slot.slot.limits_groups and (query.for_update or has_free_place)):
            loaded = min(loaded, query.waitlist_depth + expired_count)
        own = sorted(self._own_entries(query, loaded))
        return (*slot.waitlist[:loaded], *(slot.waitlist[index] for index in own)), loaded

    def _own_entries(self, query: SlotQuery, loaded: int) -> Iterator[int]:
        for user_id in set(query.user_ids):
            for index in self._entries_by_user.get(user_id, ()):
                if index >= loaded:
                    yield index
