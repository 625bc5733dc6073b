"""What every act works with, built once by the lifespan and handed on."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from slotlock.infrastructure.mongo.campaigns.repository import CampaignRepository
from slotlock.infrastructure.mongo.idempotency_records import IdempotencyRecords
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.slots.resources import ResourceRepository
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.infrastructure.mongo.teams import TeamRepository
from slotlock.infrastructure.mongo.users.repository import UserRepository
from slotlock.infrastructure.mongo.write_probe import WriteProbe
from slotlock.infrastructure.redis.admission.queue import AdmissionQueue
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.redis.slot_events import SlotEventBus
from slotlock.services.live.availability import AvailabilityHub
from slotlock.services.live.booking_events import BookingEventHub
from slotlock.services.live.ticket_updates import TicketHub
from slotlock.services.wait_queue import WaitQueues


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
