"""Random draws, small enough to have every kind of result."""

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import TypeVar

from hypothesis import strategies as st

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.draws.basis import (
    DrawBasis,
    DrawEntry,
    DrawId,
    DrawMember,
    DrawMethod,
    DrawRecordReaders,
    DrawSlot,
    FormerDraw,
    GroupPlaces,
    PublicAct,
    SeedAnnouncement,
    build_entry,
    commitment_of,
    in_order,
    pseudonym_of,
    root_of,
)
from slotlock.domain.draws.drawing import draw_places
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.draw_records import DrawRecord, NotBooked
from tests.support.domain.builders import HOUR, NOW

Value = TypeVar("Value")

GROUPS = ("g1", "g2", "g3")
ANNOUNCED = {
    "the server": SeedAnnouncement(commitment=commitment_of(DrawId("draw-1"), "seed")),
    "the lottery": SeedAnnouncement("die Lottozahlen ü\u2028😀", NOW + HOUR),
}
FORMER = (
    FormerDraw(DrawId("draw-0"), "published", "0" * 64, True, None, "1" * 64),
    FormerDraw(DrawId("draw-00"), "cancelled", None, False, "no wishes", None),
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
    announced = random.choice(list(ANNOUNCED.values()))
    opened = PublicAct(NOW - HOUR, "collecting", None, NOW, announced.source, announced.at)
    basis = DrawBasis(
        DrawId("draw-1"),
        CampaignId("campaign-1"),
        random.choice((DrawMethod.ROUNDS, DrawMethod.ROUNDS, DrawMethod.SERIAL)),
        max_bookings or random.choice((None, 1, 2, 3)),
        random.random() < 0.6,
        tuple(slots),
        tuple(entries),
        announced,
        (opened, PublicAct(NOW, "closed")),
        FORMER[: random.randint(0, 2)],
        random.choice(list(DrawRecordReaders)),
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
    return in_order(DrawBasis(*ids_of_draw, DrawMethod.ROUNDS, 1, False, slots, entries))


def plain_slot(slot_id: SlotId, capacity: int) -> DrawSlot:
    """Return a slot with nothing but a capacity."""
    return DrawSlot(slot_id, "Yoga", capacity, 0, None, (), (Meeting(NOW, NOW + HOUR),))


def drawn_record(basis: DrawBasis, seed: str = "seed") -> DrawRecord:
    """Return the right record of a draw with this seed."""
    root = root_of(basis)
    drawn = draw_places(basis, root, seed)
    first = next((each for each in drawn if each.granted), None)
    lost = []
    if first:
        user = first.entry.members[0].pseudonym
        lost = [NotBooked(first.entry.leaf, user, first.granted[0], "SLOT_FULL")]
    later = NOW + HOUR + timedelta(seconds=1)
    acts = (*basis.acts, PublicAct(later, "drawn"), PublicAct(later, "published"))
    return DrawRecord(basis, root, seed, drawn, tuple(lost), acts)


def _plain_member(number: int) -> DrawMember:
    return DrawMember(pseudonym_of(f"salt {number}", UserId(f"user-{number}")))


def _build_slot(random: Random, number: int) -> DrawSlot:
    starts = [
        NOW + timedelta(days=day, minutes=30 * random.randint(0, 4))
        for day in range(random.choice((1, 1, 2)))
    ]
    capacity = random.randint(1, 4)
    limited = [
        GroupPlaces(group, random.randint(0, 3), random.choice((0, 0, 1)))
        for group in GROUPS
        if random.random() < 0.2
    ]
    return DrawSlot(
        SlotId(f"slot-{number}"),
        random.choice(("Yoga", 'Chor "Süd" \\ 😀', "")),
        capacity,
        booked=random.choice((0, 0, 0, 1)),
        choice_group=random.choice((None, None, "week", "language")),
        groups=tuple(limited),
        meetings=tuple(Meeting(each, each + HOUR) for each in starts),
    )


def _build_entry(random: Random, ids: Sequence[SlotId], users: Sequence[int]) -> DrawEntry:
    wishes = random.sample(ids, random.randint(0, len(ids)))
    if random.random() < 0.1:
        wishes.append(SlotId("deleted"))
    members = [
        DrawMember(
            pseudonym_of(f"salt {user}", UserId(f"user-{user}")),
            _some(random, GROUPS),
            random.choice((0, 0, 0, 1)),
            tuple(each for each in wishes if each in ids and random.random() < 0.05),
        )
        for user in users
    ]
    return build_entry(members, wishes)


def _some(random: Random, values: Sequence[Value]) -> tuple[Value, ...]:
    return tuple(each for each in values if random.random() < 0.5)
