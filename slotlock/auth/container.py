"""What finding out who asks works with, built once by the lifespan and handed on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from slotlock.auth.login_throttle import LoginThrottle
from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.session_streams import SessionStreams
from slotlock.auth.tokens import TokenClaims, TokenSigner
from slotlock.infrastructure.mongo.users.repository import UserRepository
from slotlock.infrastructure.mongo.users.sessions import SessionRepository


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
