"""Pages of lists of slots.

Concurrent readers of different lists share one command, and those of equal lists one read.
"""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import replace
from datetime import datetime
from time import monotonic

from bson import ObjectId
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import OperationFailure

from slotlock.domain.shared.pagination import MAX_COUNT, Page, exact_count
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slots.listing import SlotFilter, SlotOrder, SlotPosition, SlotSelection
from slotlock.domain.slots.selected_slot import ReadableSlot
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.mongo.client import (
    CODEC_OPTIONS,
    WITHOUT_ZONES,
    Document,
    is_unavailable,
)
from slotlock.infrastructure.mongo.commands import (
    aggregate_in_one_batch,
    find_in_one_batch,
)
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited_listing
from slotlock.infrastructure.mongo.slots.reads.selected_slots import (
    codec_for,
    converter_for,
    needs_decision_state,
    read_projection,
)
from slotlock.infrastructure.mongo.slots.slot_documents import to_slot_state
from slotlock.infrastructure.mongo.slots.slot_list_queries import list_query, page_query
from slotlock.infrastructure.mongo.slots.slot_query import slot_projection

# More lists in a command save little more, and each waits for the slowest of them.
MAX_LISTS = 16
# One command at a time has the most lists in it. Only if it takes long, another one starts.
SLOW_AFTER_S = 0.05
MAX_COMMANDS = 3


@value_object
class SlotListRequest:
    """The next `first` slots of a filter or a query to read at `now`, after a position.

    The parts that these users see as their own are read, too. `hint` is the index of a read that is
    alone; None lets MongoDB choose.
    """

    slots: SlotFilter | Document
    order: SlotOrder
    first: int
    after: SlotPosition | None
    now: datetime
    selection: SlotSelection
    user_ids: tuple[UserId, ...]
    hint: str | None = None

    @property
    def query(self) -> Document:
        """The query for the slots after the position."""
        if isinstance(self.slots, SlotFilter):
            return list_query(self.slots, self.order, self.after, self.now)
        return page_query(self.slots, self.after, self.order)

    @property
    def sort(self) -> dict[str, int]:
        """The order of the index."""
        key = "titleKey" if self.order.is_by_title else "start"
        return {key: self.order.direction, "_id": self.order.direction}

    @property
    def limit(self) -> int:
        """One slot more than the page has: it tells whether more follow."""
        return self.first + 1

    @property
    def list_key(self) -> Hashable:
        """What equal lists have in common: all but the reader and the time."""
        if isinstance(self.slots, SlotFilter):
            # The order by its identity: the hash of an enum is a call of Python.
            return self.slots, id(self.order), self.first, self.after, self.selection
        return id(self)  # the slots of one user, or of a series


# Requests for one list, which is read as of the last of them.
EqualLists = Sequence[SlotListRequest]
# The documents of a page, and the time as of which they were read.
FoundPage = tuple[Sequence[Document], datetime]
FindPages = Callable[[list[SlotListRequest]], Awaitable[Sequence[FoundPage | Exception]]]


class ListBatcher:
    """The lists that are read by one command at a time."""

    def __init__(self, find: FindPages) -> None:
        self._find = find
        self._batcher = Batcher(self._find_batch, MAX_LISTS, is_outage=is_unavailable)
        self._started_at: float | None = None

    @property
    def is_slow(self) -> bool:
        """Whether a command is taking long."""
        return self._started_at is not None and monotonic() - self._started_at > SLOW_AFTER_S

    async def submit(self, read: SlotListRequest) -> FoundPage:
        """Return the documents of a page."""
        return await self._batcher.submit(read)

    async def _find_batch(self, reads: list[SlotListRequest]) -> Sequence[FoundPage | Exception]:
        self._started_at = monotonic()
        try:
            return await self._find(reads)
        finally:
            self._started_at = None


class SlotListReader:
    """Reads pages of lists."""

    def __init__(self, slots: AsyncCollection[Document], list_limiter: ConcurrencyLimiter) -> None:
        self.list_limiter = list_limiter
        self._slots = slots
        self._batchers = [ListBatcher(self._find_batch) for _ in range(MAX_COMMANDS)]

    async def read(self, read: SlotListRequest) -> Page[ReadableSlot]:
        """Return a page. One command reads it with the pages of other readers."""
        batcher = next((each for each in self._batchers if not each.is_slow), self._batchers[-1])
        documents, now = await batcher.submit(read)
        return await self._to_page(documents, read, now)

    async def read_alone(self, read: SlotListRequest) -> Page[ReadableSlot]:
        """Return a page that may take long, and for which no other reader has to wait."""
        documents, now = await self._find([read])
        return await self._to_page(documents, read, now)

    @limited_listing
    async def count(self, query: Document) -> int | None:
        """Return the number of slots that a query finds; None for more than `MAX_COUNT`."""
        return exact_count(await self._slots.count_documents(query, limit=MAX_COUNT + 1))

    async def _to_page(
        self, documents: Sequence[Document], read: SlotListRequest, now: datetime
    ) -> Page[ReadableSlot]:
        selection, converter = read.selection, converter_for(read.selection)
        readings = converter.convert_all(documents[: read.first], read.user_ids)
        has_more = len(documents) > read.first
        due = selection.remaining and [
            each.id for each in readings if needs_decision_state(each, selection, now)
        ]
        if not due:
            return Page(tuple(readings), has_more)
        # With the same query: meanwhile a slot may have become invisible to the viewer.
        by_id = {"_id": {"$in": [ObjectId(slot_id) for slot_id in due]}}
        read = replace(read, now=now)
        loaded = await self._find_due({"$and": [read.query, by_id]}, read)
        states = {state.id: state for state in map(to_slot_state, loaded)}
        return Page(tuple(states.get(each.id, each) for each in readings), has_more)

    async def _find_batch(self, reads: list[SlotListRequest]) -> Sequence[FoundPage | Exception]:
        """Find the documents of each page. A query that fails fails its own readers only."""
        keys = [read.list_key for read in reads]
        lists: dict[Hashable, list[SlotListRequest]] = {key: [] for key in keys}
        for key, read in zip(keys, reads, strict=True):
            lists[key].append(read)
        pages = dict(zip(lists, await self._find_lists([*lists.values()]), strict=True))
        return [pages[key] for key in keys]

    async def _find_lists(self, lists: Sequence[EqualLists]) -> Sequence[FoundPage | Exception]:
        if len(lists) == 1:
            return [await self._find(lists[0])]
        try:
            return await self._find_together(lists)
        except OperationFailure as error:
            if is_unavailable(error):
                raise
        return [await self._find_or_error(reads) for reads in lists]

    async def _find_or_error(self, reads: EqualLists) -> FoundPage | Exception:
        try:
            return await self._find(reads)
        except OperationFailure as error:
            return error

    @limited_listing
    async def _find(self, reads: EqualLists) -> FoundPage:
        read = reads[-1]
        found = await find_in_one_batch(
            self._slots,
            read.query,
            _projection(reads),
            read.limit,
            read.sort,
            read.hint,
            codec_for(read.selection),
        )
        return found, read.now

    @limited_listing
    async def _find_due(self, query: Document, read: SlotListRequest) -> Sequence[Document]:
        return await self._slots.find(query, slot_projection(read.now, read.user_ids)).to_list()

    @limited_listing
    async def _find_together(self, lists: Sequence[EqualLists]) -> Sequence[FoundPage]:
        first, *others = [_page_stages(number, reads) for number, reads in enumerate(lists)]
        unions = [{"$unionWith": {"coll": self._slots.name, "pipeline": each}} for each in others]
        have_zones = any(codec_for(reads[-1].selection) is CODEC_OPTIONS for reads in lists)
        codec = CODEC_OPTIONS if have_zones else WITHOUT_ZONES
        found = await aggregate_in_one_batch(self._slots, [*first, *unions], len(lists), codec)
        # An empty page has no document.
        pages = {page["_id"]: page["slots"] for page in found}
        return [(pages.get(number, ()), reads[-1].now) for number, reads in enumerate(lists)]


def _page_stages(number: int, reads: EqualLists) -> list[Document]:
    """Return the stages that read a page into one document, with the number of the page."""
    read = reads[-1]
    return [
        {"$match": read.query},
        {"$sort": read.sort},
        {"$limit": read.limit},
        {"$project": _projection(reads)},
        {"$group": {"_id": {"$literal": number}, "slots": {"$push": "$$ROOT"}}},
    ]


def _projection(reads: EqualLists) -> Document:
    """Return what to read of each slot, with the parts of all readers."""
    user_ids = {user_id for each in reads for user_id in each.user_ids}
    return read_projection(reads[-1].selection, user_ids)
