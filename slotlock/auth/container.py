"""The services that authentication needs, built once per process and passed on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from slotlock.auth.login_throttle import LoginThrottle, NoLoginThrottle
from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.session_streams import SessionStreams
from slotlock.auth.tokens import TokenClaims, TokenSigner
from slotlock.domain.users.user import Registration
from slotlock.infrastructure.lru_cache import LRUCache
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.users.account_updates import BanWriter, PasswordWriter
from slotlock.infrastructure.mongo.users.administration import AccountAdministration
from slotlock.infrastructure.mongo.users.calendar_tokens import CalendarTokenRepository
from slotlock.infrastructure.mongo.users.erasures import ErasureRepository
from slotlock.infrastructure.mongo.users.imports import UserImportWriter
from slotlock.infrastructure.mongo.users.invitations import InvitationRepository
from slotlock.infrastructure.mongo.users.repository import UserRepository
from slotlock.infrastructure.mongo.users.sessions import SessionRepository

DEFAULT_REFRESH_GRACE = timedelta(seconds=30)
MAX_CACHED_TOKENS = 20_000
MAX_CACHED_CHARACTERS = 10_000_000  # an access token has about 400 characters


def _token_cache() -> LRUCache[TokenClaims]:
    return LRUCache(MAX_CACHED_TOKENS, MAX_CACHED_CHARACTERS)


def _ended_session_cache() -> LRUCache[bool]:
    return LRUCache(MAX_CACHED_TOKENS, MAX_CACHED_CHARACTERS)


@dataclass(frozen=True, slots=True)
class Auth:
    """Accounts, sessions, signing keys, the login throttle and open streams.

    A refresh token that is sent again within `refresh_grace` of its response gets the same
    successor.
    `registration` says who may create an account or set its first password.
    `verified_tokens` holds the claims of access tokens whose signature was verified, by the
    `Authorization` header with the token.
    `ended_sessions` holds the ids of sessions that MongoDB reported as ended.
    """

    users: UserRepository
    bans: BanWriter
    password_writer: PasswordWriter
    administration: AccountAdministration
    erasures: ErasureRepository
    invitations: InvitationRepository
    user_imports: UserImportWriter
    calendar_tokens: CalendarTokenRepository
    sessions: SessionRepository
    password_hasher: PasswordHasher
    tokens: TokenSigner
    now: Callable[[], datetime]
    login_throttle: LoginThrottle | NoLoginThrottle
    refresh_grace: timedelta
    registration: Registration
    verified_tokens: LRUCache[TokenClaims] = field(default_factory=_token_cache)
    ended_sessions: LRUCache[bool] = field(default_factory=_ended_session_cache)
    session_streams: SessionStreams = field(default_factory=SessionStreams)


def build_auth(
    repositories: Repositories,
    password_hasher: PasswordHasher,
    tokens: TokenSigner,
    now: Callable[[], datetime],
    login_throttle: LoginThrottle | NoLoginThrottle,
    refresh_grace: timedelta = DEFAULT_REFRESH_GRACE,
    registration: Registration = Registration.OPEN,
) -> Auth:
    """Return the services of authentication on these repositories."""
    return Auth(
        users=repositories.users,
        bans=repositories.bans,
        password_writer=repositories.password_writer,
        administration=repositories.administration,
        erasures=repositories.erasures,
        invitations=repositories.invitations,
        user_imports=repositories.user_imports,
        calendar_tokens=repositories.calendar_tokens,
        sessions=repositories.sessions,
        password_hasher=password_hasher,
        tokens=tokens,
        now=now,
        login_throttle=login_throttle,
        refresh_grace=refresh_grace,
        registration=registration,
    )
