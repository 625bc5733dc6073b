"""What every act works with, built once by the lifespan and handed on."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from slotlock.desk.availability import AvailabilityBoard
from slotlock.desk.line import Lines
from slotlock.desk.personal import PersonalBoard
from slotlock.desk.ticket_board import TicketBoard
from slotlock.stores.announcements import Announcements
from slotlock.stores.answers import Answers
from slotlock.stores.campaigns import Campaigns
from slotlock.stores.locks import Locks
from slotlock.stores.queue import Queue
from slotlock.stores.resources import Resources
from slotlock.stores.slots import Slots
from slotlock.stores.teams import Teams
from slotlock.stores.trials import Trials
from slotlock.stores.users import Users
from slotlock.stores.writes import Writes


def utc_now() -> datetime:
    """The time, to the millisecond that MongoDB keeps: answered now as it is read later."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


@dataclass(frozen=True, slots=True)
class Desk:
    """The desk: the truth in its stores, who is served next in `locks`, `lines` and `queue`, and
    the notice boards for everyone, for each person and for each ticket."""

    slots: Slots
    writes: Writes
    answers: Answers
    users: Users
    teams: Teams
    campaigns: Campaigns
    resources: Resources
    trials: Trials
    locks: Locks
    lines: Lines
    queue: Queue
    board: AvailabilityBoard
    personal: PersonalBoard
    tickets: TicketBoard
    announcements: Announcements
    now: Callable[[], datetime] = utc_now
