"""What a look reads of a slot's document: as little of its roster and its line as will do."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from bson import ObjectId

from slotlock.domain.bookings import BookingId
from slotlock.domain.people import UserId
from slotlock.stores.mongo import Document
from slotlock.stores.slot_documents import LOADED_FIELDS

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
        "as": "theirs",
        "cond": {"$in": ["$$group", "$$theirs"]},
    }
}
_GROUP_COUNTS = {
    "$map": {
        "input": _GROUP_NAMES,
        "as": "group",
        "in": {"group": "$$group", "count": {"$size": _BOOKINGS_OF_GROUP}},
    }
}


def slot_projection(
    user_ids: Iterable[UserId],
    booking_ids: Iterable[BookingId],
    now: datetime,
    waitlist_depth: int,
    *,
    for_update: bool = False,
) -> Document:
    """The projection that leaves out every booking but these people's, these, and what ran out.

    The booker of a one-place slot is read along: `bookedBy` needs them. Of the line come the
    first `heads`, as many more as holds ran out, and these people's turns; all of it where groups
    are limited and a place is free or may become so by what is decided, since the next may stand
    far behind the first.
    """
    users = [ObjectId(user_id) for user_id in user_ids]
    ran_out = {"$and": [{"$gt": ["$$this.until", None]}, {"$lte": ["$$this.until", now]}]}
    asked = [
        {"$in": ["$$this.user", users]},
        {"$in": ["$$this.id", [ObjectId(booking_id) for booking_id in booking_ids]]},
        {"$eq": ["$capacity", 1]},
        ran_out,
    ]
    free = {"$size": {"$filter": {"input": "$bookings", "cond": ran_out}}}
    still = {"$filter": {"input": "$bookings.until", "cond": {"$gt": ["$$this", now]}}}
    given = True if for_update else {"$gt": [{"$add": ["$remaining", free]}, 0]}
    front = {
        "$cond": [
            {"$and": [_HAS_GROUP_LIMITS, given]},
            MAX_WAITLIST_LENGTH,
            {"$add": [free, waitlist_depth]},
        ]
    }
    return {
        **dict.fromkeys(LOADED_FIELDS, 1),
        "bookings": {"$filter": {"input": "$bookings", "cond": {"$or": asked}}},
        "groupCounts": {"$cond": [_HAS_GROUP_LIMITS, _GROUP_COUNTS, []]},
        "waiting": {"$slice": ["$waiting", front]},
        "mine": {"$filter": {"input": "$waiting", "cond": {"$in": ["$$this.user", users]}}},
        "waitingCount": {"$size": "$waiting"},
        "due": {"$min": still},
    }


def booking_ids_projection(booking_ids: Sequence[ObjectId]) -> Document:
    """The projection to the ids of those of these bookings that are live."""
    among = {"$in": ["$$this.id", booking_ids]}
    return {"bookings": {"$filter": {"input": "$bookings", "cond": among}}}
