"""The facts and parts of slots that an operation selects."""

from functools import lru_cache

from slotlock.domain.slots.fields import SLOT_FIELDS
from slotlock.domain.slots.listing import SlotSelection
from slotlock.graphql.context import Info
from slotlock.graphql.core.node import selected_names

# The facts that each field of a slot shows. Fields of other types may have the same names.
FACTS_OF_FIELDS = {field.api_name: {field.name} for field in SLOT_FIELDS if field.api_name} | {
    "meetings": {"meetings", "start", "end"},
    "resources": {"resource", "several_resources"},
    "series": {"series_id"},
    "seriesId": {"series_id"},
    "campaign": {"terms"},
    "version": {"version"},
    "bookedBy": {"capacity"},
    "checkInQr": {"title"},
}


def slot_selection(info: Info) -> SlotSelection:
    """Return the facts and parts of slots that are selected anywhere below the resolved field."""
    return select_parts(selected_names(info._raw_info))


@lru_cache(maxsize=1_000)
def select_parts(names: frozenset[str]) -> SlotSelection:
    """Return the facts and parts of slots that fields with these names show."""
    return SlotSelection(
        facts=frozenset().union(*(FACTS_OF_FIELDS.get(name, ()) for name in names)),
        remaining="remaining" in names or "isBooked" in names,
        my_booking="myBooking" in names,
        my_waitlist_entry="myWaitlistEntry" in names,
        waitlist_length="waitlistLength" in names,
        booked_by="bookedBy" in names,
    )
