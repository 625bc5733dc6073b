"""All repositories on one database, wired to the concurrency limiters that they share."""

from slotlock.infrastructure.mongo.audit.audit_log_queries import (
    ENDED_WAITLIST_ENTRY_INDEXES,
    AuditLogQueries,
)
from slotlock.infrastructure.mongo.campaigns.campaign_repository import (
    CAMPAIGN_INDEXES,
    CampaignRepository,
)
from slotlock.infrastructure.mongo.campaigns.eligible_users import EligibleUserQueries
from slotlock.infrastructure.mongo.campaigns.statistics import CampaignStatisticsQueries
from slotlock.infrastructure.mongo.campaigns.unplaced import UnplacedUserQueries
from slotlock.infrastructure.mongo.change_stream.change_stream import ChangeStream
from slotlock.infrastructure.mongo.client import Database, WriteProbe
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter
from slotlock.infrastructure.mongo.draws.draw_repository import DRAW_INDEXES, DrawRepository
from slotlock.infrastructure.mongo.draws.text_repository import TEXT_INDEXES, DrawTextRepository
from slotlock.infrastructure.mongo.draws.wish_repository import WISH_INDEXES, WishRepository
from slotlock.infrastructure.mongo.idempotency.records import (
    IDEMPOTENCY_RECORD_INDEXES,
    IdempotencyRecords,
)
from slotlock.infrastructure.mongo.indexes.index_builder import IndexBuilder
from slotlock.infrastructure.mongo.outbox.announcement_repository import (
    ANNOUNCEMENT_INDEXES,
    AnnouncementRepository,
)
from slotlock.infrastructure.mongo.outbox.scheduled_mail_queries import ScheduledMailQueries
from slotlock.infrastructure.mongo.outbox.slot_changes_reader import SlotChangesReader
from slotlock.infrastructure.mongo.resource_repository import RESOURCE_INDEXES, ResourceRepository
from slotlock.infrastructure.mongo.schedule.holiday_lists import (
    HOLIDAY_LIST_INDEXES,
    HolidayListRepository,
)
from slotlock.infrastructure.mongo.schedule.periods import PeriodRepository
from slotlock.infrastructure.mongo.site.site_repository import SiteRepository
from slotlock.infrastructure.mongo.slots.ended_bookings import (
    ENDED_BOOKING_INDEXES,
    EndedBookingRepository,
)
from slotlock.infrastructure.mongo.slots.reads.calendar_slots import CalendarSlotQueries
from slotlock.infrastructure.mongo.slots.reads.descriptions import DescriptionQueries
from slotlock.infrastructure.mongo.slots.reads.waitlists import WaitlistQueries
from slotlock.infrastructure.mongo.slots.slot_documents import SLOT_INDEXES
from slotlock.infrastructure.mongo.slots.slot_repository import SlotRepository
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.infrastructure.mongo.team_repository import TEAM_INDEXES, TeamRepository
from slotlock.infrastructure.mongo.users.account_repositories import (
    ACCOUNT_INDEXES,
    AccountRepositories,
)

INDEXES = (
    *SLOT_INDEXES,
    *ENDED_BOOKING_INDEXES,
    *ENDED_WAITLIST_ENTRY_INDEXES,
    *IDEMPOTENCY_RECORD_INDEXES,
    *TEAM_INDEXES,
    *RESOURCE_INDEXES,
    *HOLIDAY_LIST_INDEXES,
    *CAMPAIGN_INDEXES,
    *DRAW_INDEXES,
    *WISH_INDEXES,
    *TEXT_INDEXES,
    *ANNOUNCEMENT_INDEXES,
    *ACCOUNT_INDEXES,
)


class Repositories(AccountRepositories):
    """Everything that reads and writes the database of a process.

    With `require_verified_email`, only users with a verified address get places.
    """

    def __init__(self, database: Database, *, require_verified_email: bool = False) -> None:
        super().__init__(database)
        required = self.required_indexes
        self.slots = slots = SlotRepository(database, require_verified_email=require_verified_email)
        self.campaigns = campaigns = CampaignRepository(database)
        # A report takes long: one at a time leaves room for lists and for other campaigns.
        audit_limiter = ConcurrencyLimiter(1, within=slots.list_limiter)
        report_limiter = ConcurrencyLimiter(1, within=campaigns.limiter)
        self.slot_writer = SlotWriter(database)
        self.change_stream = ChangeStream(database)
        self.ended_bookings = EndedBookingRepository(database, slots.list_limiter)
        self.waitlists = WaitlistQueries(database, slots.limiter)
        self.calendar_slots = CalendarSlotQueries(database, slots.list_limiter)
        self.descriptions = DescriptionQueries(database, slots.list_limiter)
        self.resources = ResourceRepository(database, required)
        self.holiday_lists = HolidayListRepository(database, required)
        self.idempotency_records = IdempotencyRecords(database)
        self.teams = TeamRepository(database, required)
        self.campaign_statistics = CampaignStatisticsQueries(database, report_limiter)
        self.eligible_users = EligibleUserQueries(database, report_limiter)
        self.unplaced_users = UnplacedUserQueries(database, report_limiter)
        self.draws = DrawRepository(database, campaigns.limiter, required)
        self.draw_texts = DrawTextRepository(database, campaigns.limiter, required)
        self.wishes = WishRepository(database, campaigns.limiter, required)
        self.audit_log = AuditLogQueries(database, audit_limiter)
        self.slot_changes = SlotChangesReader(database)
        self.scheduled_mails = ScheduledMailQueries(database)
        self.announcements = AnnouncementRepository(database)
        self.site_values = SiteRepository(database)
        self.period_list = PeriodRepository(database, slots.list_limiter)
        self.write_probe = WriteProbe(database)
        backfills = (self.users.backfill_list_fields, self.slot_writer.backfill_list_fields)
        self.indexes = IndexBuilder(database, INDEXES, required, backfills)
