"""The repositories of accounts and sessions on one database, and their indexes."""

from slotlock.infrastructure.mongo.audit.audit_note_repository import AUDIT_NOTE_INDEXES
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.indexes.index import RequiredIndexes
from slotlock.infrastructure.mongo.outbox.outbox_repository import OUTBOX_INDEXES, OutboxRepository
from slotlock.infrastructure.mongo.outbox.webhook_repository import (
    DELIVERY_INDEXES,
    WebhookRepository,
)
from slotlock.infrastructure.mongo.users.account_admin_writer import AccountAdminWriter, BanWriter
from slotlock.infrastructure.mongo.users.account_claims import AccountClaimWriter
from slotlock.infrastructure.mongo.users.credentials import (
    CalendarTokenRepository,
    InvitationRepository,
    PasswordWriter,
)
from slotlock.infrastructure.mongo.users.email_verifications import EmailVerificationRepository
from slotlock.infrastructure.mongo.users.identities import SIGN_IN_INDEXES, IdentityRepository
from slotlock.infrastructure.mongo.users.imports import UserImportWriter
from slotlock.infrastructure.mongo.users.privacy import ERASURE_INDEXES, ErasureRepository
from slotlock.infrastructure.mongo.users.sessions import (
    SESSION_INDEXES,
    SESSION_VERSION_INDEXES,
    SessionRepository,
)
from slotlock.infrastructure.mongo.users.user_documents import USER_INDEXES
from slotlock.infrastructure.mongo.users.user_repository import UserRepository
from slotlock.infrastructure.mongo.users.waitlist_groups import (
    GROUP_UPDATE_INDEXES,
    WaitlistGroupSync,
)

# Those of all collections that these repositories write.
ACCOUNT_INDEXES = (
    *AUDIT_NOTE_INDEXES,
    *USER_INDEXES,
    *GROUP_UPDATE_INDEXES,
    *SESSION_INDEXES,
    *SESSION_VERSION_INDEXES,
    *ERASURE_INDEXES,
    *SIGN_IN_INDEXES,
    *OUTBOX_INDEXES,
    *DELIVERY_INDEXES,
)


class AccountRepositories:
    """Everything that reads and writes accounts; a command line needs no more for its start.

    Those that read long lists share their limiters.
    """

    def __init__(self, database: Database) -> None:
        self.required_indexes = required = RequiredIndexes()
        self.waitlist_groups = WaitlistGroupSync(database)
        self.users = users = UserRepository(database, self.waitlist_groups, required)
        self.outbox = outbox = OutboxRepository(database)
        self.bans = BanWriter(database, users.limiter)
        self.password_writer = PasswordWriter(database, users.limiter, outbox)
        self.account_admin_writer = AccountAdminWriter(database, users.limiter, required, outbox)
        self.account_claims = AccountClaimWriter(database, users.limiter, outbox)
        self.email_verifications = EmailVerificationRepository(
            database, users.limiter, required, outbox
        )
        self.identities = IdentityRepository(database, users.limiter, required, outbox)
        self.erasures = ErasureRepository(database)
        self.invitations = InvitationRepository(database, users.limiter, users.list_limiter, outbox)
        self.user_imports = UserImportWriter(
            database, users.list_limiter, self.waitlist_groups, required
        )
        self.calendar_tokens = CalendarTokenRepository(database, users.limiter)
        self.sessions = SessionRepository(database)
        self.webhooks = WebhookRepository(database)
