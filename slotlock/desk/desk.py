"""What every act works with, built once by the lifespan and handed on."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from slotlock.desk.availability import AvailabilityHub
from slotlock.desk.line import WaitQueues
from slotlock.desk.personal import BookingEventHub
from slotlock.desk.ticket_board import TicketHub
from slotlock.stores.announcements import SlotEventBus
from slotlock.stores.answers import IdempotencyRecords
from slotlock.stores.campaigns import CampaignRepository
from slotlock.stores.locks import Locks
from slotlock.stores.queue import AdmissionQueue
from slotlock.stores.resources import ResourceRepository
from slotlock.stores.slots import SlotRepository
from slotlock.stores.teams import TeamRepository
from slotlock.stores.trials import WriteProbe
from slotlock.stores.users import UserRepository
from slotlock.stores.writes import SlotWriter


def utc_now() -> datetime:
    """The time, to the millisecond that MongoDB keeps: answered now as it is read later."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


@dataclass(frozen=True, slots=True)
class Services:
    """The desk: the truth in its stores, who is served next in `locks`, `lines` and `queue`, and
    the notice boards for everyone, for each person and for each ticket."""

    slots: SlotRepository
    slot_writer: SlotWriter
    idempotency_records: IdempotencyRecords
    users: UserRepository
    teams: TeamRepository
    campaigns: CampaignRepository
    resources: ResourceRepository
    write_probe: WriteProbe
    locks: Locks
    wait_queues: WaitQueues
    admission_queue: AdmissionQueue
    availability: AvailabilityHub
    booking_events: BookingEventHub
    ticket_updates: TicketHub
    slot_events: SlotEventBus
    now: Callable[[], datetime] = utc_now
