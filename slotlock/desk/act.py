"""The one act behind everything that changes a roster: lock, look, decide, write, tell."""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

from slotlock.desk.deciding import Decided, Request, decide, kept_answers, notes
from slotlock.desk.desk import Desk
from slotlock.desk.once import kept_answer
from slotlock.domain.availability import Availability, availability
from slotlock.domain.bookings import Booking, SlotId
from slotlock.domain.refusals import KeyReused, Locked
from slotlock.domain.slots import Slot
from slotlock.stores.slots import Look
from slotlock.stores.writes import Change, Changes

Outcome = TypeVar("Outcome")

# A second try reads what the first one missed. More are for people who ask for several places of
# one campaign at once: each turns their page, and the lock of one slot does not order those.
TRIES = 5
# Holding a lock takes milliseconds. The spread keeps those refused together from returning so.
RETRY_AFTER_MS = (50, 250)
# How far down the line is read: those whom freed places go to, and some who have chosen elsewhere.
SPARE_HEADS = 4


async def act(
    desk: Desk, slot_ids: Sequence[SlotId], request: Request[Outcome], wait_s: float = 0.0
) -> Outcome | Locked | KeyReused:
    """The outcome of a request, written if it changes anything.

    Locked when there is something to write while somebody else is being served there and stays so
    for the time that the caller waits, or when others write first for as long. If the lease runs
    out or this process dies on any line, the slots are as before the write or as after it: the
    write is one, guarded by the versions that were looked at.
    """
    if wait_s > 0 and len(slot_ids) == 1 and not request.teams:
        return await _stand_in_line(desk, slot_ids[0], request, wait_s)
    if len(slot_ids) > 1:
        # Locks of several slots keep many others out, and where nothing is to be written none is
        # needed.
        decided = await decide_now(desk, slot_ids, request)
        if not decided.changes:
            return cast("Outcome", decided.outcomes[0])
    clock = asyncio.get_running_loop().time
    until = clock() + wait_s
    while True:
        outcomes = await in_turn(desk, slot_ids, lambda: [request], max(until - clock(), 0.0))
        if outcomes is None:
            break
        (outcome,) = outcomes
        # Others wrote first; who is willing to wait tries again, but not with a team that changed.
        if request.teams or not isinstance(outcome, Locked) or clock() >= until:
            return cast("Outcome | Locked | KeyReused", outcome)
    turned: Outcome | Locked = await turned_away(desk, slot_ids, request)
    return turned


async def _stand_in_line(
    desk: Desk, slot_id: SlotId, request: Request[Outcome], wait_s: float
) -> Outcome | Locked | KeyReused:
    async def clerk(wait_s: float, call: Callable[[], list[Any]]) -> list[Any] | None:
        return await in_turn(desk, [slot_id], call, wait_s)

    outcome: Outcome | None = await desk.lines.stand(slot_id, request, wait_s, clerk)
    if outcome is not None:
        return outcome
    turned: Outcome | Locked = await turned_away(desk, [slot_id], request)
    return turned


async def in_turn(
    desk: Desk,
    slot_ids: Sequence[SlotId],
    call: Callable[[], list[Request[Any]]],
    wait_s: float,
) -> list[Any] | None:
    """Serve those who are called once the lock is ours; None if it is not in time."""
    lease = await desk.locks.acquire(*slot_ids, wait_s=wait_s)
    if lease is None:
        return None
    news: list[Availability] = []
    try:
        requests = call()
        return await serve(desk, slot_ids, requests, news) if requests else []
    finally:
        await desk.locks.release(lease, *news)


async def turned_away(
    desk: Desk, slot_ids: Sequence[SlotId], request: Request[Outcome]
) -> Outcome | Locked:
    """What somebody without the lock is told.

    A refusal needs no lock: who asks for a slot that is full is told so, not to ask again.
    """
    decided = await decide_now(desk, slot_ids, request)
    return locked(slot_ids[0]) if decided.granted[0] else decided.outcomes[0]


async def decide_now(desk: Desk, slot_ids: Sequence[SlotId], request: Request[Any]) -> Decided:
    """What would be decided now. Nothing is written."""
    now = desk.now()
    return decide(await _look(desk, slot_ids, [request], now), [request], now)


def locked(slot_id: SlotId) -> Locked:
    """The answer to whoever is not served now."""
    return Locked(slot_id, random.randint(*RETRY_AFTER_MS))  # noqa: S311


async def serve(
    desk: Desk,
    slot_ids: Sequence[SlotId],
    requests: Sequence[Request[Any]],
    news: list[Availability],
    tries: int = TRIES,
) -> list[Any]:
    """Serve requests in their order with one look and one write; the outcome of each.

    What is to be announced is added to `news`; whoever waits in this process is told at once.
    """
    keys = [request.slip.key_id if request.slip else str(id(request)) for request in requests]
    if len(set(keys)) < len(keys):
        # Redis lost the order of one key's sends: the first is served, the others find its answer.
        first = [request for n, request in enumerate(requests) if keys[n] not in keys[:n]]
        served = iter(await serve(desk, slot_ids, first, news, tries))
        told = (next(served) if key not in keys[:n] else None for n, key in enumerate(keys))
        return [locked(slot_ids[0]) if outcome is None else outcome for outcome in told]
    for _ in range(tries):
        now = desk.now()  # each try decides anew: a hold may have run out since the last
        decided = decide(await _look(desk, slot_ids, requests, now), requests, now)
        if not decided.changes:
            return decided.outcomes
        answers = kept_answers(requests, decided, now)
        teams = tuple(seen for request in requests for seen in request.teams)
        guards = tuple(guard for request in requests for guard in request.guards)
        noted = notes(requests, decided.changes)
        changes = Changes(decided.changes, answers, teams, guards=guards, notes=noted)
        if await desk.writes.commit(changes):
            news += tell(desk, decided.changes)
            return decided.outcomes
        if not any(decided.granted):  # what is left to write somebody else will
            return decided.outcomes
        if answered := await _answered(desk, requests):
            left = [request for request in requests if id(request) not in answered]
            rest = iter(await serve(desk, slot_ids, left, news, tries) if left else [])
            return [answered.get(id(request)) or next(rest) for request in requests]
    return [
        locked(slot_ids[0]) if granted else outcome
        for granted, outcome in zip(decided.granted, decided.outcomes, strict=True)
    ]


async def _look(
    desk: Desk, slot_ids: Sequence[SlotId], requests: Sequence[Request[Any]], now: datetime
) -> dict[SlotId, Slot]:
    people = tuple({user_id for request in requests for user_id in request.people})
    booking_ids = tuple({id_ for request in requests for id_ in request.booking_ids})
    heads = sum(request.heads for request in requests) + SPARE_HEADS
    looks = (Look(slot_id, now, people, booking_ids, heads) for slot_id in slot_ids)
    found = await desk.slots.look_to_decide(*looks)
    return {slot.id: slot for slot in found if slot is not None}


async def _answered(desk: Desk, requests: Sequence[Request[Any]]) -> dict[int, Any]:
    """The outcomes of those requests whose keys were answered meanwhile, by their identity."""
    slips = [(id(request), request.slip) for request in requests if request.slip]
    kept = await asyncio.gather(*(kept_answer(desk.answers, slip) for _, slip in slips))
    return {
        identity: outcome
        for (identity, _), outcome in zip(slips, kept, strict=True)
        if outcome is not None
    }


def tell(desk: Desk, changes: Sequence[Change]) -> list[Availability]:
    """Tell those who watch in this process, and poke whoever others did something for."""
    desk.announcements.poke(booking for change in changes for booking in _concerned(change))
    news = [availability(change.after) for change in changes]
    for state in news:
        desk.board.tell(state)
    return news


def _concerned(change: Change) -> Iterator[Booking]:
    before = {booking.id: booking for booking in change.before.bookings}
    for booking in (*change.after.bookings, *change.after.ended):
        if booking.log[-1].by != booking.user_id and before.get(booking.id) != booking:
            yield booking
