"""What finding out who asks works with, built once by the lifespan and handed on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from slotlock.auth.passwords import Passwords
from slotlock.auth.streams import Streams
from slotlock.auth.throttling import Throttle
from slotlock.auth.tokens import Token, Tokens
from slotlock.stores.sessions import Sessions
from slotlock.stores.users import Users


@dataclass(frozen=True, slots=True)
class Auth:
    """Accounts, sessions, the keys that sign, the throttle, and open streams.

    `known`: tokens verified lately. `ended`: ids of sessions that were found to have ended.
    """

    users: Users
    sessions: Sessions
    passwords: Passwords
    tokens: Tokens
    now: Callable[[], datetime]
    known: dict[str, Token] = field(default_factory=dict)
    ended: dict[str, None] = field(default_factory=dict)
    throttle: Throttle = field(default_factory=Throttle)
    streams: Streams = field(default_factory=Streams)
