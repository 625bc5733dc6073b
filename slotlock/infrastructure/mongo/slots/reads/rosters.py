"""Reads whole rosters for exports, some slots at a time, as of one instant.

A snapshot session reads all pages as of the same instant. A user who moves from one slot to another
meanwhile is therefore neither missing nor listed twice. MongoDB keeps a snapshot for five minutes.
"""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.cursor import AsyncCursor

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import CampaignId, CampaignTerms
from slotlock.domain.reports.roster import RosterUser, user_ids_in
from slotlock.domain.shared.pagination import Position
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slots.listing import SlotOrder
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.document_parts import to_terms
from slotlock.infrastructure.mongo.expressions import eligible_to_book
from slotlock.infrastructure.mongo.slots.slot_documents import to_slot_state
from slotlock.infrastructure.mongo.slots.slot_list_queries import page_query

# A slot has up to 1,000 bookings with their histories.
SLOT_BATCH_SIZE = 10
# How many users without a place an export names.
MAX_UNPLACED = 20_000
ROSTER_FIELDS = dict.fromkeys(
    ("name", "email", "groups", "erasedAt", "familyName", "phone", "guardians"), 1
)


@value_object
class RosterPage:
    """Some slots with all their bookings, and the users who occur in them."""

    slots: tuple[SlotState, ...]
    users: Mapping[UserId, RosterUser]


@value_object
class CampaignUsers:
    """The users who have a place in a campaign or may book one, and its terms, if it exists."""

    terms: CampaignTerms | None
    users: Mapping[UserId, RosterUser]


class RosterSnapshot:
    """The rosters of one slot or of a campaign's slots, as of one instant."""

    def __init__(self, database: Database, session: AsyncClientSession, query: Document) -> None:
        self._slots = database["slots"]
        self._users = database["users"]
        self._campaigns = database["campaigns"]
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
        return await self._load_users(set[UserId]().union(*map(user_ids_in, slots)))

    async def find_users(self, placed: Collection[UserId]) -> CampaignUsers:
        """Return these users, and the first others by address who may book in the campaign."""
        users = await self._load_users(placed)
        found = {"_id": self._query["campaign.id"]}
        campaign = await self._campaigns.find_one(found, {"terms": 1}, session=self._session)
        if campaign is None:
            return CampaignUsers(None, users)
        terms = to_terms(campaign["terms"])
        query = {**eligible_to_book(terms), "_id": {"$nin": [*map(ObjectId, placed)]}}
        order, index = [("email", 1)], "group" if terms.eligible_groups else "banned"
        others = self._users.find(
            query, ROSTER_FIELDS, sort=order, limit=MAX_UNPLACED, hint=index, session=self._session
        )
        return CampaignUsers(terms, {**users, **await self._to_roster_users(others)})

    async def _load_users(self, user_ids: Collection[UserId]) -> Mapping[UserId, RosterUser]:
        query = {"_id": {"$in": [*map(ObjectId, user_ids)]}}
        found = self._users.find(query, ROSTER_FIELDS, session=self._session)
        return await self._to_roster_users(found)

    async def _to_roster_users(self, found: AsyncCursor[Document]) -> Mapping[UserId, RosterUser]:
        documents = await found.to_list()
        guardians = {each for document in documents for each in document.get("guardians", ())}
        names = dict[ObjectId, str]()
        if guardians:
            query = {"_id": {"$in": [*guardians]}}
            named = self._users.find(query, {"name": 1}, session=self._session)
            names = {document["_id"]: document["name"] async for document in named}
        return {UserId(str(each["_id"])): _to_roster_user(each, names) for each in documents}


def _to_roster_user(document: Document, names: Mapping[ObjectId, str]) -> RosterUser:
    # The address of an erased user is a placeholder, and a made login name has a blank: nobody
    # should write to one, or try the other.
    login_name = "" if "erasedAt" in document or " " in document["email"] else document["email"]
    return RosterUser(
        document["name"],
        login_name,
        tuple(document.get("groups", ())),
        document.get("familyName"),
        document.get("phone"),
        tuple(names[each] for each in document.get("guardians", ()) if each in names),
    )


@asynccontextmanager
async def open_roster_snapshot(
    database: Database, target_id: SlotId | CampaignId, *, is_campaign: bool
) -> AsyncIterator[RosterSnapshot]:
    """Open the rosters of a slot, or of all slots of a campaign, as of now."""
    async with database.client.start_session(snapshot=True) as session:
        yield RosterSnapshot(
            database, session, {"campaign.id" if is_campaign else "_id": ObjectId(target_id)}
        )
