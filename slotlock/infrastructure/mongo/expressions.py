"""Conditions, aggregation expressions and pages that several queries use."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeVar

from bson import ObjectId

from slotlock.domain.campaigns.terms import CampaignTerms
from slotlock.domain.shared.pagination import (
    Page,
    Position,
    TimeFilter,
    TimeOrder,
    TimePage,
    UpcomingPosition,
)
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.client import Document

Item = TypeVar("Item")
Pipeline = list[Document]
# Reads `first` items that a query finds, after a position: 1 by ascending start, -1 by descending.
ReadPage = Callable[[Document, int, int, Position | None], Awaitable[Page[Item]]]


def follows(field: str, value: object, id_: str, direction: int) -> list[Document]:
    """Return the conditions for what follows a position in the order of a field and the id.

    They bound the field alone as well, so that MongoDB enters the index at the position.
    """
    beyond = "$gt" if direction == 1 else "$lt"
    same_value = {field: value, "_id": {beyond: ObjectId(id_)}}
    return [{field: {f"{beyond}e": value}}, {"$or": [{field: {beyond: value}}, same_value]}]


def time_query(
    query: Document, wanted: TimeFilter, as_of: datetime, start: str = "start", end: str = "end"
) -> Document:
    """Return the query for what a filter selects of what a query finds.

    `start` and `end` are the fields with the times.
    """
    bounds = (
        (start, "$gte", wanted.starts_from),
        (start, "$lt", wanted.starts_before),
        (end, "$lte", wanted.ends_before),
        (end, "$gt", None if wanted.include_past else as_of),
    )
    times = [{name: {operator: time}} for name, operator, time in bounds if time is not None]
    return {"$and": [query, *times]} if times else query


async def page_by_time(
    query: Document, page: TimePage, read: ReadPage[Item], start: str = "start", end: str = "end"
) -> Page[Item]:
    """Return a page of what a query finds: in one read, or in one for each part of the list."""
    first, after = page.first, page.after
    query = time_query(query, page.wanted, page.as_of, start, end)
    if page.order is not TimeOrder.UPCOMING_FIRST:
        return await read(query, 1 if page.order is TimeOrder.START_ASC else -1, first, after)
    over = {"$and": [query, {end: {"$lte": page.as_of}}]}
    if isinstance(after, UpcomingPosition) and after.is_over:
        return await read(over, -1, first, after)
    upcoming, past = await asyncio.gather(
        read({"$and": [query, {end: {"$gt": page.as_of}}]}, 1, first, after),
        read(over, -1, first, None),
    )
    items = (*upcoming.items, *past.items)
    has_more = upcoming.has_more or past.has_more or len(items) > first
    return Page(items[:first], has_more)


def is_expired(booking: str, now: datetime) -> Document:
    """Return the expression for whether a live booking is a hold that expired.

    `booking` is the path of the booking, such as `$$this`.
    """
    held_until = f"{booking}.heldUntil"
    return {"$and": [{"$gt": [held_until, None]}, {"$lte": [held_until, now]}]}


def unexpired_bookings(now: datetime) -> Document:
    """Return the expression for the live bookings of a slot without the holds that expired."""
    return {"$filter": {"input": "$bookings", "cond": {"$not": is_expired("$$this", now)}}}


def unexpired_deadlines(now: datetime) -> Document:
    """Return the expression for the ends of a slot's holds that did not expire yet."""
    return {"$filter": {"input": "$bookings.heldUntil", "cond": {"$gt": ["$$this", now]}}}


def eligible_to_book(terms: CampaignTerms) -> Document:
    """Return the query for the users who may book in a campaign."""
    return in_group_sets(terms.eligible_groups)


def in_group_sets(group_sets: Sequence[Sequence[str]]) -> Document:
    """Return the query for users with a group of each set; for all members if there is none."""
    query: Document = {"banned": None}
    if group_sets:
        query["$and"] = [{"groups": {"$in": list(groups)}} for groups in group_sets]
    else:
        query["role"] = Role.MEMBER.value
    return query
