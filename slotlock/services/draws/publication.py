"""What follows the publication of a draw: bookings, waiting lists, mails, and the opening for all.

Each booking has an idempotency key and an id that follow from the draw, so that
continuing after a crash books what is missing and nothing twice. Slots that are done are marked.
The write that puts users on a waiting list records how many, so that nobody joins it again.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import ClassVar

from slotlock.domain.booking.booking import BookingId, MadeAs, SlotId, WaitlistEntry
from slotlock.domain.booking.booking_outcomes import Booked, BookOutcome
from slotlock.domain.booking.booking_refusals import (
    AlreadyBooked,
    Locked,
    SlotNotFound,
    UserBanned,
    UserNotFound,
    WaitlistFull,
)
from slotlock.domain.booking.decision import Decision, LoadedState, accept, refuse
from slotlock.domain.booking.rules.book import BookingRequest, book
from slotlock.domain.campaigns.campaign import CampaignPatch, CampaignSaved
from slotlock.domain.campaigns.terms import SlotAdmission
from slotlock.domain.draws.basis import pseudonym_of
from slotlock.domain.draws.draw import Draw, with_record
from slotlock.domain.draws.drawing import DrawnEntry, WishResult, draw_places
from slotlock.domain.notifications.mail_kinds import draw_result_mail
from slotlock.domain.shared.declare import declarations
from slotlock.domain.shared.unchanged import UNCHANGED
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import User, UserId
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.conflicts import attempts
from slotlock.infrastructure.draw_records import NotBooked
from slotlock.infrastructure.mongo.draws.draw_repository import StoredEntry
from slotlock.infrastructure.mongo.ids import new_waitlist_entry_id
from slotlock.infrastructure.mongo.slots.write_set import Precondition, WaitlistProgress
from slotlock.services.booking.waitlist import JoinWaitlist
from slotlock.services.campaigns import campaigns
from slotlock.services.commands.commit import locked_result
from slotlock.services.commands.executor import run_with_lock
from slotlock.services.commands.idempotency import to_replay
from slotlock.services.container import Services
from slotlock.services.draws.public_records import store_result
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.notifications.recipients import to_recipients
from slotlock.services.slot_command import SlotCommand

# Slots that are written at the same time, and bookings in one write.
CONCURRENT_SLOTS = 4
BATCH_SIZE = 200
LOCK_TIMEOUT_S = 5.0
MAX_LOCKED_ATTEMPTS = 100
MAIL_BATCH_SIZE = 1_000
STAYS_LOCKED = "the slot of a draw stays locked"


@value_object
class BookDrawnPlace(SlotCommand[BookOutcome]):
    """Book the place that a draw gave to a user."""

    name: ClassVar[str] = "bookDrawn"

    leaf: str
    pseudonym: str
    slot_id: SlotId
    request: BookingRequest
    idempotency_key: IdempotencyKey

    @classmethod
    def create(
        cls, draw: Draw, entry: StoredEntry, slot_id: SlotId, user_id: UserId, by: UserId
    ) -> "BookDrawnPlace":
        """Return the command, whose key and booking id follow from the draw and the place."""
        leaf = entry.leaf
        key = IdempotencyKey.for_creation(user_id, f"draw:{draw.id}:{leaf}", slot_id, slot_id)
        assert key is not None  # noqa: S101
        # Ids grow with time: the first 8 digits are the seconds, as in an id of MongoDB.
        seconds = int(draw.acts[-1].at.timestamp())
        digest = sha256(f"{draw.id} {leaf} {slot_id} {user_id}".encode()).hexdigest()
        request = BookingRequest(
            user_id,
            BookingId(f"{seconds:08x}{digest[:16]}"),
            by,
            admission=SlotAdmission.DRAW,
            made_as=MadeAs.DRAW,
        )
        return cls(leaf, pseudonym_of(entry.salt, user_id), slot_id, request, key)

    @property
    def slot_ids(self) -> tuple[SlotId, ...]:
        return (self.slot_id,)

    @property
    def user_ids(self) -> tuple[UserId, ...]:
        return (self.request.user_id,)

    def apply(self, state: LoadedState, now: datetime) -> Decision[BookOutcome]:
        slot = state.slots.get(self.slot_id)
        if slot is None:
            return refuse(SlotNotFound(self.slot_id))
        decision = book(slot, state.users, self.request, now)
        # A user who has the place by hand, and gives it back, does not get it by a repetition.
        return accept(decision.outcome) if isinstance(decision.outcome, AlreadyBooked) else decision


@value_object
class RecordProgress(SlotCommand[None]):
    """Write with the waiting list of a slot how many users of a draw were admitted to it."""

    name: ClassVar[str] = "recordProgress"
    is_edit: ClassVar[bool] = True
    user_ids: ClassVar[tuple[UserId, ...]] = ()

    slot_id: SlotId
    preconditions: tuple[Precondition, ...]

    @property
    def slot_ids(self) -> tuple[SlotId, ...]:
        return (self.slot_id,)

    def apply(self, _state: LoadedState, _now: datetime) -> Decision[None]:
        return accept(None)


async def finish_publication(services: Services, draw: Draw) -> None:
    """Store the results of a published draw, book all places, and open the campaign.

    It can be repeated after a crash.
    """
    by = draw.acts[-1].by
    if draw.seed is None or draw.root is None or by is None:
        return
    basis = await services.draws.load_basis(draw)
    drawn = await asyncio.to_thread(draw_places, basis, draw.root, draw.seed.text)
    await services.draws.save_results(draw, drawn)
    entries = await services.draws.find_entries(draw)
    await _book_all(services, draw, drawn, entries)
    if draw.settings.joins_waitlists:
        await _join_waitlists(services, draw, draw.root, drawn, entries)
    if services.sends_mail:
        await _insert_mails(services, draw, entries)
    await _open_campaign(services, draw, by)
    record_hash = await store_result(services, draw, basis, drawn)
    await services.draws.update(draw, with_record(draw, record_hash))


async def _insert_mails(services: Services, draw: Draw, entries: Mapping[str, StoredEntry]) -> None:
    now = services.now()
    user_ids = [user_id for entry in entries.values() for user_id in entry.user_ids]
    for batch in chunked(user_ids, MAIL_BATCH_SIZE):
        mails = [draw_result_mail(draw.campaign_id, draw.id, each, now) for each in batch]
        await services.outbox.insert(await to_recipients(services, mails), now)


async def _open_campaign(services: Services, draw: Draw, by: UserId) -> None:
    """Let everybody book what is left, from the time of the settings on or as the campaign says.

    Once the draw is written, the campaign may be that of a further one, and does not change.

    Raises:
        TimeoutError: others changed the campaign meanwhile. The worker tries it again.
    """
    opens_at = draw.settings.leftovers_open_at
    for _ in attempts():
        campaign = await services.campaigns.find(draw.campaign_id)
        if campaign is None or campaign.terms.admission is not SlotAdmission.DRAW:
            return
        # Read after the campaign: a further draw that opens since then changes its version.
        current = await services.draws.find(draw.id)
        if current is None or current.is_written:
            return
        is_possible = opens_at is not None and opens_at < campaign.terms.closes_at
        patch = CampaignPatch(
            admission=SlotAdmission.ANY,
            opens_at=opens_at if is_possible and opens_at else UNCHANGED,
            allow_past=True,
            of_draw=True,
        )
        outcome = await campaigns.edit_unless_changed(services, campaign, patch, by)
        if isinstance(outcome, CampaignSaved):
            return
    raise TimeoutError("the campaign of a draw keeps changing, or cannot be opened")


async def _join_waitlists(
    services: Services,
    draw: Draw,
    root: str,
    drawn: Sequence[DrawnEntry],
    entries: Mapping[str, StoredEntry],
) -> None:
    """Put users without a place in a full slot on its waiting list, in the order of the draw.

    Teams do not wait: places become free one by one.
    """
    waiting: dict[SlotId, list[UserId]] = defaultdict(list)
    for each in drawn:
        is_alone = len(each.entry.members) == 1
        for outcome in each.outcomes if is_alone else ():
            if outcome.result in (WishResult.FULL, WishResult.GROUP_FULL):
                waiting[outcome.slot_id] += entries[each.entry.leaf].user_ids
    for slot_id, user_ids in waiting.items():
        await _join_waitlist(services, draw, root, slot_id, user_ids)


async def _join_waitlist(
    services: Services, draw: Draw, root: str, slot_id: SlotId, user_ids: Sequence[UserId]
) -> None:
    """Admit those users to the waiting list of a slot who were not admitted yet.

    Raises: TimeoutError if the slot stays locked.
    """
    start = await services.draws.count_waitlisted(draw, slot_id)
    locked_count, is_full = 0, False
    while start < len(user_ids):
        # Nobody joins a full list: the others are recorded without an attempt.
        batch = () if is_full else user_ids[start : start + BATCH_SIZE]
        end = start + len(batch) if batch else len(user_ids)
        progress = WaitlistProgress(draw.id, root, slot_id, start, end)
        outcomes = await _admit(services, progress, batch)
        if not any(isinstance(each, Locked) for each in outcomes):
            is_full = any(isinstance(each, WaitlistFull) for each in outcomes)
            start = end
            continue
        locked_count += 1
        if locked_count == MAX_LOCKED_ATTEMPTS:
            raise TimeoutError(STAYS_LOCKED)
        # Another process may have let them join.
        start = await services.draws.count_waitlisted(draw, slot_id)


async def _admit(
    services: Services, progress: WaitlistProgress, user_ids: Sequence[UserId]
) -> list[object]:
    """Let users join a waiting list, and record that in the same write, or do nothing.

    Return the outcomes, of which one is Locked if nothing was written.
    """
    users, now = await services.users.find_many(user_ids), services.now()
    slot_id = progress.slot_id
    joins = (
        JoinWaitlist(WaitlistEntry(new_waitlist_entry_id(), slot_id, user_id, now), is_drawn=True)
        for user_id in user_ids
        if _user_refusal(user_id, users) is None
    )
    commands = [*joins, RecordProgress(slot_id, (progress,))]
    results = await run_with_lock(services, commands, LOCK_TIMEOUT_S)
    return [each.outcome for each in results or map(locked_result, commands)]


async def _book_all(
    services: Services,
    draw: Draw,
    drawn: Sequence[DrawnEntry],
    entries: Mapping[str, StoredEntry],
) -> None:
    """Book the drawn places of all slots that are not written yet, a few slots at a time."""
    places: dict[SlotId, list[StoredEntry]] = defaultdict(list)
    for each in drawn:
        for slot_id in each.granted:
            places[slot_id].append(entries[each.entry.leaf])
    done = await services.draws.find_written(draw)
    waiting = asyncio.Semaphore(CONCURRENT_SLOTS)

    async def book_slot(slot_id: SlotId) -> None:
        async with waiting:
            not_booked = await _book_slot(services, draw, slot_id, places[slot_id])
            await services.draws.set_written(draw, slot_id, not_booked)

    try:
        async with asyncio.TaskGroup() as group:
            for slot_id in sorted(places.keys() - done):
                group.create_task(book_slot(slot_id))
    except ExceptionGroup as errors:  # the first says why; an outage is known by its own error
        raise errors.exceptions[0] from None


async def _book_slot(
    services: Services, draw: Draw, slot_id: SlotId, entries: Sequence[StoredEntry]
) -> list[NotBooked]:
    """Book the places of a slot in the order of the draw; return those that were refused."""
    by = draw.acts[-1].by
    commands = [
        BookDrawnPlace.create(draw, entry, slot_id, user_id, by or user_id)
        for entry in entries
        for user_id in entry.user_ids
    ]
    not_booked = []
    for start in range(0, len(commands), BATCH_SIZE):
        batch = commands[start : start + BATCH_SIZE]
        for command, outcome in (await _book_batch(services, batch)).items():
            # An organizer may have booked the same place since the draw: the user has it.
            if not isinstance(outcome, Booked | AlreadyBooked):
                lost, code = batch[command], declarations[type(outcome)].code
                not_booked.append(NotBooked(lost.leaf, lost.pseudonym, slot_id, code))
    return not_booked


async def _book_batch(
    services: Services, commands: Sequence[BookDrawnPlace]
) -> Mapping[int, object]:
    """Return the outcome of each command by its number; a busy slot is tried again."""
    users = await services.users.find_many({each.request.user_id for each in commands})
    outcomes: dict[int, object] = {}
    for _ in range(MAX_LOCKED_ATTEMPTS):
        pending = [n for n in range(len(commands)) if n not in outcomes]
        if not pending:
            return outcomes
        keys = [commands[n].idempotency_key for n in pending]
        records = await services.idempotency_records.find_many(key.record_id for key in keys)
        for n, key, record in zip(pending, keys, records, strict=True):
            if record is not None:
                outcomes[n] = to_replay(key, record).outcome
            elif refusal := _user_refusal(commands[n].request.user_id, users):
                outcomes[n] = refusal
        left = [n for n in pending if n not in outcomes]
        if left:
            batch = [commands[n] for n in left]
            results = await run_with_lock(services, batch, LOCK_TIMEOUT_S) or ()
            for n, result in zip(left, results, strict=False):
                if not isinstance(result.outcome, Locked):
                    outcomes[n] = result.outcome
    if len(outcomes) < len(commands):
        raise TimeoutError(STAYS_LOCKED)
    return outcomes


def _user_refusal(
    user_id: UserId, users: Mapping[UserId, User]
) -> UserNotFound | UserBanned | None:
    user = users.get(user_id)
    if user is None or user.erased:
        return UserNotFound(user_id)
    return UserBanned(user_id) if user.banned else None
