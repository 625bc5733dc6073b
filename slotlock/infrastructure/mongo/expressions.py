"""Aggregation expressions about bookings, as several queries use them."""

from datetime import datetime

from slotlock.infrastructure.mongo.client import Document

Pipeline = list[Document]


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
