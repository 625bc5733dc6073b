"""Rosters of users with given names."""

from collections.abc import Sequence

from slotlock.domain.booking.booking import BookingStatus
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.reports.roster import PlaceCounts, Roster, RosterRow
from tests.support.domain.builders import NOW, build_slot


def roster_of(
    title: str, names: Sequence[str], status: SlotStatus = SlotStatus.PUBLISHED
) -> Roster:
    """Return the roster of a slot that is full with confirmed bookings of these users."""
    slot = build_slot(max(len(names), 1), title=title, status=status).slot
    rows = tuple(
        RosterRow(name, "", (), BookingStatus.CONFIRMED, None, NOW, None, None, ())
        for name in names
    )
    return Roster(slot, NOW, rows, (), PlaceCounts())
