"""The columns of a roster and the cells of each row, for both file formats."""

from datetime import UTC, datetime

from slotlock.domain.booking.slot import Slot
from slotlock.domain.reports.roster import Roster, RosterRow, WaitingRow
from slotlock.domain.schedule.zones import find_zone

# The name of a column in CSV, its title in Excel, and its width in characters.
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
    ("attendance", "Attendance", 15),
    ("checked_in_at", "Checked in at (local)", 21),
)
# The last column of every format and sheet, because columns keep their positions.
RESOURCES_COLUMN = ("resources", "Resources", 28)
WAITING_STATUS = "WAITING"
WAITING_COLUMNS = (
    ("Slot", 28),
    ("Start (local)", 17),
    ("End (local)", 17),
    ("Time zone", 18),
    ("Location", 20),
    ("Position", 9),
    ("Name", 24),
    ("Address", 30),
    ("Groups", 18),
    ("Waiting since (local)", 21),
    ("Put on the list by", 24),
    RESOURCES_COLUMN[1:],
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
    RESOURCES_COLUMN[1:],
)

Cell = str | int | datetime | None


def slot_cells(slot: Slot) -> tuple[Cell, ...]:
    """Return the first cells of a row, which all bookings of a slot share."""
    start, end = to_local_time(slot.start, slot.time_zone), to_local_time(slot.end, slot.time_zone)
    return slot.title, start, end, slot.time_zone, slot.location


def resources_cell(slot: Slot) -> str:
    """Return the last cell of a row, which all bookings of a slot share."""
    return ";".join(slot.resources)


def booking_cells(row: RosterRow, time_zone: str) -> tuple[Cell, ...]:
    """Return the other cells of a row; times are in the zone of the slot."""
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
        row.attendance.name,
        row.checked_in_at and to_local_time(row.checked_in_at, time_zone),
    )


def waiting_booking_cells(row: WaitingRow, time_zone: str) -> tuple[Cell, ...]:
    """Return the cells of a user who waits, in the columns of bookings and the position."""
    return (
        row.name,
        row.email,
        ";".join(row.groups),
        WAITING_STATUS,
        None,
        None,
        row.waitlisted_by,
        to_local_time(row.since, time_zone),
        None,
        None,
        None,
        row.position,
    )


def waiting_cells(row: WaitingRow, time_zone: str) -> tuple[Cell, ...]:
    """Return the cells of a user who waits, in the columns of the sheet of waiting lists."""
    return (
        row.position,
        row.name,
        row.email,
        ";".join(row.groups),
        to_local_time(row.since, time_zone),
        row.waitlisted_by,
    )


def summary_cells(roster: Roster, sheet_name: str) -> tuple[Cell, ...]:
    """Return the row of a slot in the summary; `sheet_name` holds its bookings."""
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
        resources_cell(roster.slot),
    )


def to_local_time(instant: datetime, time_zone: str) -> datetime:
    """Return the time in a zone to the second; in UTC if the local year is out of range."""
    seconds = instant.replace(microsecond=0)
    try:
        return seconds.astimezone(find_zone(time_zone) or UTC)
    except OverflowError:
        return seconds
