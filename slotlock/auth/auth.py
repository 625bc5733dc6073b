"""What finding out who asks works with, built once by the lifespan and handed on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from slotlock.auth.passwords import Passwords
from slotlock.auth.throttling import Throttle
from slotlock.auth.tokens import Tokens
from slotlock.domain.people import Caller
from slotlock.stores.sessions import Sessions
from slotlock.stores.users import Users


@dataclass(frozen=True, slots=True)
class Known:
    """A caller whose token was verified, and when their session was last seen to be open."""

    caller: Caller
    seen_open_at: datetime


@dataclass(frozen=True, slots=True)
class Auth:
    """Accounts, sessions, the keys that sign, and the tokens verified lately."""

    users: Users
    sessions: Sessions
    passwords: Passwords
    tokens: Tokens
    now: Callable[[], datetime]
    known: dict[str, Known] = field(default_factory=dict)
    throttle: Throttle = field(default_factory=Throttle)
