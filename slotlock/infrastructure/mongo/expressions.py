"""Conditions and aggregation expressions that several queries use."""

from datetime import datetime

from bson import ObjectId

from slotlock.infrastructure.mongo.client import Document

Pipeline = list[Document]


def follows(field: str, value: object, id_: str, direction: int) -> list[Document]:
    """Return the conditions for what follows a position in the order of a field and the id.

    They bound the field alone as well, so that MongoDB enters the index at the position.
    """
    beyond = "$gt" if direction == 1 else "$lt"
    same_value = {field: value, "_id": {beyond: ObjectId(id_)}}
    return [{field: {f"{beyond}e": value}}, {"$or": [{field: {beyond: value}}, same_value]}]


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
