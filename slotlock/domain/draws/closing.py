"""Closing: the basis of a draw, from the wishes and the slots and users as they are then."""

from bisect import bisect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import LimitRefusal
from slotlock.domain.booking.rules.limits import user_violations
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContext, UserContexts
from slotlock.domain.campaigns.terms import CampaignTerms, GroupLimit
from slotlock.domain.draws.basis import (
    DrawBasis,
    DrawMember,
    DrawSlot,
    build_entry,
    hidden_slot,
    in_order,
    pseudonym_of,
)
from slotlock.domain.draws.draw import Draw
from slotlock.domain.schedule.meetings import Meeting, first_overlap
from slotlock.domain.shared.declare import declarations
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId


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
    `hidden` has by leaf which slots the ids of the basis stand for that are not those of slots.
    """

    basis: DrawBasis
    wishes: Mapping[str, Wishes]
    users: Mapping[str, UserId]
    ruled_out: Mapping[str, str]
    hidden: Mapping[str, Mapping[SlotId, SlotId]]


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
    open_slots = {each.id: each for each in to_draw_slots(states, terms, now)}
    shown, bookings = dict(open_slots), _Bookings(open_slots, slots, now)
    entries, by_leaf, by_pseudonym = [], dict[str, Wishes](), dict[str, UserId]()
    ruled_out: dict[str, str] = {}
    hidden: dict[str, dict[SlotId, SlotId]] = {}
    for wishes in all_wishes:
        wished = [open_slots[each] for each in wishes.slot_ids if each in open_slots]
        limits = {*terms.group_limits, *(limit for each in wished for limit in each.group_limits)}
        members, slot_ids = [], dict[SlotId, SlotId]()
        # In the order of their decisions: if bookings of two look the same, the first one refuses.
        for pseudonym, user_id in _by_pseudonym(wishes):
            if (context := users.context_of(user_id)) is None:
                continue
            booked = bookings.show(context, wished)
            for slot_id, each in booked.items():
                shown[each.id] = each
                slot_ids.setdefault(each.id, slot_id)
            by_pseudonym[pseudonym] = user_id
            if refusal := _refusal(slots.values(), users, context, now):
                ruled_out[pseudonym] = declarations[type(refusal)].code
            members.append(
                DrawMember(
                    pseudonym,
                    refusal is None,
                    tuple(group for group in context.groups if _is_limited(group, limits)),
                    tuple(dict.fromkeys(each.id for each in booked.values())),
                )
            )
        if members:
            entry = build_entry(members, wishes.slot_ids)
            entries.append(entry)
            by_leaf[entry.leaf] = wishes
            hidden[entry.leaf] = {one: own for one, own in slot_ids.items() if one != own}
    basis = DrawBasis(
        draw.id,
        draw.campaign_id,
        draw.settings.method,
        terms.max_bookings,
        terms.group_limits,
        tuple(shown.values()),
        tuple(entries),
    )
    return ClosedWishes(in_order(basis), by_leaf, by_pseudonym, ruled_out, hidden)


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
    states: Sequence[SlotState], terms: CampaignTerms, now: datetime
) -> Iterator[DrawSlot]:
    """Yield the slots of a campaign in which users can get places."""
    for state in states:
        slot = state.slot
        if slot.status is not SlotStatus.PUBLISHED or now >= slot.start:
            continue
        limits = (*slot.group_limits, *terms.group_limits)
        counts = sorted((state.group_counts or {}).items())
        yield DrawSlot(
            slot.id,
            slot.title,
            slot.capacity,
            state.booked_count,
            is_open=True,
            in_campaign=True,
            forbids_overlap=_forbids_overlap(slot),
            choice_group=slot.choice_group,
            group_limits=slot.group_limits,
            group_counts=tuple((name, n) for name, n in counts if n and _is_limited(name, limits)),
            meetings=slot.all_meetings,
        )


def _by_pseudonym(wishes: Wishes) -> list[tuple[str, UserId]]:
    return sorted((pseudonym_of(wishes.salt, user_id), user_id) for user_id in wishes.user_ids)


class _Bookings:
    """Shows bookings: open slots as they are, and of other slots no more than the rules need."""

    def __init__(
        self, open_slots: Mapping[SlotId, DrawSlot], of_campaign: Collection[SlotId], now: datetime
    ) -> None:
        self._open_slots, self._of_campaign, self._now = open_slots, of_campaign, now
        self._times = {
            each.id: [time for meeting in each.meetings for time in (meeting.start, meeting.end)]
            for each in open_slots.values()
        }
        # Whole classes have booked the same slots: from when on two slots overlap, if they do.
        self._overlaps: dict[tuple[SlotId, SlotId], datetime | None] = {}
        self._hidden: dict[object, DrawSlot] = {}

    def show(self, context: UserContext, wished: Sequence[DrawSlot]) -> dict[SlotId, DrawSlot]:
        """Return, by the ids of the slots that a user has booked, what the record has of them."""
        found: dict[SlotId, DrawSlot] = {}
        for other in context.bookings:
            slot_id = other.slot.id
            if other.booking.is_expired_at(self._now):
                continue
            number = len(found) if slot_id in self._of_campaign else None
            if each := self._open_slots.get(slot_id) or self._hide(other.slot, wished, number):
                found[slot_id] = each
        return found

    def _hide(self, slot: Slot, wished: Sequence[DrawSlot], number: int | None) -> DrawSlot | None:
        """Return what the rules need of a booked slot for these wishes; None if that is nothing.

        A slot of the campaign has a number, and always counts.
        """
        choices = {each.choice_group for each in wished} - {None}
        choice_group = slot.choice_group if slot.choice_group in choices else None
        parts = self._common_parts(slot, wished) if _forbids_overlap(slot) else ()
        if number is None and choice_group is None and not parts:
            return None
        shown = parts, choice_group, number
        if shown not in self._hidden:
            self._hidden[shown] = hidden_slot(*shown)
        return self._hidden[shown]

    def _common_parts(self, slot: Slot, wished: Sequence[DrawSlot]) -> tuple[Meeting, ...]:
        """Return times that overlap exactly those of the wished slots that a booked one overlaps.

        They begin and end where meetings of wished slots do, and so tell nothing else of its times.
        """
        exclusive = [each for each in wished if each.forbids_overlap]
        starts = {self._first_overlap(slot, each) for each in exclusive}
        parts = {self._part_at(start, exclusive) for start in starts if start is not None}
        return tuple(sorted(parts, key=lambda part: part.start))

    def _first_overlap(self, slot: Slot, wished: DrawSlot) -> datetime | None:
        pair = slot.id, wished.id
        if pair not in self._overlaps:
            found = first_overlap(slot.all_meetings, wished.meetings)
            self._overlaps[pair] = max(each.start for each in found) if found else None
        return self._overlaps[pair]

    def _part_at(self, instant: datetime, wished: Sequence[DrawSlot]) -> Meeting:
        """Return the time around an instant in which no wished slot begins or ends a meeting."""
        of_wished = [self._times[each.id] for each in wished]
        rows = [(times, bisect(times, instant)) for times in of_wished]
        start = max(times[n - 1] for times, n in rows if n > 0)
        return Meeting(start, min(times[n] for times, n in rows if n < len(times)))


def _forbids_overlap(slot: Slot) -> bool:
    return slot.terms is not None and slot.terms.forbid_overlap


def _refusal(
    slots: Iterable[Slot], users: UserContexts, context: UserContext, now: datetime
) -> LimitRefusal | None:
    """Return why the user may not book in the campaign, of which every slot has the terms."""
    # A slot that the user has booked would not count a no-show there.
    booked = {other.slot.id for other in context.bookings}
    slot = next((slot for slot in slots if slot.id not in booked), None)
    violations = user_violations(slot, users, context.user_id, now) if slot else ()
    return next((refusal for limit, refusal in violations if limit.is_of_user), None)


def _is_limited(group: str, limits: Iterable[GroupLimit]) -> bool:
    return any(limit.applies_to(group) for limit in limits)
