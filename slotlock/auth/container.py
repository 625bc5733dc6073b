"""The services that authentication needs, built once per process and passed on."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.session_streams import SessionStreams
from slotlock.auth.tokens import TokenClaims, TokenSigner
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Registration, Role, User
from slotlock.infrastructure.bounded_cache import BoundedCache
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.users.account_repositories import AccountRepositories
from slotlock.infrastructure.tasks import wait_for_event

if TYPE_CHECKING:
    from slotlock.auth.login_throttle import LoginThrottle  # imports the client of Redis
    from slotlock.auth.mails.mail_throttle import MailThrottle, ResetRequest
    from slotlock.auth.providers.connections import SignOn

log = logging.getLogger("slotlock.auth")

DEFAULT_REFRESH_GRACE = timedelta(seconds=30)
MAX_CACHED_TOKENS = 20_000
MAX_CACHED_CHARACTERS = 10_000_000  # an access token has about 400 characters


def _token_cache() -> BoundedCache[TokenClaims]:
    return BoundedCache(MAX_CACHED_TOKENS, MAX_CACHED_CHARACTERS)


def _ended_session_cache() -> BoundedCache[bool]:
    return BoundedCache(MAX_CACHED_TOKENS, MAX_CACHED_CHARACTERS)


@value_object
class Auth:
    """Accounts, sessions, signing keys, the throttles and open streams.

    Without a throttle, every attempt proceeds and every mail leaves: for tests, and for commands
    that no client can reach.
    A refresh token that is sent again within `refresh_grace` of its response gets the same
    successor.
    `registration` says who may create an account or set its first password, and `sends_mail`
    whether users get mails. `background` holds tasks for which no response waits, and
    `waiting_resets` the users of requests for a new password that such a task takes next, None for
    an address without one. `is_finishing` ends the pauses of these tasks.
    `sign_on` has the providers of sign-ins, if there are any. Without `password_sign_in`, members
    sign in only there.
    `verified_tokens` holds the claims of access tokens whose signature was verified, by the
    `Authorization` header with the token.
    `ended_sessions` holds the ids of sessions that MongoDB reported as ended.
    """

    repositories: AccountRepositories
    password_hasher: PasswordHasher
    tokens: TokenSigner
    now: Callable[[], datetime]
    login_throttle: "LoginThrottle | None"
    refresh_grace: timedelta = DEFAULT_REFRESH_GRACE
    registration: Registration = Registration.OPEN
    sends_mail: bool = False
    sign_on: "SignOn | None" = None
    password_sign_in: bool = True
    verified_tokens: BoundedCache[TokenClaims] = field(default_factory=_token_cache)
    ended_sessions: BoundedCache[bool] = field(default_factory=_ended_session_cache)
    session_streams: SessionStreams = field(default_factory=SessionStreams)
    background: set[asyncio.Task[None]] = field(default_factory=set)
    waiting_resets: "list[tuple[User | None, ResetRequest | None]]" = field(default_factory=list)
    is_finishing: asyncio.Event = field(default_factory=asyncio.Event)
    mail_throttle: "MailThrottle | None" = None

    def accepts_password(self, user: User) -> bool:
        """Return whether a password lets this user in."""
        return self.password_sign_in or user.role is not Role.MEMBER

    def run_in_background(self, work: Coroutine[Any, Any, object]) -> None:
        """Run what no response waits for. A failure is logged: users request a mail again."""
        task = asyncio.create_task(_log_failure(work))
        self.background.add(task)
        task.add_done_callback(self.background.discard)

    async def finish_background(self) -> None:
        """Wait for what no response waits for. MongoDB ends each of its commands in time."""
        self.is_finishing.set()
        await asyncio.gather(*self.background)
        self.is_finishing.clear()

    async def pause(self, seconds: float) -> None:
        """Pause a task for which no response waits."""
        await wait_for_event(self.is_finishing, seconds)


async def _log_failure(work: Coroutine[Any, Any, object]) -> None:
    try:
        await work
    except Exception as error:
        log.warning("could not queue a mail", exc_info=None if is_unavailable(error) else error)
