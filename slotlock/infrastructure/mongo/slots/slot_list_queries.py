"""The queries of lists of slots."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from bson import ObjectId

from slotlock.domain.booking.slot import SeriesId, SlotStatus
from slotlock.domain.shared.pagination import Position, TitlePosition
from slotlock.domain.slots.listing import SlotFilter, SlotOrder, SlotPosition
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.expressions import follows
from slotlock.infrastructure.mongo.indexes.time_spans import spans_at
from slotlock.infrastructure.mongo.search_words import search_query


def booking_ids_projection(booking_ids: Sequence[ObjectId]) -> Document:
    """Return the projection to a slot's version and to those of these bookings that are live."""
    wanted = {"$in": ["$$this.id", booking_ids]}
    return {"version": 1, "bookings": {"$filter": {"input": "$bookings", "cond": wanted}}}


def list_query(
    slot_filter: SlotFilter, order: SlotOrder, after: SlotPosition | None, now: datetime
) -> Document:
    """Return the query for the slots that a filter selects at `now`, after a position.

    The slots that end after a time are those that start from it on, and those in progress. Each of
    the two has an index in the order of the list, so what is over costs nothing.
    """
    facts, ends_after = _facts_query(slot_filter, now), slot_filter.ends_after(now)
    earliest, latest = slot_filter.starts_from, slot_filter.latest_start
    if order.is_by_title or slot_filter.text is not None:
        ends = {} if ends_after is None else {"end": {"$gt": ends_after}}
        return page_query({**facts, **_start_between(earliest, latest), **ends}, after, order)
    if ends_after is None or (earliest is not None and earliest >= ends_after):
        return page_query({**facts, **_start_between(earliest, latest)}, after, order)
    upcoming = {**facts, **_start_between(ends_after, latest)}
    until = ends_after if latest is None else min(latest, ends_after)
    in_progress = {
        **facts,
        "spans": {"$in": spans_at(ends_after)},
        **_start_between(earliest, until),
        "end": {"$gt": ends_after},
    }
    if not isinstance(after, Position):
        return {"$or": [in_progress, upcoming]}
    # The position is in one of the two. The other one is over, or still to come as a whole.
    if after.start >= ends_after:
        upcoming = page_query(upcoming, after, order)
        return upcoming if order is SlotOrder.START_ASC else {"$or": [in_progress, upcoming]}
    in_progress = page_query(in_progress, after, order)
    return in_progress if order is SlotOrder.START_DESC else {"$or": [in_progress, upcoming]}


def _facts_query(slot_filter: SlotFilter, now: datetime) -> Document:
    campaign_id, series_id = slot_filter.campaign_id, slot_filter.series_id
    wanted = {
        "status": slot_filter.status.value,
        "kind": slot_filter.kind and slot_filter.kind.value,
        "campaign.id": campaign_id and ObjectId(campaign_id),
        "series": series_id and ObjectId(series_id),
        "resource": slot_filter.resource,
        "choiceGroup": slot_filter.choice_group,
    }
    query: Document = {name: value for name, value in wanted.items() if value is not None}
    if not slot_filter.include_unpublished_campaigns:
        query["campaign.published"] = {"$ne": False}
    if slot_filter.only_with_places_left:
        # The place of an expired hold is free, unless a user waits for it.
        expired = {"nextDeadline": {"$lte": now}, "waitlist.0": {"$exists": False}}
        query["$or"] = [{"remaining": {"$gt": 0}}, expired]
    if slot_filter.led_by is not None:
        query["resource"] = {"$in": list(slot_filter.led_resources)}
    if slot_filter.text is not None:
        query |= search_query(slot_filter.text)
    if excluded := [*_unbookable(slot_filter, now), *_without_meeting(slot_filter)]:
        query["$nor"] = excluded
    return query


def series_query(series_id: SeriesId, *, include_hidden: bool) -> Document:
    """Return the query for the slots of a series that everyone may see, or for all of them."""
    query: Document = {"series": ObjectId(series_id)}
    if not include_hidden:
        query["status"] = {"$in": [SlotStatus.PUBLISHED.value, SlotStatus.CANCELLED.value]}
        query["campaign.published"] = {"$ne": False}
    return query


def _unbookable(slot_filter: SlotFilter, now: datetime) -> Iterator[Document]:
    """Yield the conditions for slots that nobody can book now."""
    if slot_filter.bookable_only:
        yield {"start": {"$lte": now}}
        yield {"campaign.opensAt": {"$gt": now}}
        yield {"campaign.closesAt": {"$lte": now}}
        yield {"remaining": {"$lte": 0}, "nextDeadline": {"$not": {"$lte": now}}}


def _without_meeting(slot_filter: SlotFilter) -> Iterator[Document]:
    """Yield the condition for slots in progress without a meeting between two times.

    With one of the two, the start and the end of the slot decide. So they do for a slot without a
    timetable, whose only meeting is from its start to its end.
    """
    begin, end = slot_filter.meets_from, slot_filter.meets_before
    if begin is not None and end is not None:
        meeting = {"start": {"$lt": end}, "end": {"$gt": begin}}
        yield {"meetings": {"$exists": True, "$not": {"$elemMatch": meeting}}}


def _start_between(earliest: datetime | None, latest: datetime | None) -> Document:
    bounds = {"$gte": earliest, "$lt": latest}
    given = {operator: time for operator, time in bounds.items() if time is not None}
    return {"start": given} if given else {}


def page_query(query: Document, after: SlotPosition | None, order: SlotOrder) -> Document:
    """Return the query for the slots after a position."""
    if after is None:
        return query
    if isinstance(after, TitlePosition):
        bounds = follows("titleKey", after.sort_key, after.id, order.direction)
    else:
        bounds = follows("start", after.start, after.id, order.direction)
    return {"$and": [query, *bounds]}
