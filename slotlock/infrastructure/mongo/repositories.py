"""All repositories on one database, wired to the concurrency limiters that they share."""

from dataclasses import dataclass

from slotlock.infrastructure.mongo.audit.log import ENDED_WAITLIST_ENTRY_INDEXES, AuditLogQueries
from slotlock.infrastructure.mongo.audit.notes import AUDIT_NOTE_INDEXES
from slotlock.infrastructure.mongo.campaigns.repository import CAMPAIGN_INDEXES, CampaignRepository
from slotlock.infrastructure.mongo.campaigns.statistics import CampaignStatisticsQueries
from slotlock.infrastructure.mongo.campaigns.unplaced import UnplacedUserQueries
from slotlock.infrastructure.mongo.changes.stream import ChangeStream
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter
from slotlock.infrastructure.mongo.descriptions import DescriptionQueries
from slotlock.infrastructure.mongo.idempotency.records import (
    IDEMPOTENCY_RECORD_INDEXES,
    IdempotencyRecords,
)
from slotlock.infrastructure.mongo.indexes.builder import IndexBuilder
from slotlock.infrastructure.mongo.indexes.index import RequiredIndexes
from slotlock.infrastructure.mongo.resources.repository import RESOURCE_INDEXES, ResourceRepository
from slotlock.infrastructure.mongo.slots.documents import SLOT_INDEXES
from slotlock.infrastructure.mongo.slots.ended_bookings import (
    ENDED_BOOKING_INDEXES,
    EndedBookingRepository,
)
from slotlock.infrastructure.mongo.slots.list_field_repairs import ListFieldRepairs
from slotlock.infrastructure.mongo.slots.reads.calendar_slots import CalendarSlotQueries
from slotlock.infrastructure.mongo.slots.reads.waitlists import WaitlistQueries
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.slots.writing.writer import SlotWriter
from slotlock.infrastructure.mongo.teams import TEAM_INDEXES, TeamRepository
from slotlock.infrastructure.mongo.users.account_updates import BanWriter, PasswordWriter
from slotlock.infrastructure.mongo.users.administration import AccountAdministration
from slotlock.infrastructure.mongo.users.calendar_tokens import CalendarTokenRepository
from slotlock.infrastructure.mongo.users.documents import USER_INDEXES
from slotlock.infrastructure.mongo.users.erasures import ERASURE_INDEXES, ErasureRepository
from slotlock.infrastructure.mongo.users.imports import UserImportWriter
from slotlock.infrastructure.mongo.users.invitations import InvitationRepository
from slotlock.infrastructure.mongo.users.repository import UserRepository
from slotlock.infrastructure.mongo.users.sessions import (
    SESSION_INDEXES,
    SESSION_VERSION_INDEXES,
    SessionRepository,
)
from slotlock.infrastructure.mongo.users.waitlist_groups import (
    GROUP_UPDATE_INDEXES,
    WaitlistGroupSync,
)
from slotlock.infrastructure.mongo.write_probe import WriteProbe

INDEXES = (
    *SLOT_INDEXES,
    *ENDED_BOOKING_INDEXES,
    *ENDED_WAITLIST_ENTRY_INDEXES,
    *AUDIT_NOTE_INDEXES,
    *IDEMPOTENCY_RECORD_INDEXES,
    *TEAM_INDEXES,
    *RESOURCE_INDEXES,
    *CAMPAIGN_INDEXES,
    *USER_INDEXES,
    *GROUP_UPDATE_INDEXES,
    *SESSION_INDEXES,
    *SESSION_VERSION_INDEXES,
    *ERASURE_INDEXES,
)


@dataclass(frozen=True, slots=True)
class Repositories:
    """Everything that reads and writes the database of a process."""

    slots: SlotRepository
    slot_writer: SlotWriter
    change_stream: ChangeStream
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
    password_writer: PasswordWriter
    administration: AccountAdministration
    erasures: ErasureRepository
    invitations: InvitationRepository
    user_imports: UserImportWriter
    calendar_tokens: CalendarTokenRepository
    waitlist_groups: WaitlistGroupSync
    sessions: SessionRepository
    write_probe: WriteProbe
    indexes: IndexBuilder


def repositories_on(database: Database) -> Repositories:
    """Return the repositories on a database. Those that read long lists share their limiters."""
    slots, campaigns = SlotRepository(database), CampaignRepository(database)
    list_field_repairs = ListFieldRepairs(database)
    waitlist_groups = WaitlistGroupSync(database)
    required = RequiredIndexes()
    users = UserRepository(database, waitlist_groups, required)
    resources = ResourceRepository(database, required)
    # A report takes long: one at a time leaves room for lists and for other campaigns.
    audit_limiter = ConcurrencyLimiter(1, within=slots.list_limiter)
    report_limiter = ConcurrencyLimiter(1, within=campaigns.limiter)
    return Repositories(
        slots=slots,
        slot_writer=SlotWriter(database),
        change_stream=ChangeStream(database),
        ended_bookings=EndedBookingRepository(database, slots.list_limiter),
        list_field_repairs=list_field_repairs,
        waitlists=WaitlistQueries(database, slots.limiter),
        calendar_slots=CalendarSlotQueries(database, slots.list_limiter),
        descriptions=DescriptionQueries(database, slots.list_limiter),
        resources=resources,
        idempotency_records=IdempotencyRecords(database),
        teams=TeamRepository(database, required),
        campaigns=campaigns,
        campaign_statistics=CampaignStatisticsQueries(database, report_limiter),
        unplaced_users=UnplacedUserQueries(database, report_limiter),
        audit_log=AuditLogQueries(database, audit_limiter),
        users=users,
        bans=BanWriter(database, users.limiter),
        password_writer=PasswordWriter(database, users.limiter),
        administration=AccountAdministration(database, users.limiter, required),
        erasures=ErasureRepository(database),
        invitations=InvitationRepository(database, users.limiter, users.list_limiter),
        user_imports=UserImportWriter(database, users.list_limiter, waitlist_groups, required),
        calendar_tokens=CalendarTokenRepository(database, users.limiter),
        waitlist_groups=waitlist_groups,
        sessions=SessionRepository(database),
        write_probe=WriteProbe(database),
        indexes=IndexBuilder(
            database,
            INDEXES,
            required,
            (users.repair_search_words, list_field_repairs.backfill, resources.backfill),
        ),
    )
