"""What finding out who asks works with, built once by the lifespan and handed on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.streams import SessionStreams
from slotlock.auth.throttling import LoginThrottle
from slotlock.auth.tokens import TokenClaims, TokenSigner
from slotlock.stores.sessions import SessionRepository
from slotlock.stores.users import UserRepository


@dataclass(frozen=True, slots=True)
class Auth:
    """Accounts, sessions, the keys that sign, the throttle, and open streams.

    `known`: tokens verified lately. `ended`: ids of sessions that were found to have ended.
    """

    users: UserRepository
    sessions: SessionRepository
    passwords: PasswordHasher
    tokens: TokenSigner
    now: Callable[[], datetime]
    verified_tokens: dict[str, TokenClaims] = field(default_factory=dict)
    ended_sessions: dict[str, None] = field(default_factory=dict)
    login_throttle: LoginThrottle = field(default_factory=LoginThrottle)
    session_streams: SessionStreams = field(default_factory=SessionStreams)
