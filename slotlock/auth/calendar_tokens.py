"""The private address of a person's calendar: whoever knows it reads it, without signing in.

It is told once and only its hash is kept, as with keys for programs: who reads the database or a
backup reads nobody's calendar. Whoever lost it makes a new one, which ends the old one.
"""

import re
import secrets
from dataclasses import dataclass
from datetime import datetime

from slotlock.auth.container import Auth
from slotlock.auth.tokens import hash_token
from slotlock.domain.users.user import Caller, User

TOKEN_BYTES = 32
_TOKEN_PATTERN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


@dataclass(frozen=True, slots=True)
class CalendarToken:
    """A new address; its token is told here and never again."""

    token: str
    created_at: datetime


async def create(auth: Auth, caller: Caller) -> CalendarToken:
    """A new address for a person's calendar; the one before ends with it."""
    token, now = secrets.token_urlsafe(TOKEN_BYTES), auth.now()
    await auth.users.calendar_tokens.save(caller.user_id, hash_token(token), now)
    return CalendarToken(token, now)


async def revoke(auth: Auth, caller: Caller) -> bool:
    """End a person's address, at once and everywhere; whether there was one."""
    return await auth.users.calendar_tokens.delete(caller.user_id)


async def created_at(auth: Auth, caller: Caller) -> datetime | None:
    """When the person's address was made; None when there is none."""
    return await auth.users.calendar_tokens.find_created_at(caller.user_id)


async def user_of(auth: Auth, token: str) -> User | None:
    """Whose calendar it is; None for no good token, and for who was banned."""
    if not _TOKEN_PATTERN.fullmatch(token):
        return None
    return await auth.users.calendar_tokens.find_user(hash_token(token))
