"""Reads slots from MongoDB."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from bson import ObjectId

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import LoadedState
from slotlock.domain.booking.rules.promotion import promotion_candidates
from slotlock.domain.booking.slot import SeriesId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.pagination import Page, Position, TimeFilter, TimePage
from slotlock.domain.slots.listing import SlotFilter, SlotOrder, SlotPosition, SlotSelection
from slotlock.domain.slots.selected_slot import ReadableSlot, SelectedSlot
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.mongo.client import (
    SLOT_LISTS_CONCURRENCY,
    SLOTS_CONCURRENCY,
    Database,
    Document,
    is_unavailable,
)
from slotlock.infrastructure.mongo.commands import find_in_one_batch
from slotlock.infrastructure.mongo.concurrency_limiter import (
    ConcurrencyLimiter,
    limited,
    limited_listing,
)
from slotlock.infrastructure.mongo.expressions import page_by_time, time_query
from slotlock.infrastructure.mongo.slots.reads.decision_reads import (
    DecisionReader,
    read_each,
)
from slotlock.infrastructure.mongo.slots.reads.selected_slots import (
    SlotReadRequest,
    converter_for,
    merged_read_projection,
    needs_decision_state,
)
from slotlock.infrastructure.mongo.slots.reads.slot_lists import SlotListReader, SlotListRequest
from slotlock.infrastructure.mongo.slots.slot_documents import to_slot_state
from slotlock.infrastructure.mongo.slots.slot_list_queries import (
    list_query,
    series_query,
)
from slotlock.infrastructure.mongo.slots.slot_query import (
    SharedSlot,
    SlotParts,
    SlotQuery,
    find_states,
)
from slotlock.infrastructure.mongo.slots.user_context_loader import UserContextLoader
from slotlock.infrastructure.mongo.slots.write_set import SeriesVersion

Loaded = TypeVar("Loaded")

TITLE_INDEX = "title"


class SlotRepository:
    """Finds slots with their live bookings and their waitlists."""

    def __init__(self, database: Database, *, require_verified_email: bool = False) -> None:
        self._require_verified_email = require_verified_email
        self.limiter = ConcurrencyLimiter(SLOTS_CONCURRENCY)
        self.list_limiter = ConcurrencyLimiter(SLOT_LISTS_CONCURRENCY)
        self._slots = database["slots"]
        self._slot_lists = SlotListReader(self._slots, self.list_limiter)
        self._decision_reader = DecisionReader(self._slots)
        self._user_contexts = UserContextLoader(
            database, require_verified_email=require_verified_email
        )
        self._find_batcher = Batcher(self._find_batch, is_outage=is_unavailable)
        self._read_batcher = Batcher(self._read_batch, is_outage=is_unavailable)

    async def find(self, query: SlotQuery) -> SlotState | None:
        """Return the slot as far as the query asks for it; None if there is none."""
        return await self._find_batcher.submit(query)

    async def find_for_update(self, *queries: SlotQuery) -> LoadedState:
        """Return slots with all that decisions need. Their writes depend on the versions."""
        for_update = (replace(query, for_update=True) for query in queries)
        found = await asyncio.gather(*map(self._find_batcher.submit_nowait, for_update))
        slots = {state.id: state for state in found if state is not None}
        return await self.with_user_contexts(slots, queries)

    async def with_user_contexts(
        self, slots: Mapping[SlotId, SlotState], queries: Sequence[SlotQuery]
    ) -> LoadedState:
        """Return these slots with the groups and other bookings of users that decisions need."""
        needs_all = self._require_verified_email
        with_context = [
            state.slot for state in slots.values() if needs_all or state.slot.needs_user_context
        ]
        if not with_context:
            return LoadedState(slots)
        user_ids: set[UserId] = set()
        for query in queries:
            state = slots.get(query.slot_id)
            if state is not None and (needs_all or state.slot.needs_user_context):
                user_ids.update(query.user_ids, _affected_users(state, query))
        now = max(query.now for query in queries)
        return LoadedState(slots, await self._user_contexts.load(user_ids, with_context, now))

    async def find_each_for_update(
        self, queries: Sequence[SlotQuery]
    ) -> Mapping[SlotId, SlotState | Exception]:
        """Return different slots for decisions by one command, without contexts of users.

        A slot that cannot be read is its error. Slots may have more bookings than asked for.
        """
        slot_ids = {query.slot_id for query in queries}
        return await self._decision_reader.read_each(
            slot_ids, SlotParts.of(queries, for_update=True)
        )

    async def _find_batch(self, queries: list[SlotQuery]) -> list[SlotState | Exception | None]:
        slot_ids = {query.slot_id for query in queries}
        found = await self._decision_reader.read_each(slot_ids, SlotParts.of(queries))
        if len(queries) == 1:
            return [found.get(queries[0].slot_id)]
        shared = {
            slot_id: SharedSlot(slot)
            for slot_id, slot in found.items()
            if isinstance(slot, SlotState)
        }
        return [
            shared[query.slot_id].part_for(query)
            if query.slot_id in shared
            else found.get(query.slot_id)
            for query in queries
        ]

    async def read(self, read: SlotReadRequest) -> ReadableSlot | None:
        """Return what is selected of a slot, as a client sees it; None if there is none."""
        reading = await self._read_batcher.submit_nowait(read)
        if reading is not None and needs_decision_state(reading, read.selection, read.now):
            return await self.find(SlotQuery(read.slot_id, read.now, read.user_ids))
        return reading

    async def _read_batch(
        self, reads: list[SlotReadRequest]
    ) -> list[SelectedSlot | Exception | None]:
        slot_ids = {read.slot_id for read in reads}
        found = await read_each(self._slots, slot_ids, merged_read_projection(reads), dict)
        return [_to_reading(found.get(read.slot_id), read) for read in reads]

    @limited_listing
    async def find_with_roster(self, slot_id: SlotId) -> SlotState | None:
        """Return a slot with all live bookings in the order they were made, and its waitlist."""
        document = await self._slots.find_one({"_id": ObjectId(slot_id)})
        return to_slot_state(document) if document else None

    async def page(
        self,
        slot_filter: SlotFilter,
        order: SlotOrder,
        first: int,
        after: SlotPosition | None,
        now: datetime,
        selection: SlotSelection,
        user_ids: tuple[UserId, ...] = (),
    ) -> Page[ReadableSlot]:
        """Return what is selected of the next `first` slots that the filter selects."""
        read = SlotListRequest(slot_filter, order, first, after, now, selection, user_ids)
        # MongoDB sorts all slots that have the words of a search, or reads past titles.
        if slot_filter.text is None and not order.is_by_title:
            return await self._slot_lists.read(read)
        if order.is_by_title and not slot_filter.is_narrow:
            read = replace(read, hint=TITLE_INDEX)
        return await self._slot_lists.read_alone(read)

    # Each count is None for more than `MAX_COUNT`.
    async def count(self, slot_filter: SlotFilter, now: datetime) -> int | None:
        """Return the number of slots that the filter selects."""
        query = list_query(slot_filter, SlotOrder.START_ASC, None, now)
        return await self._slot_lists.count(query)

    async def count_of_user(
        self, user_id: UserId, wanted: TimeFilter, as_of: datetime
    ) -> int | None:
        """Return the number of slots in which a user has a live booking."""
        query = {"bookings.user": ObjectId(user_id)}
        return await self._slot_lists.count(time_query(query, wanted, as_of))

    async def count_of_waiting_user(
        self, user_id: UserId, wanted: TimeFilter, as_of: datetime
    ) -> int | None:
        """Return the number of slots on whose waitlists a user is."""
        query = {"waitlist.user": ObjectId(user_id)}
        return await self._slot_lists.count(time_query(query, wanted, as_of))

    async def count_of_series(
        self, series_id: SeriesId, wanted: TimeFilter, as_of: datetime, *, include_hidden: bool
    ) -> int | None:
        """Return the number of slots of a series, hidden ones only if included."""
        query = series_query(series_id, include_hidden=include_hidden)
        return await self._slot_lists.count(time_query(query, wanted, as_of))

    async def page_of_user(
        self,
        user_id: UserId,
        page: TimePage,
        now: datetime,
        selection: SlotSelection,
    ) -> Page[ReadableSlot]:
        """Return a page of the slots in which a user has a live booking."""
        query: Document = {"bookings.user": ObjectId(user_id)}
        return await self._page_by_time(query, page, now, selection, (user_id,))

    async def page_of_series(
        self,
        series_id: SeriesId,
        page: TimePage,
        now: datetime,
        selection: SlotSelection,
        user_ids: tuple[UserId, ...] = (),
        *,
        include_hidden: bool,
    ) -> Page[ReadableSlot]:
        """Return a page of the slots of a series, hidden ones only if included."""
        query = series_query(series_id, include_hidden=include_hidden)
        return await self._page_by_time(query, page, now, selection, user_ids)

    async def page_of_waiting_user(
        self,
        user_id: UserId,
        page: TimePage,
        now: datetime,
        selection: SlotSelection,
    ) -> Page[ReadableSlot]:
        """Return a page of the slots on whose waitlists a user is."""
        query: Document = {"waitlist.user": ObjectId(user_id)}
        return await self._page_by_time(query, page, now, selection, (user_id,))

    async def find_of_user(
        self,
        user_id: UserId,
        period: Meeting,
        limit: int,
        now: datetime,
        selection: SlotSelection,
    ) -> list[ReadableSlot]:
        """Return the slots of a user's live bookings and waitlist entries that overlap a period.

        They are in order of their start, at most `limit` of either kind.
        """
        overlapping = {"start": {"$lt": period.end}, "end": {"$gt": period.start}}
        requests = (
            SlotListRequest(
                {field: ObjectId(user_id), **overlapping},
                SlotOrder.START_ASC,
                limit,
                None,
                now,
                selection,
                (user_id,),
            )
            for field in ("bookings.user", "waitlist.user")
        )
        pages = await asyncio.gather(*map(self._slot_lists.read, requests))
        found = {slot.id: slot for page in pages for slot in page.items}
        return sorted(found.values(), key=lambda slot: (slot.slot.start, slot.id))

    async def _page_by_time(
        self,
        query: Document,
        page: TimePage,
        now: datetime,
        selection: SlotSelection,
        user_ids: tuple[UserId, ...],
    ) -> Page[ReadableSlot]:
        async def read(
            query: Document, direction: int, first: int, after: Position | None
        ) -> Page[ReadableSlot]:
            order = SlotOrder.START_ASC if direction == 1 else SlotOrder.START_DESC
            return await self._slot_lists.read(
                SlotListRequest(query, order, first, after, now, selection, user_ids)
            )

        return await page_by_time(query, page, read)

    @limited
    async def find_by_users(
        self, user_ids: Sequence[UserId], since: datetime, now: datetime
    ) -> list[SlotState]:
        """Return the slots in which these users have live bookings or wait.

        They start after `since`.
        """
        return await find_states(self._slots, _of_users(user_ids, since), now, user_ids)

    @limited
    async def find_versions(self, slot_ids: Sequence[SlotId]) -> dict[SlotId, int]:
        """Return the versions of slots, which costs a fraction of loading them."""
        query = {"_id": {"$in": [ObjectId(slot_id) for slot_id in slot_ids]}}
        found = await find_in_one_batch(self._slots, query, {"version": 1}, len(slot_ids))
        return {SlotId(str(document["_id"])): document["version"] for document in found}

    @limited
    async def find_by_series(self, series_id: SeriesId, now: datetime) -> list[SlotState]:
        """Return the slots of a series, by start."""
        query, order = {"series": ObjectId(series_id)}, [("start", 1), ("_id", 1)]
        return await find_states(self._slots, query, now, sort=order)

    @limited
    async def find_series_version(self, series_id: SeriesId) -> SeriesVersion | None:
        """Return how often dates were added to a series; None if it has no slot."""
        query, order = {"series": ObjectId(series_id)}, [("_id", 1)]
        found = await self._slots.find_one(query, {"seriesVersion": 1}, sort=order)
        if found is None:
            return None
        return SeriesVersion(SlotId(str(found["_id"])), found.get("seriesVersion", 0))

    @limited
    async def find_due(self, until: datetime, limit: int) -> dict[SlotId, datetime]:
        """Return the next deadlines until then of up to `limit` slots, the earliest first.

        At its deadline, a hold of a slot may have expired.
        """
        found = self._slots.find(
            {"nextDeadline": {"$lte": until}},
            {"nextDeadline": 1},
            sort=[("nextDeadline", 1)],
            limit=limit,
        )
        return {SlotId(str(each["_id"])): each["nextDeadline"] async for each in found}


def _to_reading(
    document: Document | Exception | None, read: SlotReadRequest
) -> SelectedSlot | Exception | None:
    if document is None or isinstance(document, Exception):
        return document
    try:
        return converter_for(read.selection).convert_all((document,), read.user_ids)[0]
    except (KeyError, ValueError, TypeError) as error:  # concerns its own callers only
        return error


def _affected_users(slot: SlotState, query: SlotQuery) -> Iterator[UserId]:
    """Yield the users whose bookings are loaded, and those who may be promoted."""
    yield from (booking.user_id for booking in slot.bookings if booking.id in query.booking_ids)
    yield from (
        entry.user_id
        for entry in promotion_candidates(slot, query.waitlist_depth + len(slot.bookings))
    )


def _of_users(user_ids: Sequence[UserId], since: datetime) -> Document:
    users, start = {"$in": [ObjectId(user_id) for user_id in user_ids]}, {"$gte": since}
    return {"$or": [{name: users, "start": start} for name in ("bookings.user", "waitlist.user")]}
