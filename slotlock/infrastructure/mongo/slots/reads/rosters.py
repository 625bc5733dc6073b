"""Reads whole rosters for exports, some slots at a time, as of one instant.

A snapshot session reads all pages as of the same instant. A user who moves from one slot to another
meanwhile is therefore neither missing nor listed twice. MongoDB keeps a snapshot for five minutes.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.reports.roster import RosterUser, user_ids_in
from slotlock.domain.shared.pagination import Position
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slots.listing import SlotOrder
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.slots.slot_documents import to_slot_state
from slotlock.infrastructure.mongo.slots.slot_list_queries import page_query

# A slot has up to 1,000 bookings with their histories.
SLOT_BATCH_SIZE = 10


@value_object
class RosterPage:
    """Some slots with all their bookings, and the users who occur in them."""

    slots: tuple[SlotState, ...]
    users: Mapping[UserId, RosterUser]


class RosterSnapshot:
    """The rosters of one slot or of a campaign's slots, as of one instant."""

    def __init__(self, database: Database, session: AsyncClientSession, query: Document) -> None:
        self._slots = database["slots"]
        self._users = database["users"]
        self._session = session
        self._query = query

    async def count(self) -> int:
        """Return the number of slots."""
        return await self._slots.count_documents(self._query, session=self._session)

    async def pages(self) -> AsyncIterator[RosterPage]:
        """Yield all slots by start and id, in pages."""
        position: Position | None = None
        while slots := await self._next_slots(position):
            yield RosterPage(slots, await self._find_users(slots))
            if len(slots) < SLOT_BATCH_SIZE:
                return
            position = Position(slots[-1].slot.start, slots[-1].id)

    async def _next_slots(self, position: Position | None) -> tuple[SlotState, ...]:
        found = self._slots.find(
            page_query(self._query, position, SlotOrder.START_ASC),
            sort=[("start", 1), ("_id", 1)],
            limit=SLOT_BATCH_SIZE,
            session=self._session,
        )
        return tuple([to_slot_state(document) async for document in found])

    async def _find_users(self, slots: tuple[SlotState, ...]) -> Mapping[UserId, RosterUser]:
        user_ids = set[UserId]().union(*map(user_ids_in, slots))
        query = {"_id": {"$in": [ObjectId(user_id) for user_id in user_ids]}}
        projection = dict.fromkeys(("name", "email", "groups", "erasedAt", "familyName"), 1)
        found = self._users.find(query, projection, session=self._session)
        return {UserId(str(d["_id"])): _to_roster_user(d) async for d in found}


def _to_roster_user(document: Document) -> RosterUser:
    # The address of an erased user is a placeholder, which nobody should write to.
    login_name = "" if "erasedAt" in document else document["email"]
    groups = tuple(document.get("groups", ()))
    return RosterUser(document["name"], login_name, groups, document.get("familyName"))


@asynccontextmanager
async def open_roster_snapshot(
    database: Database, target_id: SlotId | CampaignId, *, is_campaign: bool
) -> AsyncIterator[RosterSnapshot]:
    """Open the rosters of a slot, or of all slots of a campaign, as of now."""
    async with database.client.start_session(snapshot=True) as session:
        yield RosterSnapshot(
            database, session, {"campaign.id" if is_campaign else "_id": ObjectId(target_id)}
        )
