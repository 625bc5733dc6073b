"""Rules for booking the slots of a series in one request."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from slotlock.domain.booking.availability import is_visible
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import Decision, LoadedState, accept, refuse
from slotlock.domain.booking.outcomes import Booked, NoneBooked, SeriesBooked
from slotlock.domain.booking.refusals import (
    NothingToBook,
    SeriesNotFound,
    SeriesRefusal,
    SeriesTooLong,
)
from slotlock.domain.booking.rules.book import SlotClaim, book_each, none_booked
from slotlock.domain.booking.slot import SeriesId, Slot, SlotStatus
from slotlock.domain.users.user import Caller

# They are one transaction, and their outcome with the terms of each slot is one document.
MAX_SERIES_CLAIMS = 100


class SeriesMode(StrEnum):
    """Which slots of a series to book."""

    ALL_OR_NONE = "all_or_none"
    WHAT_IS_FREE = "what_is_free"


def slots_to_book(
    series_id: SeriesId, slots: Sequence[Slot], caller: Caller, now: datetime
) -> tuple[SlotId, ...] | SeriesRefusal:
    """Return the slots of a series that have not started, in the given order.

    Cancelled slots and drafts are left out.
    """
    visible = [slot for slot in slots if is_visible(slot, caller)]
    if not visible:
        return SeriesNotFound(series_id)
    claimed = tuple(
        slot.id for slot in visible if slot.status is SlotStatus.PUBLISHED and slot.start > now
    )
    if not claimed:
        return NothingToBook(series_id)
    if len(claimed) > MAX_SERIES_CLAIMS:
        return SeriesTooLong(series_id, len(claimed), MAX_SERIES_CLAIMS)
    return claimed


def book_series(
    loaded: LoadedState, claims: Sequence[SlotClaim], mode: SeriesMode, now: datetime
) -> Decision[SeriesBooked | NoneBooked]:
    """Book every slot of a series or none, or each that can be booked after those before it."""
    outcomes, changed = book_each(loaded, claims, now)
    booked_count = sum(isinstance(outcome, Booked) for outcome in outcomes)
    needed_count = len(claims) if mode is SeriesMode.ALL_OR_NONE else 1
    if booked_count >= needed_count:
        return accept(SeriesBooked(tuple(outcomes)), *changed)
    return refuse(none_booked(outcomes, claims))
