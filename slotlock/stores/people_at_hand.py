"""What a decision needs of people beyond the slot: their groups, their other places, their page.

    pages: {_id: user, version}

A page says nothing but how often its person booked where other bookings count. Two bookings of
one person in two such slots both want to turn the same page, so that only one can be written.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from bson import ObjectId
from pymongo import UpdateOne

from slotlock.domain.bookings import Known, Place
from slotlock.domain.people import UserId
from slotlock.domain.slots import Slot, SlotStatus
from slotlock.stores.batches import Batches
from slotlock.stores.mongo import Database, Document, is_away
from slotlock.stores.slot_documents import slot_of
from slotlock.stores.slot_looks import seen_by

# Each may ask for all whom the admission queue serves at once.
LARGEST_QUESTION = 50


@dataclass(frozen=True, slots=True)
class _Question:
    """What is known of these people, as far as it bears on these slots?"""

    people: Set[UserId]
    slots: Sequence[Slot]
    now: datetime


class PeopleAtHand:
    """Who the people at a slot are, and where else they have places."""

    def __init__(self, database: Database) -> None:
        self._slots = database["slots"]
        self._pages = database["pages"]
        self._users = database["users"]
        self._questions = Batches(self._know_together, LARGEST_QUESTION)

    async def known(
        self, user_ids: Set[UserId], slots: Sequence[Slot], now: datetime
    ) -> dict[UserId, Known]:
        """What bears on decisions in these slots, for these people.

        What concurrent callers ask is asked together, so that more is known than was asked; rules
        ask again whom and what it is about.
        """
        return await self._questions.do(_Question(user_ids, slots, now))

    async def _know_together(
        self, questions: list[_Question]
    ) -> Sequence[dict[UserId, Known] | Exception]:
        try:
            return [await self._know(*questions)] * len(questions)
        except Exception as error:
            if is_away(error) or len(questions) == 1:
                raise
        # What cannot be read of one person is told to those who ask for that one.
        return [await self._known_or_error(question) for question in questions]

    async def _known_or_error(self, question: _Question) -> dict[UserId, Known] | Exception:
        try:
            return await self._know(question)
        except Exception as error:
            return error

    async def _know(self, *questions: _Question) -> dict[UserId, Known]:
        """Each page's version is read first, then the places: what comes in between turns the
        page.
        """
        user_ids = sorted({user_id for question in questions for user_id in question.people})
        slots = [slot for question in questions for slot in question.slots]
        now = max(question.now for question in questions)
        users = [ObjectId(user_id) for user_id in user_ids]
        versions, groups = await asyncio.gather(
            self._versions(users) if any(slot.looks_elsewhere for slot in slots) else _nothing(),
            self._groups(users) if any(slot.asks_for_groups for slot in slots) else _nothing(),
        )
        places: dict[UserId, list[Place]] = {}
        for place in await self._places(user_ids, slots, now):
            places.setdefault(place.booking.user_id, []).append(place)
        return {
            user_id: Known(
                user_id,
                tuple(groups.get(user, ())),
                versions.get(user, 0),
                tuple(places.get(user_id, ())),
            )
            for user_id, user in zip(user_ids, users, strict=True)
        }

    async def _versions(self, users: list[ObjectId]) -> dict[ObjectId, int]:
        found = self._pages.find({"_id": {"$in": users}})
        return {document["_id"]: document["version"] async for document in found}

    async def _groups(self, users: list[ObjectId]) -> dict[ObjectId, list[str]]:
        found = self._users.find({"_id": {"$in": users}}, {"groups": 1})
        return {document["_id"]: document.get("groups", ()) async for document in found}

    async def _places(
        self, user_ids: Sequence[UserId], slots: Sequence[Slot], now: datetime
    ) -> list[Place]:
        wanted = _bearing_on(slots)
        if not wanted:
            return []
        query: Document = {
            "bookings.user": {"$in": [ObjectId(user_id) for user_id in user_ids]},
            "status": {"$ne": SlotStatus.CANCELLED.value},
            "$or": wanted,
        }
        found = self._slots.find(query, seen_by(user_ids, (), now, heads=1))
        others = [slot_of(document) async for document in found]
        return [other.place_of(booking) for other in others for booking in other.bookings]


async def _nothing() -> dict[ObjectId, Any]:
    return {}


def _bearing_on(slots: Sequence[Slot]) -> list[Document]:
    """The queries for slots in which a booking counts for one in these slots."""
    choices = {slot.choice for slot in slots if slot.choice is not None}
    queries: list[Document] = [{"choice": {"$in": sorted(choices)}}] if choices else []
    campaigns = {s.terms.campaign_id for s in slots if s.terms and s.terms.most is not None}
    if campaigns:
        queries.append({"campaign.id": {"$in": [ObjectId(id_) for id_ in campaigns]}})
    if busy := [slot for slot in slots if slot.terms and slot.terms.forbid_overlap]:
        within = {
            "end": {"$gt": min(slot.start for slot in busy)},
            "start": {"$lt": max(slot.end for slot in busy)},
        }
        queries.append({"campaign.forbidOverlap": True, **within})
    return queries


def beside(slot: Slot, people: Iterable[UserId], known: Mapping[UserId, Known]) -> Slot:
    """The slot with what is known of these people and those in it, as far as it is elsewhere."""
    booked = (booking.user_id for booking in slot.bookings)
    waiting = (turn.user_id for turn in slot.waiting)
    here = {user_id for user_id in (*people, *booked, *waiting) if user_id in known}
    return replace(slot, known={user_id: _elsewhere(known[user_id], slot) for user_id in here})


def _elsewhere(known: Known, slot: Slot) -> Known:
    places = tuple(place for place in known.places if place.booking.slot_id != slot.id)
    return known if len(places) == len(known.places) else replace(known, places=places)


def turned_pages(before: Slot, after: Slot) -> Iterator[tuple[UserId, UpdateOne]]:
    """The pages that a change turns, each guarded by the version that was seen."""
    if not after.looks_elsewhere:
        return
    # A hold that was confirmed too: whoever booked elsewhere counted on it to run out.
    had = set(before.bookings)
    chosen = {booking.user_id for booking in after.bookings if booking not in had}
    for user_id in sorted(chosen):
        if known := before.known_of(user_id):
            seen: Document = {"_id": ObjectId(user_id)}
            if known.version:
                seen["version"] = known.version
                yield user_id, UpdateOne(seen, {"$inc": {"version": 1}})
            else:  # a page that somebody began meanwhile is a duplicate key
                begun = UpdateOne({**seen, "version": 0}, {"$set": {"version": 1}}, upsert=True)
                yield user_id, begun
