"""Random draws, small enough to have every kind of result."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TypeVar

from hypothesis import strategies as st

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.terms import CampaignId, GroupLimit
from slotlock.domain.draws.basis import (
    DrawBasis,
    DrawEntry,
    DrawId,
    DrawMember,
    DrawMethod,
    DrawSlot,
    build_entry,
    in_order,
    pseudonym_of,
    root_of,
)
from slotlock.domain.draws.drawing import draw_places
from slotlock.domain.draws.record import DrawRecord, Seed
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import HOUR, NOW

Value = TypeVar("Value")

GROUPS = ("class:5a", "class:5b", "choir", "Orchester ü\u2028😀")
ALL_LIMITS = (
    GroupLimit("*", 3),
    GroupLimit("class:*", 1),
    GroupLimit("class:5a", 2),
    GroupLimit("class:5a*", 3),
    GroupLimit(GROUPS[3], 1),
)


def build_basis(random: Random, max_bookings: int | None = None) -> DrawBasis:
    """Return the basis of a draw with up to 12 entries, of which some are teams."""
    slots = [_build_slot(random, number) for number in range(random.randint(1, 8))]
    ids = [slot.id for slot in slots]
    users = iter(range(100))
    entries = [
        _build_entry(random, ids, [next(users) for _ in range(random.choice((1, 1, 1, 2, 3)))])
        for _ in range(random.randint(0, 12))
    ]
    basis = DrawBasis(
        DrawId("draw-1"),
        CampaignId("campaign-1"),
        random.choice((DrawMethod.ROUNDS, DrawMethod.ROUNDS, DrawMethod.SERIAL)),
        max_bookings or random.choice((None, 1, 2, 3)),
        _some(random, ALL_LIMITS) if random.random() < 0.4 else (),
        tuple(slots),
        tuple(entries),
    )
    return in_order(basis)


random_draws = st.randoms(use_true_random=False).map(build_basis)


def build_simple_basis(random: Random) -> DrawBasis:
    """Return a draw of users who get one place each, in slots with nothing but a capacity."""
    ids = [SlotId(f"slot-{number}") for number in range(random.randint(1, 5))]
    slots = tuple(plain_slot(slot_id, random.randint(1, 3)) for slot_id in ids)
    entries = tuple(
        build_entry([_plain_member(n)], random.sample(ids, random.randint(0, len(ids))))
        for n in range(random.randint(1, 12))
    )
    ids_of_draw = DrawId("draw-1"), CampaignId("campaign-1")
    return in_order(DrawBasis(*ids_of_draw, DrawMethod.ROUNDS, 1, (), slots, entries))


def plain_slot(slot_id: SlotId, capacity: int) -> DrawSlot:
    """Return an open slot with nothing but a capacity."""
    meetings = (Meeting(NOW, NOW + HOUR),)
    return DrawSlot(slot_id, "Yoga", capacity, 0, True, True, False, None, (), (), meetings)


def drawn_record(basis: DrawBasis, seed: str = "seed") -> DrawRecord:
    """Return the right record of a draw with this seed."""
    root = root_of(basis)
    return DrawRecord(basis, root, Seed(seed, "the test"), draw_places(basis, root, seed))


def _plain_member(number: int) -> DrawMember:
    return DrawMember(pseudonym_of(f"salt {number}", UserId(f"user-{number}")))


def _build_slot(random: Random, number: int) -> DrawSlot:
    starts = [
        NOW + timedelta(days=day, minutes=30 * random.randint(0, 4))
        for day in range(random.choice((1, 1, 2)))
    ]
    capacity = random.randint(1, 4)
    slot = DrawSlot(
        SlotId(f"slot-{number}"),
        random.choice(("Yoga", 'Chor "Süd" \\ 😀', "")),
        capacity,
        booked=random.choice((0, 0, 0, 1)),
        is_open=random.random() < 0.9,
        in_campaign=random.random() < 0.9,
        forbids_overlap=random.random() < 0.6,
        choice_group=random.choice((None, None, "week", "language")),
        group_limits=_some(random, ALL_LIMITS) if random.random() < 0.3 else (),
        group_counts=((GROUPS[0], 1),) if random.random() < 0.2 else (),
        meetings=tuple(Meeting(each, each + HOUR) for each in starts),
    )
    # What stands for a booking in a slot that nobody can wish for may have no time.
    return slot if slot.is_open or number % 2 else replace(slot, title="", capacity=0, meetings=())


def _build_entry(random: Random, ids: Sequence[SlotId], users: Sequence[int]) -> DrawEntry:
    wishes = random.sample(ids, random.randint(0, len(ids)))
    if random.random() < 0.1:
        wishes.append(SlotId("deleted"))
    members = [
        DrawMember(
            pseudonym_of(f"salt {user}", UserId(f"user-{user}")),
            random.random() < 0.95,
            _some(random, GROUPS),
            tuple(random.sample(ids, min(len(ids), 3))) if random.random() < 0.1 else (),
        )
        for user in users
    ]
    return build_entry(members, wishes)


def _some(random: Random, values: Sequence[Value]) -> tuple[Value, ...]:
    return tuple(each for each in values if random.random() < 0.5)
