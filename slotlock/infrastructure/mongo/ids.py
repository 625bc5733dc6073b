"""New ids. They grow with time, so that newer objects sort after older ones."""

import os
import secrets
from itertools import count
from time import time

from slotlock.domain.booking.booking import BookingId, SlotId, WaitlistEntryId
from slotlock.domain.booking.slot import SeriesId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.teams.team import TeamId


class _ObjectIds:
    """Makes the hexadecimal form of new ObjectIds in a third of the time of `str(ObjectId())`.

    An ObjectId is the time in seconds (4 bytes), a random number of the process (5 bytes) and a
    counter (3 bytes): https://www.mongodb.com/docs/manual/reference/bson-types/#objectid
    """

    def __init__(self) -> None:
        self._draw_process_number()
        os.register_at_fork(after_in_child=self._draw_process_number)

    def _draw_process_number(self) -> None:
        self._process_number = secrets.token_hex(5)
        self._counter = count(secrets.randbits(24))

    def next_hex(self) -> str:
        """Return 24 hexadecimal digits."""
        return f"{int(time()):08x}{self._process_number}{next(self._counter) & 0xFFFFFF:06x}"


_object_ids = _ObjectIds()


def new_slot_id() -> SlotId:
    """Return an id for a new slot."""
    return SlotId(_object_ids.next_hex())


def new_booking_id() -> BookingId:
    """Return an id for a new booking."""
    return BookingId(_object_ids.next_hex())


def new_waitlist_entry_id() -> WaitlistEntryId:
    """Return an id for a new waitlist entry."""
    return WaitlistEntryId(_object_ids.next_hex())


def new_series_id() -> SeriesId:
    """Return an id for a new series."""
    return SeriesId(_object_ids.next_hex())


def new_team_id() -> TeamId:
    """Return an id for a new team."""
    return TeamId(_object_ids.next_hex())


def new_campaign_id() -> CampaignId:
    """Return an id for a new campaign."""
    return CampaignId(_object_ids.next_hex())
