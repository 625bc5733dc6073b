"""Closing the wishes: the basis of a draw, from them and the slots and users as they are then."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256

from slotlock.domain.booking.booking import BookingLimit, SlotId
from slotlock.domain.booking.booking_refusals import LimitRefusal, OtherBookingRefusal
from slotlock.domain.booking.rules.limits import user_violations
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContext, UserContexts
from slotlock.domain.campaigns.terms import CampaignTerms
from slotlock.domain.draws.basis import (
    DrawBasis,
    DrawMember,
    DrawSlot,
    FormerDraw,
    GroupPlaces,
    build_entry,
    in_order,
    pseudonym_of,
)
from slotlock.domain.draws.draw import Draw
from slotlock.domain.draws.drawing import WishOutcome, WishResult
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
class SeenWishes:
    """When the list was changed that a client replaces; None if the client saw none."""

    changed_at: datetime | None


@value_object
class ClosedWishes:
    """The basis of a draw, and what is not public: the wishes by leaf, the users by pseudonym.

    `ruled_out` has the code of the refusal, by pseudonym, for the users who are not eligible.
    `blocked` has by leaf why wishes are blocked, and `groups` the names of groups by their codes.
    """

    basis: DrawBasis
    wishes: Mapping[str, Wishes]
    users: Mapping[str, UserId]
    ruled_out: Mapping[str, str]
    blocked: Mapping[str, tuple[WishOutcome, ...]]
    groups: Mapping[str, str]


def close_wishes(
    draw: Draw,
    terms: CampaignTerms,
    states: Sequence[SlotState],
    users: UserContexts,
    all_wishes: Iterable[Wishes],
    former: Sequence[FormerDraw],
    salt: str,
    now: datetime,
) -> ClosedWishes:
    """Return the basis of a draw on the slots of its campaign and the contexts of all users.

    Users without a context are banned or gone, and have no part in their entry. The codes of groups
    are in the order of a hash with the salt, which is secret, so that they do not tell the names.
    """
    # A slot that starts before the seed is known gets no users by lot.
    since = max(now, draw.settings.seed_at or now)
    open_states = {each.id: each for each in states if is_open(each.slot, since)}
    # The groups of one slot rule nobody out of the campaign.
    slots = [replace(state.slot, only_for_groups=()) for state in states]
    limited: dict[SlotId, set[str]] = {slot_id: set() for slot_id in open_states}
    by_pseudonym, ruled_out = dict[str, UserId](), dict[str, str]()
    counted: list[tuple[Wishes, list[DrawMember], list[WishOutcome]]] = []
    for wishes in all_wishes:
        wished = [open_states[each].slot for each in wishes.slot_ids if each in open_states]
        members, blocked = list[DrawMember](), list[WishOutcome]()
        for pseudonym, user_id in _by_pseudonym(wishes):
            if (context := users.context_of(user_id)) is None:
                continue
            by_pseudonym[pseudonym] = user_id
            if refusal := _refusal(slots, users, context, now):
                ruled_out[pseudonym] = declarations[type(refusal)].code
                own = [WishOutcome(each.id, WishResult.NOT_ELIGIBLE) for each in wished]
            else:
                own = list(_blocked_wishes(wished, users, context, now))
            blocked += own
            groups = _limited_groups(wished, context, limited)
            had = _had(context, terms, now) if terms.max_bookings is not None else 0
            members.append(DrawMember(pseudonym, groups, had, tuple(each.slot_id for each in own)))
        if members:
            counted.append((wishes, members, blocked))
    codes = _group_codes(limited, salt)
    entries, by_leaf = [], dict[str, Wishes]()
    reasons: dict[str, tuple[WishOutcome, ...]] = {}
    for wishes, members, blocked in counted:
        coded = [
            replace(each, groups=tuple(map(codes.__getitem__, each.groups))) for each in members
        ]
        entry = build_entry(coded, wishes.slot_ids)
        entries.append(entry)
        by_leaf[entry.leaf], reasons[entry.leaf] = wishes, tuple(blocked)
    basis = DrawBasis(
        draw.id,
        draw.campaign_id,
        draw.settings.method,
        terms.max_bookings,
        terms.forbid_overlap,
        tuple(_to_draw_slot(each, limited[each.id], codes) for each in open_states.values()),
        tuple(entries),
        draw.announcement,
        draw.public_acts,
        tuple(former),
        draw.settings.record_for,
    )
    by_code = {code: name for name, code in codes.items()}
    return ClosedWishes(in_order(basis), by_leaf, by_pseudonym, ruled_out, reasons, by_code)


def _limited_groups(
    wished: Iterable[Slot], context: UserContext, limited: Mapping[SlotId, set[str]]
) -> tuple[str, ...]:
    """Return the groups of a user that a wished slot limits, and add them to those of the slot."""
    own = set[str]()
    for slot in wished:
        found = {name for name in context.groups if slot.limit_of_group(name) is not None}
        limited[slot.id].update(found)
        own |= found
    return tuple(name for name in context.groups if name in own)


def _group_codes(limited: Mapping[SlotId, set[str]], salt: str) -> Mapping[str, str]:
    """Return codes for groups, whose order says nothing without the salt."""
    names = {group for groups in limited.values() for group in groups}
    secret = sorted(names, key=lambda name: sha256(f"{salt} {name}".encode()).hexdigest())
    return {name: f"g{n}" for n, name in enumerate(secret, start=1)}


def promised_places(basis: DrawBasis) -> Mapping[SlotId, int]:
    """Return how many free places each slot had when the wishes closed."""
    return {slot.id: slot.capacity - slot.booked for slot in basis.slots}


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


def is_open(slot: Slot, now: datetime) -> bool:
    """Return whether users can get places in a slot of the campaign."""
    return slot.status is SlotStatus.PUBLISHED and now < slot.start


def _to_draw_slot(state: SlotState, names: Iterable[str], codes: Mapping[str, str]) -> DrawSlot:
    slot, counts = state.slot, state.group_counts or {}
    groups = (
        GroupPlaces(codes[name], limit, counts.get(name, 0))
        for name in names
        if (limit := slot.limit_of_group(name)) is not None
    )
    return DrawSlot(
        slot.id,
        slot.title,
        slot.capacity,
        state.booked_count,
        slot.choice_group,
        tuple(sorted(groups, key=lambda each: int(each.group[1:]))),
        slot.all_meetings,
    )


def _by_pseudonym(wishes: Wishes) -> list[tuple[str, UserId]]:
    return sorted((pseudonym_of(wishes.salt, user_id), user_id) for user_id in wishes.user_ids)


def _had(context: UserContext, terms: CampaignTerms, now: datetime) -> int:
    """Return how many bookings a user has in the campaign."""
    return sum(
        other.slot.terms is not None
        and other.slot.terms.campaign_id == terms.campaign_id
        and not other.booking.is_expired_at(now)
        for other in context.bookings
    )


def _blocked_wishes(
    wished: Sequence[Slot], users: UserContexts, context: UserContext, now: datetime
) -> Iterator[WishOutcome]:
    """Yield the wishes that groups or earlier bookings rule out, whatever the lots are."""
    booked = {other.slot.id for other in context.bookings if not other.booking.is_expired_at(now)}
    for slot in wished:
        if slot.id in booked:
            yield WishOutcome(slot.id, WishResult.ALREADY_BOOKED)
            continue
        if not slot.is_for(context.groups):
            yield WishOutcome(slot.id, WishResult.NOT_ELIGIBLE)
            continue
        violations = user_violations(slot, users, context.user_id, now) if booked else ()
        for limit, refusal in violations:
            if limit in _BLOCKING and isinstance(refusal, OtherBookingRefusal):
                conflict = refusal.booking.slot_id if refusal.booking else None
                yield WishOutcome(slot.id, _BLOCKING[limit], conflict=conflict)
                break


_BLOCKING = {
    BookingLimit.ONE_OF_CHOICE: WishResult.LIMIT,
    BookingLimit.TIME_CONFLICT: WishResult.TIME_CONFLICT,
}


def _refusal(
    slots: Iterable[Slot], users: UserContexts, context: UserContext, now: datetime
) -> LimitRefusal | None:
    """Return why the user may not book in the campaign, of which every slot has the terms."""
    # A slot that the user has booked would not count a no-show there.
    booked = {other.slot.id for other in context.bookings}
    slot = next((slot for slot in slots if slot.id not in booked), None)
    violations = user_violations(slot, users, context.user_id, now) if slot else ()
    return next((refusal for limit, refusal in violations if limit.is_of_user), None)
