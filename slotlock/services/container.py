"""The repositories, locks and hubs that every use case works with, built once at startup."""

from collections.abc import Callable
from datetime import UTC, datetime

from slotlock.domain.shared.values import value_object
from slotlock.infrastructure.mongo.audit.log import AuditLogQueries
from slotlock.infrastructure.mongo.campaigns.repository import CampaignRepository
from slotlock.infrastructure.mongo.campaigns.statistics import CampaignStatisticsQueries
from slotlock.infrastructure.mongo.campaigns.unplaced import UnplacedUserQueries
from slotlock.infrastructure.mongo.changes.feed import ChangeFeed
from slotlock.infrastructure.mongo.descriptions import DescriptionQueries
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecords
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.resources.repository import ResourceRepository
from slotlock.infrastructure.mongo.slots.ended_bookings import EndedBookingRepository
from slotlock.infrastructure.mongo.slots.list_field_repairs import ListFieldRepairs
from slotlock.infrastructure.mongo.slots.reads.calendar_slots import CalendarSlotQueries
from slotlock.infrastructure.mongo.slots.reads.waitlists import WaitlistQueries
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.slots.writing.writer import SlotWriter
from slotlock.infrastructure.mongo.teams import TeamRepository
from slotlock.infrastructure.mongo.users.account_updates import BanWriter
from slotlock.infrastructure.mongo.users.erasures import ErasureRepository
from slotlock.infrastructure.mongo.users.repository import UserRepository
from slotlock.infrastructure.mongo.users.waitlist_groups import WaitlistGroupSync
from slotlock.infrastructure.mongo.write_probe import WriteProbe
from slotlock.infrastructure.redis.admission.key_reservations import KeyReservations
from slotlock.infrastructure.redis.admission.queue import AdmissionQueue
from slotlock.infrastructure.redis.admission.ticket_index import TicketIndex
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import RedisClient
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.redis.slot_events import SlotEventBus
from slotlock.infrastructure.shared_change_feed import SharedChangeFeed
from slotlock.services.free_place_hints import FreePlaceHints
from slotlock.services.live.availability import AvailabilityHub
from slotlock.services.live.booking_events import BookingEventHub
from slotlock.services.live.ticket_updates import TicketHub
from slotlock.services.live.waitlist_positions import WaitlistHub
from slotlock.services.previews import Previews
from slotlock.services.slot_command import SlotCommand
from slotlock.services.wait_queue import WaitQueues


def utc_now() -> datetime:
    """Return the current time in milliseconds, which is what MongoDB stores."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


@value_object
class Services:
    """The source of truth in MongoDB, the coordination through Redis, and the live updates."""

    slots: SlotRepository
    slot_writer: SlotWriter
    ended_bookings: EndedBookingRepository
    list_field_repairs: ListFieldRepairs
    waitlists: WaitlistQueries
    calendar_slots: CalendarSlotQueries
    descriptions: DescriptionQueries
    resources: ResourceRepository
    idempotency_records: IdempotencyRecords
    teams: TeamRepository
    campaigns: CampaignRepository
    campaign_statistics: CampaignStatisticsQueries
    unplaced_users: UnplacedUserQueries
    audit_log: AuditLogQueries
    users: UserRepository
    bans: BanWriter
    erasures: ErasureRepository
    waitlist_groups: WaitlistGroupSync
    write_probe: WriteProbe
    locks: Locks
    wait_queues: WaitQueues[SlotCommand[object]]
    free_place_hints: FreePlaceHints
    previews: Previews
    admission_queue: AdmissionQueue
    key_reservations: KeyReservations
    ticket_index: TicketIndex
    availability: AvailabilityHub
    booking_events: BookingEventHub
    ticket_updates: TicketHub
    waitlist_positions: WaitlistHub
    change_feed: SharedChangeFeed
    slot_events: SlotEventBus
    now: Callable[[], datetime] = utc_now


def build_services(
    repositories: Repositories,
    redis: RedisClient,
    pipeline: AutoPipeline,
    admission_queue: AdmissionQueue,
    now: Callable[[], datetime] = utc_now,
) -> Services:
    """Wire the repositories, the locks and the hubs of a process. Nothing is started yet."""
    locks = Locks(pipeline)
    free_place_hints = FreePlaceHints(now)
    availability = AvailabilityHub(repositories.slots, now)
    booking_events = BookingEventHub(
        repositories.slots, repositories.ended_bookings, repositories.audit_log, now
    )
    ticket_updates = TicketHub()
    return Services(
        slots=repositories.slots,
        slot_writer=repositories.slot_writer,
        ended_bookings=repositories.ended_bookings,
        list_field_repairs=repositories.list_field_repairs,
        waitlists=repositories.waitlists,
        calendar_slots=repositories.calendar_slots,
        descriptions=repositories.descriptions,
        resources=repositories.resources,
        idempotency_records=repositories.idempotency_records,
        teams=repositories.teams,
        campaigns=repositories.campaigns,
        campaign_statistics=repositories.campaign_statistics,
        unplaced_users=repositories.unplaced_users,
        audit_log=repositories.audit_log,
        users=repositories.users,
        bans=repositories.bans,
        erasures=repositories.erasures,
        waitlist_groups=repositories.waitlist_groups,
        write_probe=repositories.write_probe,
        locks=locks,
        wait_queues=WaitQueues(locks, free_place_hints.burst_quota),
        free_place_hints=free_place_hints,
        previews=Previews(repositories.slots, now),
        admission_queue=admission_queue,
        key_reservations=KeyReservations(admission_queue.pipeline),
        ticket_index=TicketIndex(pipeline),
        availability=availability,
        booking_events=booking_events,
        ticket_updates=ticket_updates,
        waitlist_positions=WaitlistHub(repositories.waitlists, now),
        change_feed=SharedChangeFeed(ChangeFeed(repositories.change_stream), pipeline),
        slot_events=SlotEventBus(
            redis,
            pipeline,
            on_availability=availability.publish,
            on_booking_changed=booking_events.notify,
            on_queue_advanced=ticket_updates.on_queue_advanced,
        ),
        now=now,
    )
