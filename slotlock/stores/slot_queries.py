"""Queries on slots: what somebody looks for in the list, and where in it they stand."""

import re
from datetime import datetime

from bson import ObjectId

from slotlock.domain.listing import Position, SlotFilter, SlotOrder
from slotlock.stores.mongo import Document
from slotlock.stores.slot_documents import folded_words

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
        freed = {"due": {"$lte": now}, "waiting.0": {"$exists": False}}
        query["$or"] = [{"remaining": {"$gt": 0}}, freed]
    if slot_filter.text is not None:
        # Anchored prefixes of folded words: an index serves them, and "yog" finds "Yoga".
        begun = folded_words(slot_filter.text)[:MAX_SEARCH_WORDS]
        query["words"] = {"$all": [re.compile(f"^{word}") for word in begun]}
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
