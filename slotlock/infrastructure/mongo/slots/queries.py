"""The queries of lists, and what clients read of a slot: its facts and the selected parts.

Most slots are read by a plain projection, which costs MongoDB a fraction of the one for decisions.
The document alone does not tell the free places of a slot whose deadline has come, because a hold
may have expired or a place may be promised. Such a slot is loaded again as for a decision.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from bson import ObjectId

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.pagination import Position
from slotlock.domain.slots.listing import SlotFilter, SlotOrder, SlotSelection
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.search_words import search_query
from slotlock.infrastructure.mongo.slots.documents import LOADED_FIELDS

_PLAIN_FIELDS = dict.fromkeys((*LOADED_FIELDS, "nextDeadline"), 1)


@dataclass(frozen=True, slots=True)
class SlotRead:
    """Which slot to read at `now`, which parts of it, and the user whose own parts are read."""

    slot_id: SlotId
    now: datetime
    selection: SlotSelection
    user_id: UserId | None = None


def merged_read_projection(reads: Sequence[SlotRead]) -> Document:
    """Return the projection that reads enough of each slot for all these reads."""
    selection = SlotSelection(
        remaining=any(read.selection.remaining for read in reads),
        my_booking=any(read.selection.my_booking for read in reads),
        my_waitlist_entry=any(read.selection.my_waitlist_entry for read in reads),
        waitlist_length=any(read.selection.waitlist_length for read in reads),
        booked_by=any(read.selection.booked_by for read in reads),
    )
    return read_projection(selection, {read.user_id for read in reads if read.user_id})


def read_projection(selection: SlotSelection, user_ids: Iterable[UserId]) -> Document:
    """Return the projection to the facts about a slot and the selected parts of these users."""
    users = [ObjectId(user_id) for user_id in user_ids]
    projection: Document = dict(_PLAIN_FIELDS)
    shown_bookings: list[Document] = []
    if selection.my_booking and users:
        shown_bookings.append({"$in": ["$$this.user", users]})
    if selection.booked_by:
        shown_bookings.append({"$eq": ["$capacity", 1]})
    if shown_bookings:
        projection["bookings"] = {
            "$filter": {"input": "$bookings", "cond": {"$or": shown_bookings}}
        }
    if selection.my_waitlist_entry and users:
        is_own = {"$in": ["$$this.user", users]}
        projection["ownWaitlistEntries"] = {"$filter": {"input": "$waitlist", "cond": is_own}}
    if selection.waitlist_length:
        projection["waitlistLength"] = {"$size": "$waitlist"}
    return projection


def part_for(state: SlotState, read: SlotRead) -> SlotState:
    """Return what this read alone would have loaded of a slot that was read for several."""
    if not (state.bookings or state.waitlist or state.waitlist_length):
        return state
    selection = read.selection
    shows_booker = selection.booked_by and state.slot.capacity == 1
    own_bookings_of = read.user_id if selection.my_booking else None
    own_entries_of = read.user_id if selection.my_waitlist_entry else None
    return replace(
        state,
        bookings=tuple(b for b in state.bookings if shows_booker or b.user_id == own_bookings_of),
        waitlist=tuple(entry for entry in state.waitlist if entry.user_id == own_entries_of),
        waitlist_length=state.waitlist_length if selection.waitlist_length else 0,
    )


def needs_decision_state(state: SlotState, selection: SlotSelection, now: datetime) -> bool:
    """Return whether the free places as of `now` may differ from those that are stored.

    Expired holds, and places promised to the waiting list, have a deadline that has come. Where
    groups are limited, the deadline covers only promises that the present groups of users allow.
    """
    if not selection.remaining or state.slot.status is SlotStatus.CANCELLED:
        return False
    if state.next_deadline is not None and state.next_deadline <= now:
        return True
    return state.slot.limits_groups and not state.is_booked


def booking_ids_projection(booking_ids: Sequence[ObjectId]) -> Document:
    """Return the projection to a slot's version and to those of these bookings that are live."""
    wanted = {"$in": ["$$this.id", booking_ids]}
    return {"version": 1, "bookings": {"$filter": {"input": "$bookings", "cond": wanted}}}


def filter_query(slot_filter: SlotFilter, now: datetime) -> Document:
    """Return the query for the slots that a filter selects at `now`."""
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
        # The place of an expired hold is free, unless a user waits for it.
        expired = {"nextDeadline": {"$lte": now}, "waitlist.0": {"$exists": False}}
        query["$or"] = [{"remaining": {"$gt": 0}}, expired]
    if slot_filter.text is not None:
        query |= search_query(slot_filter.text)
    return query


def page_query(query: Document, position: Position | None, order: SlotOrder) -> Document:
    """Return the query for the slots after a position.

    It bounds the start as well, so that MongoDB enters the index at the position.
    """
    if position is None:
        return query
    after = "$gt" if order is SlotOrder.START_ASC else "$lt"
    same_start = {"start": position.start, "_id": {after: ObjectId(position.id)}}
    bounds = [
        {"start": {f"{after}e": position.start}},
        {"$or": [{"start": {after: position.start}}, same_start]},
    ]
    return {"$and": [query, *bounds]}
