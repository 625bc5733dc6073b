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

from slotlock.domain.booking.booking import OtherBooking, UserContext
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.mongo.client import Database, Document, is_unavailable
from slotlock.infrastructure.mongo.slots.documents import to_slot
from slotlock.infrastructure.mongo.slots.queries import slot_projection

# Each may ask for all whom the admission queue serves at once.
CONTEXT_BATCH_SIZE = 50


@dataclass(frozen=True, slots=True)
class _ContextQuery:
    """What is known of these people, as far as it bears on these slots?"""

    user_ids: Set[UserId]
    slots: Sequence[Slot]
    now: datetime


class UserContextLoader:
    """Who the people at a slot are, and where else they have places."""

    def __init__(self, database: Database) -> None:
        self._slots = database["slots"]
        self._user_versions = database["user_versions"]
        self._users = database["users"]
        self._load_batcher = Batcher(self._load_batch, CONTEXT_BATCH_SIZE)

    async def load(
        self, user_ids: Set[UserId], slots: Sequence[Slot], now: datetime
    ) -> dict[UserId, UserContext]:
        """What bears on decisions in these slots, for these people.

        What concurrent callers ask is asked together, so that more is known than was asked; rules
        ask again whom and what it is about.
        """
        return await self._load_batcher.submit(_ContextQuery(user_ids, slots, now))

    async def _load_batch(
        self, queries: list[_ContextQuery]
    ) -> Sequence[dict[UserId, UserContext] | Exception]:
        try:
            return [await self._load_all(*queries)] * len(queries)
        except Exception as error:
            if is_unavailable(error) or len(queries) == 1:
                raise
        # What cannot be read of one person is told to those who ask for that one.
        return [await self._load_or_error(question) for question in queries]

    async def _load_or_error(self, query: _ContextQuery) -> dict[UserId, UserContext] | Exception:
        try:
            return await self._load_all(query)
        except Exception as error:
            return error

    async def _load_all(self, *queries: _ContextQuery) -> dict[UserId, UserContext]:
        """Each page's version is read first, then the places: what comes in between turns the
        page.
        """
        user_ids = sorted({user_id for question in queries for user_id in question.user_ids})
        slots = [slot for question in queries for slot in question.slots]
        now = max(question.now for question in queries)
        users = [ObjectId(user_id) for user_id in user_ids]
        versions, groups = await asyncio.gather(
            self._find_versions(users)
            if any(slot.depends_on_other_bookings for slot in slots)
            else _no_documents(),
            self._find_groups(users)
            if any(slot.needs_user_groups for slot in slots)
            else _no_documents(),
        )
        places: dict[UserId, list[OtherBooking]] = {}
        for place in await self._find_other_bookings(user_ids, slots, now):
            places.setdefault(place.booking.user_id, []).append(place)
        return {
            user_id: UserContext(
                user_id,
                tuple(groups.get(user, ())),
                versions.get(user, 0),
                tuple(places.get(user_id, ())),
            )
            for user_id, user in zip(user_ids, users, strict=True)
        }

    async def _find_versions(self, users: list[ObjectId]) -> dict[ObjectId, int]:
        found = self._user_versions.find({"_id": {"$in": users}})
        return {document["_id"]: document["version"] async for document in found}

    async def _find_groups(self, users: list[ObjectId]) -> dict[ObjectId, list[str]]:
        found = self._users.find({"_id": {"$in": users}}, {"groups": 1})
        return {document["_id"]: document.get("groups", ()) async for document in found}

    async def _find_other_bookings(
        self, user_ids: Sequence[UserId], slots: Sequence[Slot], now: datetime
    ) -> list[OtherBooking]:
        wanted = _relevant_slot_queries(slots)
        if not wanted:
            return []
        query: Document = {
            "bookings.user": {"$in": [ObjectId(user_id) for user_id in user_ids]},
            "status": {"$ne": SlotStatus.CANCELLED.value},
            "$or": wanted,
        }
        found = self._slots.find(query, slot_projection(user_ids, (), now, waitlist_depth=1))
        others = [to_slot(document) async for document in found]
        return [other.as_other_booking(booking) for other in others for booking in other.bookings]


async def _no_documents() -> dict[ObjectId, Any]:
    return {}


def _relevant_slot_queries(slots: Sequence[Slot]) -> list[Document]:
    """The queries for slots in which a booking counts for one in these slots."""
    choices = {slot.choice_group for slot in slots if slot.choice_group is not None}
    queries: list[Document] = [{"choiceGroup": {"$in": sorted(choices)}}] if choices else []
    campaigns = {s.terms.campaign_id for s in slots if s.terms and s.terms.max_bookings is not None}
    if campaigns:
        queries.append({"campaign.id": {"$in": [ObjectId(id_) for id_ in campaigns]}})
    if busy := [slot for slot in slots if slot.terms and slot.terms.forbid_overlap]:
        within = {
            "end": {"$gt": min(slot.start for slot in busy)},
            "start": {"$lt": max(slot.end for slot in busy)},
        }
        queries.append({"campaign.forbidOverlap": True, **within})
    return queries


def with_user_contexts(
    slot: Slot, user_ids: Iterable[UserId], contexts: Mapping[UserId, UserContext]
) -> Slot:
    """The slot with what is known of these people and those in it, as far as it is elsewhere."""
    booked = (booking.user_id for booking in slot.bookings)
    waiting = (turn.user_id for turn in slot.waitlist)
    here = {user_id for user_id in (*user_ids, *booked, *waiting) if user_id in contexts}
    return replace(
        slot,
        user_contexts={user_id: _without_own_slot(contexts[user_id], slot) for user_id in here},
    )


def _without_own_slot(context: UserContext, slot: Slot) -> UserContext:
    places = tuple(place for place in context.other_bookings if place.booking.slot_id != slot.id)
    return (
        context
        if len(places) == len(context.other_bookings)
        else replace(context, other_bookings=places)
    )


def user_version_updates(before: Slot, after: Slot) -> Iterator[tuple[UserId, UpdateOne]]:
    """The pages that a change turns, each guarded by the version that was seen."""
    if not after.depends_on_other_bookings:
        return
    # A hold that was confirmed too: whoever booked elsewhere counted on it to run out.
    had = set(before.bookings)
    chosen = {booking.user_id for booking in after.bookings if booking not in had}
    for user_id in sorted(chosen):
        if known := before.user_context(user_id):
            seen: Document = {"_id": ObjectId(user_id)}
            if known.version:
                seen["version"] = known.version
                yield user_id, UpdateOne(seen, {"$inc": {"version": 1}})
            else:  # a page that somebody began meanwhile is a duplicate key
                begun = UpdateOne({**seen, "version": 0}, {"$set": {"version": 1}}, upsert=True)
                yield user_id, begun
