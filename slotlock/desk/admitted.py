"""One batch of the admission queue: everything is looked at again, decided in order, and kept."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from prometheus_client import Histogram

from slotlock.desk.act import in_turn, locked
from slotlock.desk.booking import BOOKINGS, Asking, book_for
from slotlock.desk.deciding import kept_under
from slotlock.desk.desk import Desk
from slotlock.desk.once import Slip, kept_answer
from slotlock.desk.telling import without_slots
from slotlock.domain.bookings import SlotId
from slotlock.domain.outcomes import Written
from slotlock.domain.people import Caller, User, UserId
from slotlock.domain.refusals import KeyReused, Locked, NotYetOpen, PersonBanned, PersonNotFound
from slotlock.domain.tickets import RequestLost
from slotlock.stores.queue import QueuedRequest
from slotlock.stores.queue_partitions import Entry

LARGEST_BATCH = 500
# Whoever stands in line came when it was open by the clock of another process.
CLOCKS_APART = timedelta(seconds=2)
# How long a batch waits for the slot's lock before it looks again at whom it serves.
LOCK_WAIT_S = 5.0

WAITED = Histogram(
    "slotlock_queue_wait_seconds",
    "Time from standing in line to the outcome",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)


@dataclass(frozen=True, slots=True)
class _Visitor:
    """A request in line with whoever asked for it, as they are now."""

    entry: Entry
    request: QueuedRequest
    slip: Slip
    user: User | None

    @property
    def for_another(self) -> bool:
        return self.request.user_id != self.request.asked_by

    @property
    def asking(self) -> Asking:
        role, request = self.user.role, self.request  # type: ignore[union-attr]
        caller = Caller(request.asked_by, role, "", self.entry.asked_at)
        return Asking(caller, request.slot_id, request.user_id, request.hold, self.slip)


async def serve_batch(
    desk: Desk, slot_id: SlotId, line: Sequence[Entry], most: int = LARGEST_BATCH
) -> list[Entry]:
    """Serve the first who stand in line for a slot; those of them whose outcomes are written.

    They are a beginning of the line: nobody is served while somebody in front of them is not.
    """
    visitors = await _visitors(desk, line[:most])
    done: list[Entry] = []
    # Who asks for another rests on a team or a role, and is served alone, in their turn.
    for alone, together in groupby(visitors, lambda visitor: visitor.for_another):
        run = list(together)
        served = await (_one_by_one(desk, run) if alone else _together(desk, slot_id, run))
        await _keep(desk, run[: len(served)], served)
        done += [visitor.entry for visitor in run[: len(served)]]
        if len(served) < len(run):
            break
    for entry in done:
        WAITED.observe(max((desk.now() - entry.asked_at).total_seconds(), 0.0))
    return done


async def _visitors(desk: Desk, line: Sequence[Entry]) -> list[_Visitor]:
    requests = [entry.request for entry in line if entry.request is not None]
    users = await desk.users.by_ids({request.asked_by for request in requests})
    return [_visitor(entry, request, users) for entry, request in zip(line, requests, strict=True)]


def _visitor(entry: Entry, request: QueuedRequest, users: Mapping[UserId, User]) -> _Visitor:
    asked_by = request.asked_by
    slip = Slip(asked_by, "", request.key, request.question, entry.asked_at)
    return _Visitor(entry, request, slip, users.get(asked_by))


async def _together(desk: Desk, slot_id: SlotId, run: Sequence[_Visitor]) -> list[Any]:
    """The outcomes of the first who ask for themselves, up to somebody who could not be served."""
    outcomes = await _known(desk, run)
    new = [place for place, outcome in enumerate(outcomes) if outcome is None]
    requests = [run[place].asking.request() for place in new]
    served = await in_turn(desk, [slot_id], lambda: requests, LOCK_WAIT_S) if new else []
    for place, outcome in zip(new, served or [locked(slot_id)] * len(new), strict=True):
        outcomes[place] = outcome
    # What is refused behind a place that could not be written rests on that place.
    return outcomes[: _first_unserved(outcomes, desk.now())]


def _first_unserved(outcomes: Sequence[Any], now: datetime) -> int:
    unserved = (place for place, outcome in enumerate(outcomes) if _is_for_later(outcome, now))
    return next(unserved, len(outcomes))


def _is_for_later(outcome: Any, now: datetime) -> bool:
    opens_soon = isinstance(outcome, NotYetOpen) and outcome.opens_at < now + CLOCKS_APART
    return opens_soon or isinstance(outcome, Locked)


async def _one_by_one(desk: Desk, run: Sequence[_Visitor]) -> list[Any]:
    outcomes = await _known(desk, run)
    for place, outcome in enumerate(outcomes):
        if outcome is None:
            outcomes[place] = await book_for(desk, run[place].asking, LOCK_WAIT_S)
        if _is_for_later(outcomes[place], desk.now()):
            return outcomes[:place]
    return outcomes


async def _known(desk: Desk, run: Sequence[_Visitor]) -> list[Any]:
    """Outcomes that there are before anything is decided: of keys that were answered, by whoever
    served them before, and of people who are gone or banned. None of the others.
    """
    kept = await asyncio.gather(*(kept_answer(desk.answers, visitor.slip) for visitor in run))
    return [answer or _barred(visitor) for answer, visitor in zip(kept, run, strict=True)]


def _barred(visitor: _Visitor) -> PersonNotFound | PersonBanned | None:
    if visitor.user is None:
        return PersonNotFound(visitor.request.asked_by)
    return PersonBanned(visitor.user.id) if visitor.user.banned else None


async def _keep(desk: Desk, run: Sequence[_Visitor], outcomes: Sequence[Any]) -> None:
    """Keep the refusals: what was granted was kept with what it wrote."""
    now = desk.now()
    refusals = [
        kept_under(visitor.slip, without_slots(outcome), now)
        for visitor, outcome in zip(run, outcomes, strict=True)
        if not isinstance(outcome, Written | KeyReused | RequestLost)
    ]
    if refusals:  # those whose keys were answered meanwhile stay as they were answered
        await desk.answers.keep_all(refusals)
    for visitor, outcome in zip(run, outcomes, strict=True):
        if not visitor.for_another:
            BOOKINGS.labels(type(outcome).__name__).inc()
