"""The queries of lists of slots."""

from collections.abc import Sequence
from datetime import datetime

from bson import ObjectId

from slotlock.domain.booking.slot import SeriesId, SlotStatus
from slotlock.domain.shared.pagination import Position
from slotlock.domain.slots.listing import SlotFilter, SlotOrder
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.search_words import search_query


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


def series_query(series_id: SeriesId, *, include_hidden: bool) -> Document:
    """Return the query for the slots of a series that everyone may see, or for all of them."""
    query: Document = {"series": ObjectId(series_id)}
    if not include_hidden:
        query["status"] = {"$in": [SlotStatus.PUBLISHED.value, SlotStatus.CANCELLED.value]}
        query["campaign.published"] = {"$ne": False}
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
