"""Drawing: the places of a closed draw, given by lot with the booking rules of slots.

In each round, each entry gets the best of its remaining wishes that the rules allow; the next round
runs in the reverse order. A place that is taken stays taken. A wish that was refused once would be
refused again, so each wish is decided once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import assert_never

from slotlock.domain.booking.booking import (
    Booking,
    BookingAction,
    BookingId,
    BookingStatus,
    HistoryEntry,
    SlotId,
)
from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.domain.booking.booking_refusals import (
    AlreadyBooked,
    BookingRefusal,
    GroupFull,
    LimitReached,
    SlotFull,
    TimeConflict,
    UndrawnRefusal,
)
from slotlock.domain.booking.rules.book import BookingRequest, book
from slotlock.domain.booking.slot import Slot, SlotKind, SlotStatus
from slotlock.domain.booking.slot_change import EMPTY_CHANGE
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import OtherBooking, UserContext, UserContexts
from slotlock.domain.campaigns.terms import CampaignTerms, GroupLimit
from slotlock.domain.draws.basis import (
    DrawBasis,
    DrawEntry,
    DrawMember,
    DrawMethod,
    DrawSlot,
    lot_of,
)
from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId

# A draw does not depend on the time: at this one no slot has started, and every campaign is open.
ALWAYS = datetime.min.replace(tzinfo=UTC)
NEVER = datetime.max.replace(tzinfo=UTC)


class WishResult(DescribedEnum):
    """What became of a wish."""

    GRANTED = "GRANTED", "The user has a place."
    FULL = "FULL", "All places were taken by lower lottery numbers, or in an earlier round."
    TIME_CONFLICT = (
        "TIME_CONFLICT",
        "The slot overlaps with a better wish that was granted, or an earlier booking.",
    )
    LIMIT = "LIMIT", "The user had as many bookings as the campaign or the choice group allows."
    GROUP_FULL = "GROUP_FULL", "All places of the group were taken."
    NOT_ELIGIBLE = "NOT_ELIGIBLE", "The campaign or the slot is for others."
    ALREADY_BOOKED = "ALREADY_BOOKED", "The user had a place before the draw."
    # What records have in place of the two before, and of earlier bookings that rule a wish out.
    BLOCKED = "BLOCKED", "No lot could give it."
    UNAVAILABLE = "UNAVAILABLE", "The slot was not open when the wishes were closed."


@value_object
class WishOutcome:
    """The result of a wish, and why.

    `round` is set if it was granted. `last_number` is the number that got a place in the full slot
    last, if one did. `conflict` is the slot that rules the wish out, and `group` the full one.
    """

    slot_id: SlotId
    result: WishResult
    round: int | None = None
    last_number: int | None = None
    conflict: SlotId | None = None
    group: str | None = None


@value_object
class DrawnEntry:
    """An entry with its lot, its lottery number from 1, and an outcome for each wish, in order."""

    entry: DrawEntry
    lot: str
    number: int
    outcomes: tuple[WishOutcome, ...]

    @property
    def granted(self) -> tuple[SlotId, ...]:
        """The slots in which the entry gets places, in the order of its wishes."""
        return tuple(each.slot_id for each in self.outcomes if each.result is WishResult.GRANTED)


def draw_places(
    basis: DrawBasis, root: str, seed: str, method: DrawMethod | None = None
) -> tuple[DrawnEntry, ...]:
    """Return the result of a draw by lottery number; by another method than its own for comparison.

    The same basis and seed always have the same result.
    """
    lots = sorted((lot_of(seed, root, entry.leaf), entry.leaf, entry) for entry in basis.entries)
    places = _Places(basis)
    entries = [_OpenEntry(entry, lot, n, places) for n, (lot, _, entry) in enumerate(lots, start=1)]
    is_serial = (method or basis.method) is DrawMethod.SERIAL
    waiting, round_number = entries, 1
    while waiting:
        order = waiting if round_number % 2 else reversed(waiting)
        served = {each.number for each in order if each.take(places, round_number, is_serial)}
        waiting = [each for each in waiting if each.number in served]
        round_number += 1
    return tuple(each.drawn for each in entries)


def serve_in_order(basis: DrawBasis, order: Iterable[str]) -> tuple[DrawnEntry, ...]:
    """Return the result if entries are served by leaf in this order, one place each time.

    It is a rush on the same wishes, for comparison. Entries have numbers in its order.
    """
    by_leaf, places = {entry.leaf: entry for entry in basis.entries}, _Places(basis)
    served: dict[str, _OpenEntry] = {}
    for leaf in order:
        if leaf not in served:
            served[leaf] = _OpenEntry(by_leaf[leaf], "", len(served) + 1, places)
        served[leaf].take(places, 1, takes_all=False)
    return tuple(each.drawn for each in served.values())


class _Places:
    """The places of all slots while they are given out."""

    def __init__(self, basis: DrawBasis) -> None:
        # Equal terms are one value, as each slot of a campaign has a copy of the same.
        self.states = {
            each.id: SlotState(
                _to_slot(each, basis),
                version=1,
                changed_at=ALWAYS,
                booked_count=each.booked,
                group_counts={group.group: group.count for group in each.groups},
            )
            for each in basis.slots
        }
        earlier = DrawSlot(SlotId("earlier"), "", 0, 0, None, (), ())
        self.earlier_slot = _to_slot(earlier, basis)
        self.last_numbers: dict[SlotId, int] = {}
        self.full: dict[SlotId, WishOutcome] = {}


class _OpenEntry:
    """An entry while places are given out: its users with their bookings, and its next wish."""

    def __init__(self, entry: DrawEntry, lot: str, number: int, places: _Places) -> None:
        self.entry, self._lot, self.number = entry, lot, number
        self._blocked = {slot_id for member in entry.members for slot_id in member.blocked}
        self._requests = [
            BookingRequest(
                UserId(member.pseudonym), BookingId(member.pseudonym), UserId(member.pseudonym)
            )
            for member in entry.members
        ]
        self._users = UserContexts(
            {UserId(member.pseudonym): _to_context(member, places) for member in entry.members}
        )
        self._has_bookings = any(member.had for member in entry.members)
        self._outcomes: list[WishOutcome] = []

    @property
    def drawn(self) -> DrawnEntry:
        """The entry with the outcomes of its wishes until now, in their order."""
        return DrawnEntry(self.entry, self._lot, self.number, tuple(self._outcomes))

    def take(self, places: _Places, round_number: int, takes_all: bool) -> bool:
        """Decide the next wishes until one is granted, or all; return whether some are left."""
        for slot_id in self.entry.wishes[len(self._outcomes) :]:
            outcome = self._decide(places, slot_id, round_number)
            self._outcomes.append(outcome)
            if outcome.result is WishResult.GRANTED and not takes_all:
                break
        return len(self._outcomes) < len(self.entry.wishes)

    def _decide(self, places: _Places, slot_id: SlotId, round_number: int) -> WishOutcome:
        state = places.states.get(slot_id)
        if state is None:
            return WishOutcome(slot_id, WishResult.UNAVAILABLE)
        if slot_id in self._blocked:
            return WishOutcome(slot_id, WishResult.BLOCKED)
        if not self._has_bookings and slot_id in places.full:
            return places.full[slot_id]
        refusal, after, bookings = self._book(state)
        if refusal is not None:
            outcome = _to_outcome(slot_id, refusal, places.last_numbers.get(slot_id))
            # A slot that is full for a user without bookings is so for the next of them, too.
            if outcome.result is WishResult.FULL and after is state and not self._has_bookings:
                places.full[slot_id] = outcome
            return outcome
        # An entry wishes for a slot once: no later decision asks for the bookings of this one.
        places.states[slot_id] = replace(after, bookings=state.bookings, change=EMPTY_CHANGE)
        self._users = self._users.with_bookings(state.slot, bookings)
        self._has_bookings = True
        places.last_numbers[slot_id] = self.number
        return WishOutcome(slot_id, WishResult.GRANTED, round=round_number)

    def _book(self, state: SlotState) -> tuple[BookingRefusal | None, SlotState, Sequence[Booking]]:
        """Book for all users, one after the other; return the first refusal, if there is one."""
        bookings = []
        for request in self._requests:
            decision = book(state, self._users, request, ALWAYS)
            if not isinstance(decision.outcome, Booked):
                return decision.outcome, state, ()
            (state,) = decision.changed_slots
            bookings.append(decision.outcome.booking)
        return None, state, bookings


def _to_outcome(slot_id: SlotId, refusal: BookingRefusal, last_number: int | None) -> WishOutcome:
    match refusal:
        case SlotFull():
            return WishOutcome(slot_id, WishResult.FULL, last_number=last_number)
        case GroupFull():
            return WishOutcome(slot_id, WishResult.GROUP_FULL, group=refusal.group)
        case LimitReached() | TimeConflict():
            is_limit = isinstance(refusal, LimitReached)
            result = WishResult.LIMIT if is_limit else WishResult.TIME_CONFLICT
            conflict = refusal.booking.slot_id if refusal.booking else None
            return WishOutcome(slot_id, result, conflict=conflict)
        case _:
            if isinstance(refusal, UndrawnRefusal | AlreadyBooked):
                raise TypeError(f"a draw refuses no wish for {refusal!r}")
            assert_never(refusal)


def _to_slot(each: DrawSlot, basis: DrawBasis) -> Slot:
    terms = CampaignTerms(
        basis.campaign_id,
        version=1,
        published=True,
        opens_at=ALWAYS,
        closes_at=NEVER,
        max_bookings=basis.max_bookings,
        forbid_overlap=basis.forbid_overlap,
    )
    return Slot(
        each.title,
        "UTC",
        each.capacity,
        None,
        SlotKind.OTHER,
        id=each.id,
        # The slot of earlier bookings has no time, and overlaps nothing.
        start=each.meetings[0].start if each.meetings else ALWAYS,
        end=each.meetings[-1].end if each.meetings else ALWAYS,
        status=SlotStatus.PUBLISHED,
        choice_group=each.choice_group,
        terms=terms,
        group_limits=tuple(GroupLimit(group.group, group.limit) for group in each.groups),
        meetings=each.meetings,
    )


def _to_context(member: DrawMember, places: _Places) -> UserContext:
    """Return a user with as many bookings in the campaign as before the draw."""
    user_id, slot = UserId(member.pseudonym), places.earlier_slot
    made = HistoryEntry(ALWAYS, user_id, BookingAction.BOOKED, BookingStatus.CONFIRMED)
    booking = Booking(BookingId("earlier"), slot.id, user_id, (made,))
    earlier = (OtherBooking(booking, slot),) * member.had
    return UserContext(user_id, member.groups, bookings=earlier)
