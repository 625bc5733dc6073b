"""The repositories, locks and hubs that every use case works with, built once at startup."""

from collections.abc import Callable
from datetime import UTC, datetime

from slotlock.domain.schedule.periods import Period
from slotlock.domain.site.site import NO_SETTINGS, SiteValues
from slotlock.infrastructure.mongo.change_stream.change_feed import ChangeFeed
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.draws.demand import DemandCache
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.redis.admission.admission_queue import AdmissionQueue
from slotlock.infrastructure.redis.admission.ticket_index import KeyReservations, TicketIndex
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import RedisClient
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.redis.slot_events import SlotEventBus
from slotlock.infrastructure.shared_change_feed import SharedChangeFeed
from slotlock.services.caller_queues import CallerQueues
from slotlock.services.free_place_hints import FreePlaceHints
from slotlock.services.key_locks import KeyLocks
from slotlock.services.live.availability_hub import AvailabilityHub
from slotlock.services.live.booking_event_hub import BookingEventHub
from slotlock.services.live.campaign_hub import CampaignHub
from slotlock.services.live.campaign_slots import CampaignSlotsHub
from slotlock.services.live.statistics_hub import StatisticsHub
from slotlock.services.live.ticket_hub import TicketHub
from slotlock.services.live.waitlist_hub import WaitlistHub
from slotlock.services.previews import Previews
from slotlock.services.site.current_site import READ_AGAIN_AFTER, CurrentSite, SharedRead
from slotlock.services.slot_command import SlotCommand


def utc_now() -> datetime:
    """Return the current time in milliseconds, which is what MongoDB stores."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


class Services(Repositories):
    """The source of truth in MongoDB, the coordination through Redis, and the live updates."""

    def __init__(
        self,
        database: Database,
        redis: RedisClient,
        pipeline: AutoPipeline,
        admission_queue: AdmissionQueue,
        now: Callable[[], datetime] = utc_now,
        *,
        require_verified_email: bool = False,
        sends_mail: bool = False,
        site: SiteValues = NO_SETTINGS,
    ) -> None:
        """Wire the repositories, the locks and the hubs of a process. Nothing is started yet.

        `site` is what the settings say of the site.
        """
        super().__init__(database, require_verified_email=require_verified_email)
        self.now = now
        self.require_verified_email = require_verified_email
        self.sends_mail = sends_mail
        self.site = CurrentSite(self.site_values, site, now)
        self.periods = SharedRead[tuple[Period, ...]](
            self.period_list.find, (), READ_AGAIN_AFTER, now
        )
        self.locks = Locks(pipeline)
        self.free_place_hints = FreePlaceHints()
        self.caller_queues = CallerQueues[SlotCommand[object]](
            self.locks, self.free_place_hints.burst_quota
        )
        self.previews = Previews(self.slots, now)
        self.admission_queue = admission_queue
        self.demand = DemandCache(self.wishes, now)
        self.key_reservations = KeyReservations(admission_queue.pipeline)
        self.key_locks = KeyLocks(self.locks, self.idempotency_records, self.key_reservations)
        self.ticket_index = TicketIndex(pipeline)
        self.availability = AvailabilityHub(self.slots, now)
        self.campaign_slots = CampaignSlotsHub(self.campaigns, self.availability, now)
        self.campaign_changes = CampaignHub(self.campaigns, now)
        self.live_statistics = StatisticsHub(self.campaigns, self.campaign_statistics, now)
        self.booking_events = BookingEventHub(self.slots, self.ended_bookings, self.audit_log, now)
        self.ticket_updates = TicketHub()
        self.waitlist_positions = WaitlistHub(self.waitlists, now)
        self.change_feed = SharedChangeFeed(ChangeFeed(self.change_stream), pipeline)
        self.slot_events = SlotEventBus(
            redis,
            pipeline,
            on_availability=self.availability.publish,
            on_booking_changed=self.booking_events.notify,
            on_queue_advanced=self.ticket_updates.on_queue_advanced,
        )
