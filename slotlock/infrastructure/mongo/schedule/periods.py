"""Stores the periods of a school day, one list, in the collection of the site.

    site: {_id: "periods", periods: [{name, start, end, weekdays?}]}

The times are texts such as `10:05`, and the weekdays are numbers from Monday, which is 0.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, time

from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError

from slotlock.domain.audit.audit_notes import note_period_change
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.periods import Period
from slotlock.domain.schedule.timetables import Weekday
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.audit.audit_note_repository import insert_notes
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited_listing
from slotlock.infrastructure.mongo.transactions import in_transaction

ONE = {"_id": "periods"}
# A slot has up to 500 meetings.
BATCH_SIZE = 200
_TIMES = {"_id": 0, "timeZone": 1, "start": 1, "end": 1, "meetings": 1}


async def read_periods(database: Database) -> tuple[Period, ...]:
    """Return the periods by start."""
    return _to_periods(await database["site"].find_one(ONE))


class PeriodRepository:
    """Stores the periods, each change with its audit note."""

    def __init__(self, database: Database, list_limiter: ConcurrencyLimiter) -> None:
        self.list_limiter = list_limiter
        self._database = database
        self._site = database["site"]
        self._slots = database["slots"]

    async def find(self) -> tuple[Period, ...]:
        """Return the periods by start."""
        return await read_periods(self._database)

    async def save(
        self, periods: Sequence[Period], by: UserId, now: datetime
    ) -> tuple[Period, ...]:
        """Replace all periods, and return those of before."""
        document = {"periods": [_to_subdocument(each) for each in periods]}

        async def write(session: AsyncClientSession) -> tuple[Period, ...]:
            found = await self._site.find_one_and_replace(
                ONE, document, upsert=True, session=session
            )
            before = _to_periods(found)
            note = note_period_change(before, periods, by, now)
            await insert_notes(self._database, [note], session)
            return before

        try:
            return await in_transaction(self._database, write)
        except DuplicateKeyError:  # somebody else saved the first list at the same time
            return await in_transaction(self._database, write)

    @limited_listing
    async def count_future_slots(
        self, now: datetime, is_counted: Callable[[Sequence[Meeting], str], bool]
    ) -> int:
        """Return how many slots have meetings to come of which `is_counted` is true."""
        query = {"end": {"$gt": now}, "status": {"$ne": SlotStatus.CANCELLED.value}}
        found, count = self._slots.find(query, _TIMES, hint="end", batch_size=BATCH_SIZE), 0
        while slots := await found.to_list(BATCH_SIZE):
            count += await asyncio.to_thread(_count, slots, now, is_counted)
        return count


def _count(
    slots: Sequence[Document],
    now: datetime,
    is_counted: Callable[[Sequence[Meeting], str], bool],
) -> int:
    meetings = (
        [Meeting(each["start"], each["end"]) for each in slot.get("meetings") or [slot]]
        for slot in slots
    )
    return sum(
        is_counted([each for each in of_slot if each.end > now], slot["timeZone"])
        for slot, of_slot in zip(slots, meetings, strict=True)
    )


def _to_subdocument(period: Period) -> Document:
    document: Document = {
        "name": period.name,
        "start": f"{period.start:%H:%M}",
        "end": f"{period.end:%H:%M}",
    }
    if period.weekdays:
        document["weekdays"] = [each.value for each in period.weekdays]
    return document


def _to_periods(document: Document | None) -> tuple[Period, ...]:
    return tuple(
        Period(
            each["name"],
            time.fromisoformat(each["start"]),
            time.fromisoformat(each["end"]),
            tuple(map(Weekday, each.get("weekdays", ()))),
        )
        for each in (document or {}).get("periods", ())
    )
