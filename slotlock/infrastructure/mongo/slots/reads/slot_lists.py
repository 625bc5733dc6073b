"""Pages of lists of slots. Concurrent readers of different lists share one command."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from time import monotonic

from bson import ObjectId
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import OperationFailure

from slotlock.domain.shared.pagination import Page
from slotlock.domain.shared.values import value_object
from slotlock.domain.slots.listing import SlotOrder, SlotSelection
from slotlock.domain.slots.reading import ReadableSlot
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.mongo.client import Document, is_unavailable
from slotlock.infrastructure.mongo.commands.one_batch import (
    aggregate_in_one_batch,
    find_in_one_batch,
)
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited_listing
from slotlock.infrastructure.mongo.slots.documents import to_slot_state
from slotlock.infrastructure.mongo.slots.reads.readings import (
    converter_for,
    needs_decision_state,
    read_projection,
)
from slotlock.infrastructure.mongo.slots.slot_query import slot_projection

# More lists in a command save little more, and each waits for the slowest of them.
MAX_LISTS = 16
# One command at a time has the most lists in it. Only if it takes long, another one starts.
SLOW_AFTER_S = 0.05
MAX_COMMANDS = 3


@value_object
class SlotListRead:
    """The first slots of a query to read at `now`, and the user whose own parts are read.

    `hint` is the index of a read that is alone; None lets MongoDB choose.
    """

    query: Document
    order: SlotOrder
    first: int
    now: datetime
    selection: SlotSelection
    user_id: UserId | None
    hint: str | None = None

    @property
    def user_ids(self) -> list[UserId]:
        """The user, if there is one."""
        return [] if self.user_id is None else [self.user_id]

    @property
    def sort(self) -> dict[str, int]:
        """The order of the index."""
        key = "titleKey" if self.order.is_by_title else "start"
        return {key: self.order.direction, "_id": self.order.direction}

    @property
    def limit(self) -> int:
        """One slot more than the page has: it tells whether more follow."""
        return self.first + 1


FoundPage = Sequence[Document] | Exception
FindDocuments = Callable[[list[SlotListRead]], Awaitable[Sequence[FoundPage]]]


class ListQueue:
    """The lists that are read by one command at a time."""

    def __init__(self, find: FindDocuments) -> None:
        self._find = find
        self._batcher = Batcher(self._find_batch, MAX_LISTS, is_outage=is_unavailable)
        self._started_at: float | None = None

    @property
    def is_slow(self) -> bool:
        """Whether a command is taking long."""
        return self._started_at is not None and monotonic() - self._started_at > SLOW_AFTER_S

    async def submit(self, read: SlotListRead) -> Sequence[Document]:
        """Return the documents of a page."""
        return await self._batcher.submit(read)

    async def _find_batch(self, reads: list[SlotListRead]) -> Sequence[FoundPage]:
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
        self._queues = [ListQueue(self._find_batch) for _ in range(MAX_COMMANDS)]

    async def read(self, read: SlotListRead) -> Page[ReadableSlot]:
        """Return a page. One command reads it with the pages of other readers."""
        queue = next((queue for queue in self._queues if not queue.is_slow), self._queues[-1])
        return await self._to_page(await queue.submit(read), read)

    async def read_alone(self, read: SlotListRead) -> Page[ReadableSlot]:
        """Return a page that may take long, and for which no other reader has to wait."""
        return await self._to_page(await self._find(read), read)

    @limited_listing
    async def count(self, query: Document, limit: int) -> int:
        """Return the number of slots that a query finds, at most `limit`."""
        return await self._slots.count_documents(query, limit=limit)

    async def _to_page(
        self, documents: Sequence[Document], read: SlotListRead
    ) -> Page[ReadableSlot]:
        selection, converter = read.selection, converter_for(read.selection)
        readings = converter.convert_all(documents[: read.first], read.user_id)
        has_more = len(documents) > read.first
        due = selection.remaining and [
            each.id for each in readings if needs_decision_state(each, selection, read.now)
        ]
        if not due:
            return Page(tuple(readings), has_more)
        # With the same query: meanwhile a slot may have become invisible to the viewer.
        by_id = {"_id": {"$in": [ObjectId(slot_id) for slot_id in due]}}
        loaded = await self._find_due({"$and": [read.query, by_id]}, read)
        states = {state.id: state for state in map(to_slot_state, loaded)}
        return Page(tuple(states.get(each.id, each) for each in readings), has_more)

    async def _find_batch(self, reads: list[SlotListRead]) -> Sequence[FoundPage]:
        """Find the documents of each page. A query that fails fails its own reader only."""
        if len(reads) == 1:
            return [await self._find(reads[0])]
        try:
            return await self._find_together(reads)
        except OperationFailure as error:
            if is_unavailable(error):
                raise
        return [await self._find_or_error(read) for read in reads]

    async def _find_or_error(self, read: SlotListRead) -> FoundPage:
        try:
            return await self._find(read)
        except OperationFailure as error:
            return error

    @limited_listing
    async def _find(self, read: SlotListRead) -> Sequence[Document]:
        projection = read_projection(read.selection, read.user_ids)
        return await find_in_one_batch(
            self._slots, read.query, projection, read.limit, read.sort, read.hint
        )

    @limited_listing
    async def _find_due(self, query: Document, read: SlotListRead) -> Sequence[Document]:
        found = self._slots.find(query, slot_projection(read.now, read.user_ids))
        return await found.to_list()

    @limited_listing
    async def _find_together(self, reads: Sequence[SlotListRead]) -> Sequence[Sequence[Document]]:
        first, *others = [_page_stages(number, read) for number, read in enumerate(reads)]
        unions = [{"$unionWith": {"coll": self._slots.name, "pipeline": each}} for each in others]
        found = await aggregate_in_one_batch(self._slots, [*first, *unions], len(reads))
        # An empty page has no document.
        pages = {page["_id"]: page["slots"] for page in found}
        return [pages.get(number, ()) for number in range(len(reads))]


def _page_stages(number: int, read: SlotListRead) -> list[Document]:
    """Return the stages that read a page into one document, with the number of the page."""
    return [
        {"$match": read.query},
        {"$sort": read.sort},
        {"$limit": read.limit},
        {"$project": read_projection(read.selection, read.user_ids)},
        {"$group": {"_id": {"$literal": number}, "slots": {"$push": "$$ROOT"}}},
    ]
