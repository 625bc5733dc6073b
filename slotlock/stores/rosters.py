"""Whole rosters in MongoDB, for exports: everything as it was in one moment, some slots at a time.

A snapshot session reads all pages as of the same instant, so that nobody who moves from one slot to
another meanwhile is missing or there twice. MongoDB keeps such a moment for five minutes.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.bookings import SlotId
from slotlock.domain.listing import Position, SlotOrder
from slotlock.domain.people import UserId
from slotlock.domain.rosters import Named, people_in
from slotlock.domain.slots import Slot
from slotlock.domain.terms import CampaignId
from slotlock.stores.mongo import Database, Document
from slotlock.stores.slot_documents import slot_of
from slotlock.stores.slot_queries import after_position

# A slot has up to 1,000 bookings with all their past.
SLOTS_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class RosterPage:
    """Some slots with all their bookings, and the people these name."""

    slots: tuple[Slot, ...]
    people: Mapping[UserId, Named]


class Rosters:
    """The rosters of one slot or of a campaign's slots, as of one moment."""

    def __init__(self, database: Database, session: AsyncClientSession, query: Document) -> None:
        self._slots = database["slots"]
        self._users = database["users"]
        self._session = session
        self._query = query

    async def count(self) -> int:
        """How many slots there are."""
        return await self._slots.count_documents(self._query, session=self._session)

    async def pages(self) -> AsyncIterator[RosterPage]:
        """All the slots, by start and id."""
        position: Position | None = None
        while slots := await self._next(position):
            yield RosterPage(slots, await self._people(slots))
            if len(slots) < SLOTS_AT_ONCE:
                return
            position = Position(slots[-1].start, slots[-1].id)

    async def _next(self, position: Position | None) -> tuple[Slot, ...]:
        found = self._slots.find(
            after_position(self._query, position, SlotOrder.START_ASC),
            sort=[("start", 1), ("_id", 1)],
            limit=SLOTS_AT_ONCE,
            session=self._session,
        )
        return tuple([slot_of(document) async for document in found])

    async def _people(self, slots: tuple[Slot, ...]) -> Mapping[UserId, Named]:
        wanted = set[UserId]().union(*map(people_in, slots))
        query = {"_id": {"$in": [ObjectId(user_id) for user_id in wanted]}}
        shown = {"name": 1, "email": 1, "groups": 1}
        found = self._users.find(query, shown, session=self._session)
        return {
            UserId(str(d["_id"])): Named(d["name"], d["email"], tuple(d.get("groups", ())))
            async for d in found
        }


@asynccontextmanager
async def rosters_now(
    database: Database, of: SlotId | CampaignId, *, campaign: bool
) -> AsyncIterator[Rosters]:
    """The rosters of a slot, or of all slots of a campaign, as they are now."""
    async with database.client.start_session(snapshot=True) as session:
        yield Rosters(database, session, {"campaign.id" if campaign else "_id": ObjectId(of)})
