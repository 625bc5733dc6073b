"""One in line who cannot be served beside others; guards of that, and of what is told as final."""

from collections.abc import Sequence

from bson import ObjectId

from slotlock.desk import admitted
from slotlock.desk.desk import Desk
from slotlock.desk.once import Slip
from slotlock.domain.bookings import SlotId
from slotlock.domain.people import UserId
from slotlock.domain.tickets import RequestLost
from slotlock.stores.answers import Answers, KeptAnswer
from slotlock.stores.queue_partitions import Entry
from slotlock.stores.writes import Changes, Writes
from tests.support.variants import queueing
from tests.support.variants.points import instead

serve_batch, commit = admitted.serve_batch, Writes.commit
asks_for = Slip.asks_for
hot: list[UserId] = []


async def _all_at_once(
    desk: Desk, slot_id: SlotId, line: Sequence[Entry], most: int = 0
) -> list[Entry]:
    return await serve_batch(desk, slot_id, line)


def whole_batches() -> None:
    """All who wait are served as one batch for ever, whether or not that can be written."""
    instead(serve_batch, _all_at_once)
    queueing.serve_batch = _all_at_once


async def _turned_meanwhile(self: Writes, changes: Changes) -> bool:
    for change in changes.slots:
        had = {booking.id for booking in change.before.bookings}
        people = [b.user_id for b in change.after.bookings if b.id not in had]
        if len(people) > 1 and not hot:
            hot.append(people[0])
        if len(people) > 1 and hot[0] in people:
            turned = {"$inc": {"version": 1}}
            await self._database["pages"].update_one({"_id": ObjectId(hot[0])}, turned, upsert=True)
    return await commit(self, changes)


def page_turned() -> None:
    """No guard but a mishap: the page of one is turned whenever they are given a place beside
    others, as their bookings elsewhere would turn it while a large batch is decided on.
    """
    Writes.commit = _turned_meanwhile  # type: ignore[method-assign]


def _asks_for(self: Slip, kept: KeptAnswer) -> bool:
    return isinstance(kept.outcome, RequestLost) or asks_for(self, kept)


async def _forget_any(self: Answers, /, key_id: str, question: str) -> None:
    await self._answers.delete_one({"_id": key_id, "outcome._is": RequestLost.__name__})


def marks_of_no_question() -> None:
    """That a request was lost is forgotten whatever is asked next under its key."""
    Slip.asks_for = _asks_for  # type: ignore[method-assign]
    Answers.forget_lost = _forget_any  # type: ignore[method-assign]


GUARDS = {"smaller-batches": whole_batches, "lost-question": marks_of_no_question}
MISHAPS = {"page-turned": page_turned}
