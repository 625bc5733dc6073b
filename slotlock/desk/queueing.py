"""Standing in the admission queue: a ticket at once, the answer later.

The ticket of a request is its idempotency key, the sender's or one made for it: the answer is kept
under it, so that a request is handled once however often it is delivered.
"""

import random
import secrets

from prometheus_client import Counter

from slotlock.desk.act import decide_now
from slotlock.desk.booking import Asking, Wish, allowed_parties, book_for
from slotlock.desk.desk import Desk
from slotlock.desk.once import Slip
from slotlock.desk.tickets import answered, standing_ticket
from slotlock.domain.bookings import SlotId
from slotlock.domain.outcomes import Booked
from slotlock.domain.people import Caller, UserId
from slotlock.domain.refusals import KeyReused, Locked, PartyRefusal, PlaceRefusal, QueueFull
from slotlock.domain.tickets import (
    RequestLost,
    RequestOutcome,
    Ticket,
    TicketRef,
)
from slotlock.stores.answers import KeptAnswer
from slotlock.stores.queue import QueuedRequest, Standing
from slotlock.stores.redis import RedisAwayError

# The spread keeps those refused together from returning so.
RETRY_AFTER_MS = (1_000, 5_000)
# How long somebody waits for their turn when there is no queue to stand in.
SERVED_WITHIN_S = 5.0

REQUESTS = Counter(
    "slotlock_queue_requests_total", "Answers to requestBooking by outcome", ["outcome"]
)


async def request_booking(
    desk: Desk, caller: Caller, slot_id: SlotId, user_id: UserId, wish: Wish
) -> RequestOutcome:
    """A ticket for a place in the line in front of a slot, or why it is refused at once.

    The same key, or another request of the caller's for the same place, gives the ticket that
    there is. While Redis is away there is no line, and the request is served now.
    """
    key = Wish(wish.hold, key=wish.key or secrets.token_hex(16))
    slip = key.slip(caller, "book", slot_id, user_id)
    assert slip is not None  # noqa: S101 - there is a key
    asking = Asking(caller, slot_id, user_id, wish.hold, slip)
    kept = await desk.answers.find(slip.key_id) if wish.key else None
    outcome: RequestOutcome | None = await _before(desk, slip, slot_id, kept)
    if outcome is None:
        outcome = await _asked(desk, asking, slip, lost=kept is not None, new=wish.key is None)
    if wish.key and not isinstance(outcome, KeyReused):
        # Sent before or twice at once, it may have been answered since that look.
        kept = await desk.answers.find(slip.key_id)
        outcome = await _before(desk, slip, slot_id, kept) or outcome
    REQUESTS.labels(type(outcome).__name__).inc()
    return outcome


async def _asked(
    desk: Desk, asking: Asking, slip: Slip, *, lost: bool, new: bool
) -> RequestOutcome:
    try:
        return await _in_line(desk, asking, slip, lost=lost)
    except RedisAwayError as error:
        outcome = await _served_now(desk, asking, slip)
        elsewhere = error.sent or not new
    if elsewhere and not isinstance(outcome, Ticket | KeyReused):
        # It may stand in line all the same, by this send or an earlier one, and must not be granted
        # after it was refused.
        await desk.answers.keep(slip.lost(desk.now()))
    return outcome


async def _before(
    desk: Desk, slip: Slip, slot_id: SlotId, kept: KeptAnswer | None
) -> Ticket | KeyReused | None:
    """The answered ticket of a key that was used before; one that is lost is asked again."""
    if kept is not None and not slip.asks_for(kept):
        return KeyReused(slip.key)
    if kept is None or isinstance(kept.outcome, RequestLost):
        return None
    asked_at = kept.asked_at or kept.at
    return await answered(
        desk, TicketRef(slot_id, slip.user_id, slip.key_hash, slip.question, asked_at), kept
    )


async def _in_line(desk: Desk, asking: Asking, slip: Slip, *, lost: bool) -> RequestOutcome:
    request = QueuedRequest(
        asking.slot_id,
        asking.user_id,
        asking.caller.user_id,
        asking.hold,
        slip.key_hash,
        slip.fingerprint,
    )
    refusal = await _refusal(desk, asking)
    if refusal is not None:
        # Whoever stands in line already is told where, and hears the answer there.
        standing = await desk.queue.find_claim(request)
        return refusal if standing is None else await _ticket(desk, standing, slip)
    if lost:  # not sooner: whoever is refused now stays lost, and is granted by nobody
        await desk.answers.forget_lost(slip.key_id, slip.question)
    standing = await desk.queue.add(request)
    if lost and (standing is None or not standing.is_for(slip.key_hash, slip.question)):
        await desk.answers.keep(slip.lost(desk.now()))
    if standing is None:
        return QueueFull(asking.slot_id, _retry_after())
    return await _ticket(desk, standing, slip)


async def _refusal(desk: Desk, asking: Asking) -> PlaceRefusal | PartyRefusal | None:
    """Why it would be refused now, for what will not be granted need not wait."""
    allowed = await allowed_parties(desk, asking.caller, [asking.user_id])
    if refusal := allowed.refusals.get(asking.user_id):
        return refusal
    decided = await decide_now(desk, [asking.slot_id], asking.request())
    refused: PlaceRefusal | None = None if decided.granted[0] else decided.outcomes[0]
    return refused


async def _ticket(desk: Desk, standing: Standing, slip: Slip) -> Ticket | KeyReused:
    if standing.is_for(slip.key_hash, slip.question):
        return standing.ticket
    if standing.ref.key == slip.key_hash:
        return KeyReused(slip.key)
    # Under another key of theirs, which may have been answered by other means.
    return await standing_ticket(desk, standing.ref, standing)


async def _served_now(desk: Desk, asking: Asking, slip: Slip) -> RequestOutcome:
    outcome = await book_for(desk, asking, SERVED_WITHIN_S)
    match outcome:
        case Booked():
            # As it was kept, for the same key gives the same ticket.
            kept = await desk.answers.find(slip.key_id)
            ticket = await _before(desk, slip, asking.slot_id, kept)
            assert ticket is not None  # noqa: S101 - it was kept with the booking
            return ticket
        case Locked():
            return QueueFull(asking.slot_id, _retry_after())
        case _:
            return outcome


def _retry_after() -> int:
    return random.randint(*RETRY_AFTER_MS)  # noqa: S311
