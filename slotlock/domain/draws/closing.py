"""Closing: the basis of a draw, from the wishes and the slots and users as they are then."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from slotlock.domain.booking.booking import BookingLimit, SlotId
from slotlock.domain.booking.booking_refusals import LimitRefusal
from slotlock.domain.booking.rules.limits import user_violations
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts
from slotlock.domain.campaigns.terms import CampaignTerms, GroupLimit
from slotlock.domain.draws.basis import (
    DrawBasis,
    DrawMember,
    DrawSlot,
    build_entry,
    in_order,
    pseudonym_of,
)
from slotlock.domain.draws.draw import Draw
from slotlock.domain.shared.declare import declarations
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId

# The limits that rule a user out in all slots of a campaign alike.
_OF_THE_USER = (BookingLimit.NOT_ELIGIBLE, BookingLimit.EMAIL_NOT_VERIFIED, BookingLimit.NO_SHOWS)


@value_object
class Wishes:
    """The ranked wishes of a user, or of the members of a team together.

    The salt makes the pseudonyms of the users, and never changes.
    """

    user_ids: tuple[UserId, ...]
    slot_ids: tuple[SlotId, ...]
    salt: str
    by: UserId
    at: datetime


@value_object
class ClosedWishes:
    """The basis of a draw, and who is behind it: the wishes by leaf, the users by pseudonym.

    `ruled_out` has the code of the refusal, by pseudonym, for the users who are not eligible.
    """

    basis: DrawBasis
    wishes: Mapping[str, Wishes]
    users: Mapping[str, UserId]
    ruled_out: Mapping[str, str]


def close_wishes(
    draw: Draw,
    terms: CampaignTerms,
    states: Sequence[SlotState],
    users: UserContexts,
    all_wishes: Iterable[Wishes],
    now: datetime,
) -> ClosedWishes:
    """Return the basis of a draw on the slots of its campaign and the contexts of all users.

    Users without a context are banned or gone, and have no part in their entry.
    """
    slots = {state.id: state.slot for state in states}
    limits = [
        *terms.group_limits,
        *(limit for slot in slots.values() for limit in slot.group_limits),
    ]
    booked: set[SlotId] = set()
    others: dict[SlotId, Slot] = {}
    entries, by_leaf, by_pseudonym = [], dict[str, Wishes](), dict[str, UserId]()
    ruled_out: dict[str, str] = {}
    for wishes in all_wishes:
        members = []
        for user_id in wishes.user_ids:
            if (context := users.context_of(user_id)) is None:
                continue
            live = [each for each in context.bookings if not each.booking.is_expired_at(now)]
            others |= {each.slot.id: each.slot for each in live}
            own = tuple(dict.fromkeys(each.slot.id for each in live))
            booked.update(own)
            pseudonym = pseudonym_of(wishes.salt, user_id)
            by_pseudonym[pseudonym] = user_id
            if refusal := _refusal(slots.values(), users, user_id, now):
                ruled_out[pseudonym] = declarations[type(refusal)].code
            members.append(
                DrawMember(
                    pseudonym,
                    refusal is None,
                    tuple(group for group in context.groups if _is_limited(group, limits)),
                    own,
                )
            )
        if members:
            entry = build_entry(members, wishes.slot_ids)
            entries.append(entry)
            by_leaf[entry.leaf] = wishes
    shown = [*to_draw_slots(states, limits, now, booked), *_elsewhere(others, slots)]
    basis = DrawBasis(
        draw.id,
        draw.campaign_id,
        draw.settings.method,
        terms.max_bookings,
        terms.group_limits,
        tuple(shown),
        tuple(entries),
    )
    return ClosedWishes(in_order(basis), by_leaf, by_pseudonym, ruled_out)


def promised_places(basis: DrawBasis) -> Mapping[SlotId, int]:
    """Return how many free places each slot had when the wishes closed."""
    wanted = (slot for slot in basis.slots if slot.is_open and slot.in_campaign)
    return {slot.id: slot.capacity - slot.booked for slot in wanted}


def lacking_slots(
    needed: Mapping[SlotId, int], states: Sequence[SlotState], now: datetime, *, is_drawn: bool
) -> tuple[SlotId, ...]:
    """Return the slots that have fewer free places than are needed; a hidden one has none.

    One that is cancelled, deleted or has started has none either. It stops no draw whose seed is
    fixed: its places are recorded as not booked, so that nobody undoes a draw by a cancellation.
    """
    free = {
        state.id: 0 if state.slot.is_hidden else state.remaining
        for state in states
        if state.slot.status is not SlotStatus.CANCELLED and now < state.slot.start
    }
    counted = free if is_drawn else needed
    return tuple(sorted(id_ for id_ in counted if free.get(id_, 0) < needed.get(id_, 0)))


def to_draw_slots(
    states: Sequence[SlotState],
    limits: Sequence[GroupLimit],
    now: datetime,
    booked: Iterable[SlotId] = (),
) -> Iterator[DrawSlot]:
    """Yield the slots of a campaign in which users can get places, or have some."""
    needed = set(booked)
    for state in states:
        slot = state.slot
        is_open = slot.status is SlotStatus.PUBLISHED and now < slot.start
        if is_open or slot.id in needed:
            counts = sorted((state.group_counts or {}).items())
            yield _to_draw_slot(
                slot,
                state.booked_count,
                is_open,
                tuple((group, n) for group, n in counts if n and _is_limited(group, limits)),
            )


def _elsewhere(others: Mapping[SlotId, Slot], slots: Mapping[SlotId, Slot]) -> Iterator[DrawSlot]:
    """Yield the slots of other campaigns, or of none, in which users have bookings."""
    for slot_id, slot in others.items():
        if slot_id not in slots:
            yield _to_draw_slot(slot, 0, False, (), in_campaign=False)


def _to_draw_slot(
    slot: Slot,
    booked: int,
    is_open: bool,
    counts: tuple[tuple[str, int], ...],
    in_campaign: bool = True,
) -> DrawSlot:
    forbids_overlap = slot.terms is not None and slot.terms.forbid_overlap
    return DrawSlot(
        slot.id,
        slot.title,
        slot.capacity,
        booked,
        is_open,
        in_campaign,
        forbids_overlap,
        slot.choice_group,
        slot.group_limits,
        counts,
        slot.all_meetings,
    )


def _refusal(
    slots: Iterable[Slot], users: UserContexts, user_id: UserId, now: datetime
) -> LimitRefusal | None:
    """Return why the user may not book in the campaign, of which every slot has the terms."""
    slot = next(iter(slots), None)
    violations = user_violations(slot, users, user_id, now) if slot else ()
    return next((refusal for limit, refusal in violations if limit in _OF_THE_USER), None)


def _is_limited(group: str, limits: Iterable[GroupLimit]) -> bool:
    return any(limit.applies_to(group) for limit in limits)
