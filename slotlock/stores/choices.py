"""Choices: slots of which a person has a place in one at most, and each person's page in them.

    {_id: "<user>:<choice>", version}

A page says nothing but how often its person booked in the choice. Two bookings of one person in
two slots of a choice both want to turn the same page, so that only one of them can be written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from bson import ObjectId
from pymongo import UpdateOne

from slotlock.domain.bookings import Elsewhere
from slotlock.domain.people import UserId
from slotlock.domain.slots import Slot, SlotStatus
from slotlock.stores.mongo import Database, Document
from slotlock.stores.slot_documents import seen_by, slot_of


class Choices:
    """Where else the people at a slot have chosen."""

    def __init__(self, database: Database) -> None:
        self._slots = database["slots"]
        self._pages = database["choicePages"]

    async def pages(
        self, choice: str, user_ids: Sequence[UserId], now: datetime
    ) -> tuple[Elsewhere, ...]:
        """Each person's page: its version first, then what they have booked, in that order."""
        names = [_page_id(choice, user_id) for user_id in user_ids]
        versions = {d["_id"]: d["version"] async for d in self._pages.find({"_id": {"$in": names}})}
        query: Document = {
            "choice": choice,
            "bookings.user": {"$in": [ObjectId(user_id) for user_id in user_ids]},
            "status": {"$ne": SlotStatus.CANCELLED.value},
        }
        others = [
            booking
            async for document in self._slots.find(query, seen_by(user_ids, (), now, heads=1))
            for booking in slot_of(document).bookings
        ]
        return tuple(
            Elsewhere(
                user_id,
                versions.get(name, 0),
                tuple(booking for booking in others if booking.user_id == user_id),
            )
            for user_id, name in zip(user_ids, names, strict=True)
        )


def beside(slot: Slot, pages: Sequence[Elsewhere]) -> Slot:
    """The slot with the pages as far as they speak of other slots."""
    others = tuple(
        replace(page, bookings=tuple(b for b in page.bookings if b.slot_id != slot.id))
        for page in pages
    )
    return replace(slot, elsewhere=others)


def turned_pages(before: Slot, after: Slot) -> Iterator[tuple[str, UpdateOne]]:
    """The pages that a change turns, by id, each guarded by the version that was seen."""
    if after.choice is None:
        return
    # A hold that was confirmed too: whoever booked elsewhere counted on it to run out.
    had = set(before.bookings)
    chosen = {booking.user_id for booking in after.bookings if booking not in had}
    for page in before.elsewhere:
        if page.user_id in chosen:
            name = _page_id(after.choice, page.user_id)
            seen: dict[str, Any] = {"_id": name}
            if page.version:
                seen["version"] = page.version
                yield name, UpdateOne(seen, {"$inc": {"version": 1}})
            else:  # a page that somebody began meanwhile is a duplicate key
                yield name, UpdateOne({**seen, "version": 0}, {"$set": {"version": 1}}, upsert=True)


def _page_id(choice: str, user_id: UserId) -> str:
    return f"{user_id}:{choice}"
