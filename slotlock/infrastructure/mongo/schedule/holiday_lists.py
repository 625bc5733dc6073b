"""Stores lists of holidays.

    holiday_lists: {_id, name, nameKey, holidays: [{first, last, name}]}

The dates are texts such as `2031-04-14`, because MongoDB has no dates without a time. `nameKey` is
unique: the name without capitals.
"""

from collections.abc import Collection
from datetime import datetime
from functools import partial

from bson import ObjectId
from msgspec import convert, to_builtins
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError

from slotlock.domain.audit.audit_notes import note_holiday_list_change
from slotlock.domain.schedule.holidays import Holiday, HolidayList, HolidayListId
from slotlock.domain.shared.pagination import Page
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.audit.audit_note_repository import insert_notes
from slotlock.infrastructure.mongo.client import RESOURCES_CONCURRENCY, Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.indexes.index import RequiredIndexes, indexes_of
from slotlock.infrastructure.mongo.transactions import (
    change_with_note,
    in_transaction,
    insert_unless_taken,
)

HOLIDAY_LIST_INDEXES = indexes_of(
    "holiday_lists", {"name_key": ([("nameKey", 1)], {"unique": True})}
)
UNIQUE_INDEX = "holiday_lists.name_key"


class HolidayListRepository:
    """Stores lists of holidays, each change with its audit note."""

    def __init__(self, database: Database, required: RequiredIndexes) -> None:
        self.limiter = ConcurrencyLimiter(RESOURCES_CONCURRENCY)
        self._required = required
        self._database = database
        self._lists = database["holiday_lists"]

    @limited
    async def find(self, list_id: HolidayListId) -> HolidayList | None:
        """Return a list, if it exists."""
        found = await self._lists.find_one({"_id": ObjectId(list_id)})
        return None if found is None else _to_list(found)

    @limited
    async def page(self, first: int, after_key: str | None) -> Page[tuple[str, HolidayList]]:
        """Return the next lists by name, each with its key."""
        query = {"nameKey": {"$gt": after_key or ""}}
        found = self._lists.find(query, sort=[("nameKey", 1)], limit=first + 1)
        items = [(document["nameKey"], _to_list(document)) async for document in found]
        return Page.of(items, first)

    @limited
    async def count(self, limit: int) -> int:
        """Return the number of lists, at most `limit`."""
        return await self._lists.count_documents({}, limit=limit)

    @limited
    async def insert(self, added: HolidayList, by: UserId, now: datetime) -> bool:
        """Insert a list. Return False if another one has its name."""
        self._required.require(UNIQUE_INDEX)
        document = {"_id": ObjectId(added.id), **_to_fields(added)}
        note = note_holiday_list_change(None, added, by, now)
        return await insert_unless_taken(self._database, "holiday_lists", document, note)

    @limited
    async def update(
        self, changed: HolidayList, fields: Collection[str], by: UserId, now: datetime
    ) -> HolidayList | bool:
        """Store the name, the holidays or both of a list, and return the list.

        Return False if there is no such list, and True if another one has the name.
        """
        self._required.require(UNIQUE_INDEX)
        stored = _to_fields(changed)
        names = {"name": ("name", "nameKey"), "holidays": ("holidays",)}
        change = {name: stored[name] for field in fields for name in names[field]}

        async def write(session: AsyncClientSession) -> HolidayList | bool:
            query = {"_id": ObjectId(changed.id)}
            found = await self._lists.find_one_and_update(query, {"$set": change}, session=session)
            if found is None:
                return False
            after = _to_list({**found, **change})
            note = note_holiday_list_change(_to_list(found), after, by, now)
            await insert_notes(self._database, [note], session)
            return after

        try:
            return await in_transaction(self._database, write)
        except DuplicateKeyError:
            return True

    @limited
    async def delete(self, list_id: HolidayListId, by: UserId, now: datetime) -> bool:
        """Delete a list. Return False if there is no such list."""
        return await change_with_note(
            self._database,
            partial(self._lists.find_one_and_delete, {"_id": ObjectId(list_id)}),
            lambda found: note_holiday_list_change(_to_list(found), None, by, now),
        )


def _to_fields(stored: HolidayList) -> Document:
    holidays = to_builtins(stored.holidays)
    return {"name": stored.name, "nameKey": stored.name.casefold(), "holidays": holidays}


def _to_list(document: Document) -> HolidayList:
    holidays = convert(document["holidays"], tuple[Holiday, ...])
    return HolidayList(HolidayListId(str(document["_id"])), document["name"], holidays)
