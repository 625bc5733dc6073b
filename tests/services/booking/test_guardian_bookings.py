"""Bookings of guardians: at once, as organizers, and together in the batches of a queue."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from slotlock.domain.admission.tickets import TicketRef
from slotlock.domain.booking.booking import MadeAs, SlotId
from slotlock.domain.booking.booking_outcomes import Booked, BookingConfirmed, BookingMoved
from slotlock.domain.booking.decision import BookingChangeRequest
from slotlock.domain.booking.rules.book import BookingRequest
from slotlock.domain.booking.rules.booking_changes import cancel, confirm, extend
from slotlock.domain.users.user import Caller, UserId
from slotlock.graphql.booking.tickets import Ticket
from slotlock.infrastructure.mongo.slots import slot_document_updates
from slotlock.infrastructure.mongo.users.user_repository import UserRepository
from slotlock.infrastructure.redis.admission.admission_queue import (
    REQUEST_HASH_CHARS,
    QueuedBooking,
)
from slotlock.infrastructure.redis.admission.partitions import StreamEntry
from slotlock.services.admission import queued_batch
from slotlock.services.admission.enqueue import request_booking
from slotlock.services.admission.queued_batch import serve_batch
from slotlock.services.admission.tickets import load_ticket
from slotlock.services.booking import booking_changes
from slotlock.services.booking.book import (
    BookingOptions,
    BookSlotCommand,
    book_slot,
    book_slots,
)
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.booking.move import move
from slotlock.services.idempotency_key import IdempotencyKey
from tests.support.apps.variants.slot_writer import _id_only_filter
from tests.support.domain.builders import HOUR
from tests.support.model.operations import MORNING
from tests.support.model.service_pair import ServicePair
from tests.support.scenarios.families import store_guardians
from tests.support.stores.slots import insert_slot


@pytest.fixture
def pair(pair: ServicePair) -> ServicePair:
    """Return two services without bookings and families."""
    pair.reset()
    fields = dict.fromkeys(("guardians", "banned", "bannedAt"), "")
    pair.database["users"].update_many({}, {"$unset": fields})
    return pair


def add_slots(pair: ServicePair, *capacities: int, choice_group: str | None = None) -> list[SlotId]:
    """Insert a slot of each capacity."""
    start = MORNING.replace(year=2041)
    facts = {"start": start, "end": start + HOUR, "choice_group": choice_group}
    return [
        pair.runner.run(insert_slot(pair.services[0], capacity, **facts)) for capacity in capacities
    ]


def booked_users(pair: ServicePair, slot_id: SlotId) -> list[UserId]:
    """Return the users with a place in a slot."""
    stored = pair.runner.run(pair.services[0].slots.find_with_roster(slot_id))
    assert stored is not None
    return [each.user_id for each in stored.bookings]


def book_at_once(pair: ServicePair, *book: Callable[[Any], Awaitable[Any]]) -> list[str]:
    """Let two bookings decide on the same slot, the first of which writes last."""

    async def race() -> list[str]:
        reached = pair.slot_writer(0).pause_next_commit()
        first = asyncio.ensure_future(book[0](pair.services[0]))
        await reached.wait()
        pair.delete_locks()
        second = await book[1](pair.services[1])
        pair.slot_writer(0).resume_event.set()
        return [type(each.outcome).__name__ for each in (await first, second)]

    return pair.runner.run(race())


@pytest.mark.parametrize("is_guarded", [True, False])
def test_two_parents_who_book_one_child_at_once_get_one_place(
    pair: ServicePair, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    mother, father, child = (caller.user_id for caller in pair.callers[:3])
    store_guardians(pair.database, child, mother, father)
    (slot_id,) = add_slots(pair, 3)
    if not is_guarded:
        monkeypatch.setattr(slot_document_updates, "version_filter", _id_only_filter)
    outcomes = book_at_once(
        pair,
        *(
            lambda services, caller=caller: book_slot(
                services, caller, slot_id, child, BookingOptions()
            )
            for caller in pair.callers[:2]
        ),
    )
    # The control: without the version, the child has two places.
    assert outcomes == (["AlreadyBooked", "Booked"] if is_guarded else ["Booked", "Booked"])
    assert booked_users(pair, slot_id) == [child] * (1 if is_guarded else 2)


@pytest.mark.parametrize("is_guarded", [True, False])
def test_of_two_families_that_want_the_last_two_places_one_gets_both(
    pair: ServicePair, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    ids = [caller.user_id for caller in pair.callers]
    families = {0: (ids[2], ids[3]), 1: (ids[4], ids[1])}
    for parent, children in ((0, families[0]), (5, families[1])):
        for child in children:
            store_guardians(pair.database, child, ids[parent])
    (slot_id,) = add_slots(pair, 2)
    if not is_guarded:
        monkeypatch.setattr(slot_document_updates, "version_filter", _id_only_filter)

    def family(parent: Caller, children: Sequence[UserId]) -> Callable[[Any], Awaitable[Any]]:
        claims = [(slot_id, child) for child in children]
        return lambda services: book_slots(services, parent, claims, BookingOptions())

    outcomes = book_at_once(
        pair, family(pair.callers[0], families[0]), family(pair.callers[5], families[1])
    )
    if is_guarded:
        assert outcomes == ["NoneBooked", "AllBooked"]
        assert set(booked_users(pair, slot_id)) == set(families[1])
    else:  # The control: without the version, both families have places.
        assert outcomes == ["AllBooked", "AllBooked"]


def organizers_first(request: BookingRequest, caller: Caller, *, leads: bool = False) -> Any:
    """Return the request as what an organizer makes it who overrides limits for each other user."""
    assert not leads
    is_organizer = caller.is_organizer and request.user_id != caller.user_id
    return replace(request, made_as=MadeAs.ORGANIZER if is_organizer else None)


@pytest.mark.parametrize("is_guarded", [True, False])
def test_an_organizer_books_and_moves_the_own_child_by_the_rules(
    pair: ServicePair, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    organizer, child = pair.organizer, pair.callers[0].user_id
    store_guardians(pair.database, child, organizer.user_id)
    one, other, third = add_slots(pair, 2, 2, 2, choice_group="week 1")
    (free,) = add_slots(pair, 2)
    if not is_guarded:
        monkeypatch.setattr(BookingRequest, "made_by", organizers_first)

    async def outcomes() -> list[str]:
        services, options = pair.services[0], BookingOptions()
        first = await book_slot(services, organizer, one, child, options)
        second = await book_slot(services, organizer, other, child, options)
        elsewhere = await book_slot(services, organizer, free, child, options)
        assert isinstance(first.outcome, Booked)
        assert isinstance(elsewhere.outcome, Booked)
        booking = elsewhere.outcome.booking
        assert booking.made_as is (MadeAs.GUARDIAN if is_guarded else MadeAs.ORGANIZER)
        request = BookingChangeRequest(free, booking.id, organizer)
        moved = await move(services, request, other)
        queued = await request_booking(services, organizer, third, child, options)
        return [type(each.outcome).__name__ for each in (second, moved, queued)]

    # The control is the expression that knew organizers only: it overrides the limit.
    expected = ["LimitReached"] * 3 if is_guarded else ["Booked", "AlreadyBooked", "Ticket"]
    assert pair.runner.run(outcomes()) == expected


def count_calls(monkeypatch: pytest.MonkeyPatch, *named: tuple[Any, str]) -> Counter[str]:
    """Return how often these functions are called from now on, by their names."""
    calls = Counter[str]()

    def count(holder: Any, name: str) -> None:
        original = getattr(holder, name)

        async def counted(*arguments: Any, **options: Any) -> Any:
            calls[name] += 1
            return await original(*arguments, **options)

        monkeypatch.setattr(holder, name, counted)

    for holder, name in named:
        count(holder, name)
    return calls


@pytest.mark.parametrize("is_guarded", [True, False])
@pytest.mark.parametrize("by", ["guardian", "organizer"])
def test_nobody_extends_confirms_or_moves_the_place_of_a_banned_child(
    pair: ServicePair, monkeypatch: pytest.MonkeyPatch, is_guarded: bool, by: str
) -> None:
    child, services = pair.callers[1].user_id, pair.services[0]
    caller = pair.organizer if by == "organizer" else pair.callers[0]
    store_guardians(pair.database, child, pair.callers[0].user_id)
    held_id, target_id = add_slots(pair, 2, 2)
    if not is_guarded:
        monkeypatch.setattr(booking_changes, "account_refusal", lambda *_: None)

    async def outcomes() -> list[str]:
        held = await book_slot(services, caller, held_id, child, BookingOptions(hold=True))
        assert isinstance(held.outcome, Booked)
        ban = {"$set": {"banned": True, "bannedAt": MORNING}}
        pair.database["users"].update_one({"_id": ObjectId(child)}, ban)
        pair.clock.advance(timedelta(minutes=1))
        request = BookingChangeRequest(held_id, held.outcome.booking.id, caller)
        results = [
            await change_booking(services, extend, request),
            await change_booking(services, confirm, request),
            await move(services, request, target_id),
            await change_booking(services, cancel, request),
        ]
        return [type(each.outcome).__name__ for each in results]

    # The control: without the rule, the child gets the other place, so that nothing is cancelled.
    done = ["HoldExtended", "BookingConfirmed", "BookingMoved", "BookingNotFound"]
    expected = [*["UserBanned"] * 3, "BookingCancelled"] if is_guarded else done
    assert pair.runner.run(outcomes()) == expected
    assert booked_users(pair, target_id) == ([] if is_guarded else [child])


@pytest.mark.parametrize(
    ("caller_number", "of_confirm", "of_move"),
    [
        (1, {"execute": 1}, {}),
        (0, {"execute": 2, "find_dependents": 1}, {"find_dependents": 1}),
        (-1, {"execute": 2, "find_many": 1}, {"find_many": 1}),
    ],
    ids=["the user", "a guardian", "an organizer"],
)
def test_only_a_change_for_another_user_reads_an_account_and_only_once(
    pair: ServicePair,
    monkeypatch: pytest.MonkeyPatch,
    caller_number: int,
    of_confirm: dict[str, int],
    of_move: dict[str, int],
) -> None:
    guardian, owner = pair.callers[:2]
    services, caller = pair.services[0], pair.callers[caller_number]
    store_guardians(pair.database, owner.user_id, guardian.user_id)
    held_id, target_id = add_slots(pair, 2, 2)
    reads = [(UserRepository, name) for name in ("find_many", "find_dependents")]
    calls = count_calls(monkeypatch, *reads, (booking_changes, "execute"))

    async def confirm_and_move() -> None:
        held = await book_slot(services, owner, held_id, owner.user_id, BookingOptions(hold=True))
        assert isinstance(held.outcome, Booked)
        request = BookingChangeRequest(held_id, held.outcome.booking.id, caller)
        confirmed = await change_booking(services, confirm, request)
        assert isinstance(confirmed.outcome, BookingConfirmed)
        assert calls == of_confirm
        calls.clear()
        moved = await move(services, request, target_id)
        assert isinstance(moved.outcome, BookingMoved)
        assert calls == of_move

    pair.runner.run(confirm_and_move())


def queued(slot_id: SlotId, *requests: tuple[UserId, UserId]) -> list[StreamEntry]:
    """Return requests of the queue, each of a sender for a user."""
    entries = []
    for number, (sender, user_id) in enumerate(requests):
        parts = (BookSlotCommand.name, slot_id, user_id, False)
        key = IdempotencyKey.for_request(sender, f"{number}", *parts)
        hashes = (key.key_hash, key.short_request_hash)
        booking = QueuedBooking(slot_id, user_id, sender, False, *hashes)
        entries.append(StreamEntry(f"{number}-0", {}, booking, MORNING))
    return entries


def test_the_queue_decides_a_run_of_guardians_with_one_read_and_one_write(
    pair: ServicePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    mother, father, mia, ben, other = (caller.user_id for caller in pair.callers[:5])
    organizer = pair.organizer.user_id
    for child in (mia, ben):
        store_guardians(pair.database, child, mother, organizer)
    (slot_id,) = add_slots(pair, 9)
    calls = count_calls(
        monkeypatch,
        (queued_batch, "run_with_lock"),
        (queued_batch, "execute_booking"),
        (UserRepository, "find_many"),
    )
    services = pair.services[0]

    def serve(*requests: tuple[UserId, UserId]) -> dict[str, int]:
        calls.clear()
        entries = queued(slot_id, *requests)
        assert pair.runner.run(serve_batch(services, slot_id, entries)) == entries
        return dict(calls)

    together = serve((mother, mia), (other, other), (organizer, ben), (mother, mother))
    assert together == {"find_many": 1, "run_with_lock": 1}
    assert booked_users(pair, slot_id) == [mia, other, ben, mother]
    stored = pair.runner.run(services.slots.find_with_roster(slot_id))
    assert stored is not None
    # An organizer who is a guardian overrides nothing here either.
    assert [each.made_as for each in stored.bookings] == [
        MadeAs.GUARDIAN, None, MadeAs.GUARDIAN, None,
    ]  # fmt: skip
    assert not any(each.history[0].overridden_limits for each in stored.bookings)
    pair.reset()
    (slot_id,) = add_slots(pair, 9)
    store_guardians(pair.database, mia, mother)
    store_guardians(pair.database, ben)
    # Who is no guardian any more is asked for teams and led slots, alone, and refused.
    divided = serve((mother, mia), (mother, ben), (father, father))
    assert (divided["run_with_lock"], divided["execute_booking"]) == (2, 1)
    assert booked_users(pair, slot_id) == [mia, father]
    records = pair.database["idempotency_records"].find({}, {"outcome": 1})
    assert sum("NotTeammate" in str(each) for each in records) == 1


def test_the_tickets_of_a_guardian_show_the_places_of_dependents_and_never_say_you(
    pair: ServicePair,
) -> None:
    caller, mia, ben = pair.callers[0], *(each.user_id for each in pair.callers[1:3])
    for child in (mia, ben):
        store_guardians(pair.database, child, caller.user_id)
    (slot_id,) = add_slots(pair, 1)
    pair.database["slots"].update_many({}, {"$set": {"onlyForGroups": ["class:1a"]}})
    pair.database["users"].update_one({"_id": ObjectId(mia)}, {"$set": {"groups": ["class:1a"]}})
    entries = queued(slot_id, *((caller.user_id, each) for each in (mia, ben, caller.user_id)))
    assert pair.runner.run(serve_batch(pair.services[0], slot_id, entries)) == entries

    def outcome(entry: StreamEntry) -> Any:
        """Return what the guardian sees of a ticket."""
        booking = entry.request
        assert booking is not None
        hashes = booking.key, booking.request_hash[:REQUEST_HASH_CHARS]
        ref = TicketRef(slot_id, caller.user_id, *hashes, MORNING)
        ticket = pair.runner.run(load_ticket(pair.services[0], ref))
        return Ticket.from_domain(ticket, caller).outcome

    for_mia, for_ben, own = map(outcome, entries)
    assert (for_mia.booking.made_as, for_mia.booking.on_behalf) == (MadeAs.GUARDIAN, True)
    assert "you" not in for_ben.message.lower()
    assert "you" in own.message.lower()
    # A former guardian sees no more of it than a stranger.
    store_guardians(pair.database, mia)
    assert outcome(entries[0]).booking.made_as is None
