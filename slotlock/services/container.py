"""The repositories, locks and hubs that every use case works with, built once at startup."""

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
from slotlock.services.commands.command import SlotCommand
from slotlock.services.live.availability import AvailabilityHub
from slotlock.services.live.booking_events import BookingEventHub
from slotlock.services.live.ticket_updates import TicketHub
from slotlock.services.wait_queue import WaitQueues


def utc_now() -> datetime:
    """Return the current time in milliseconds, which is what MongoDB stores."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


@dataclass(frozen=True, slots=True)
class Services:
    """The source of truth in MongoDB, the coordination through Redis, and the live updates."""

    slots: SlotRepository
    slot_writer: SlotWriter
    idempotency_records: IdempotencyRecords
    users: UserRepository
    teams: TeamRepository
    campaigns: CampaignRepository
    resources: ResourceRepository
    write_probe: WriteProbe
    locks: Locks
    wait_queues: WaitQueues[SlotCommand[object]]
    admission_queue: AdmissionQueue
    availability: AvailabilityHub
    booking_events: BookingEventHub
    ticket_updates: TicketHub
    slot_events: SlotEventBus
    now: Callable[[], datetime] = utc_now
