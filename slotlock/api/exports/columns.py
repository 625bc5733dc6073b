"""The cells of a roster: what each column says, whatever the form of the file."""

from datetime import UTC, datetime

from slotlock.domain.booking.slot import Slot
from slotlock.domain.reports.roster import Roster, RosterRow
from slotlock.domain.schedule.zones import find_zone

# A column's name for programs, its name for people, and its width in characters.
BOOKING_COLUMNS = (
    ("slot", "Slot", 28),
    ("start", "Start (local)", 17),
    ("end", "End (local)", 17),
    ("time_zone", "Time zone", 18),
    ("location", "Location", 20),
    ("name", "Name", 24),
    ("email", "Address", 30),
    ("groups", "Groups", 18),
    ("status", "Status", 12),
    ("held_until", "Held until (local)", 20),
    ("created_at", "Created at (local)", 20),
    ("created_by", "Created by", 24),
    ("waiting_since", "Waiting since (local)", 21),
    ("overridden_limits", "Overridden limits", 24),
)
SUMMARY_COLUMNS = (
    ("Slot", 28),
    ("Start (local)", 17),
    ("End (local)", 17),
    ("Time zone", 18),
    ("Location", 20),
    ("Status", 12),
    ("Places", 9),
    ("Confirmed", 11),
    ("Held", 9),
    ("Cancelled", 11),
    ("Waiting", 9),
    ("Free", 9),
    ("Sheet", 32),
)

Cell = str | int | datetime | None


def slot_cells(slot: Slot) -> tuple[Cell, ...]:
    """The first columns, which are the same for all bookings of a slot."""
    start, end = to_local_time(slot.start, slot.time_zone), to_local_time(slot.end, slot.time_zone)
    return slot.title, start, end, slot.time_zone, slot.location


def booking_cells(row: RosterRow, time_zone: str) -> tuple[Cell, ...]:
    """The other columns; times as they are shown in the slot's zone."""
    return (
        row.name,
        row.email,
        ";".join(row.groups),
        row.status.name,
        row.held_until and to_local_time(row.held_until, time_zone),
        to_local_time(row.created_at, time_zone),
        row.made_by,
        row.waited_since and to_local_time(row.waited_since, time_zone),
        ";".join(limit.name for limit in row.overridden_limits),
    )


def summary_cells(roster: Roster, sheet_name: str) -> tuple[Cell, ...]:
    """A slot in the summary, with the sheet that its bookings are in."""
    counts = roster.counts
    return (
        *slot_cells(roster.slot),
        roster.slot.status.name,
        counts.places,
        counts.confirmed,
        counts.held,
        counts.cancelled,
        counts.waiting,
        counts.free,
        sheet_name,
    )


def to_local_time(instant: datetime, time_zone: str) -> datetime:
    """The time in a zone, to the second; in UTC where the calendar ends before the zone does."""
    whole = instant.replace(microsecond=0)
    try:
        return whole.astimezone(find_zone(time_zone) or UTC)
    except OverflowError:
        return whole
