"""What a look reads of a slot's document: as little of its roster and its line as will do."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from bson import ObjectId

from slotlock.domain.booking.booking import BookingId
from slotlock.domain.shared.pagination import Position
from slotlock.domain.slots.listing import SlotFilter, SlotOrder
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.slots.documents import LOADED_FIELDS, folded_words

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
    ran_out = {"$and": [{"$gt": ["$$this.heldUntil", None]}, {"$lte": ["$$this.heldUntil", now]}]}
    asked = [
        {"$in": ["$$this.user", users]},
        {"$in": ["$$this.id", [ObjectId(booking_id) for booking_id in booking_ids]]},
        {"$eq": ["$capacity", 1]},
        ran_out,
    ]
    free = {"$size": {"$filter": {"input": "$bookings", "cond": ran_out}}}
    still = {"$filter": {"input": "$bookings.heldUntil", "cond": {"$gt": ["$$this", now]}}}
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
        "waitlist": {"$slice": ["$waitlist", front]},
        "ownWaitlistEntries": {
            "$filter": {"input": "$waitlist", "cond": {"$in": ["$$this.user", users]}}
        },
        "waitlistLength": {"$size": "$waitlist"},
        "nextDeadline": {"$min": still},
    }


def booking_ids_projection(booking_ids: Sequence[ObjectId]) -> Document:
    """Return the projection to a slot's version and to those of these bookings that are live."""
    among = {"$in": ["$$this.id", booking_ids]}
    return {"version": 1, "bookings": {"$filter": {"input": "$bookings", "cond": among}}}


MAX_SEARCH_WORDS = 5


def filter_query(slot_filter: SlotFilter, now: datetime) -> Document:
    """The query for the slots that somebody looks for."""
    query: Document = {"status": slot_filter.status.value}
    if slot_filter.kind is not None:
        query["kind"] = slot_filter.kind.value
    if slot_filter.campaign_id is not None:
        query["campaign.id"] = ObjectId(slot_filter.campaign_id)
    if slot_filter.series_id is not None:
        query["series"] = ObjectId(slot_filter.series_id)
    if not slot_filter.include_unpublished_campaigns:
        query["campaign.published"] = {"$ne": False}
    start = {"$gte": slot_filter.starts_from, "$lt": slot_filter.starts_before}
    if bounds := {operator: time for operator, time in start.items() if time is not None}:
        query["start"] = bounds
    if slot_filter.only_with_places_left:
        # A hold that ran out leaves its place free, unless somebody waits for it.
        freed = {"nextDeadline": {"$lte": now}, "waitlist.0": {"$exists": False}}
        query["$or"] = [{"remaining": {"$gt": 0}}, freed]
    if slot_filter.text is not None:
        # Anchored prefixes of folded words: an index serves them, and "yog" finds "Yoga".
        begun = folded_words(slot_filter.text)[:MAX_SEARCH_WORDS]
        query["searchWords"] = {"$all": [re.compile(f"^{word}") for word in begun]}
    return query


def page_query(query: Document, position: Position | None, order: SlotOrder) -> Document:
    """The same query from a position on, bounded so that the index is entered at the position."""
    if position is None:
        return query
    past = "$gt" if order is SlotOrder.START_ASC else "$lt"
    here = {"start": position.start, "_id": {past: ObjectId(position.id)}}
    on = [
        {"start": {f"{past}e": position.start}},
        {"$or": [{"start": {past: position.start}}, here]},
    ]
    return {"$and": [query, *on]}
