"""The private address of a person's calendar: whoever knows it reads it, without signing in.

It is told once and only its hash is kept, as with keys for programs: who reads the database or a
backup reads nobody's calendar. Whoever lost it makes a new one, which ends the old one.
"""

import re
import secrets
from dataclasses import dataclass
from datetime import datetime

from slotlock.auth.auth import Auth
from slotlock.auth.hashes import hash_of
from slotlock.domain.people import Caller, User

TOKEN_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


@dataclass(frozen=True, slots=True)
class CalendarAddress:
    """A new address; its token is told here and never again."""

    token: str
    created_at: datetime


async def create(auth: Auth, person: Caller) -> CalendarAddress:
    """A new address for a person's calendar; the one before ends with it."""
    token, now = secrets.token_urlsafe(TOKEN_BYTES), auth.now()
    await auth.users.calendars.keep(person.user_id, hash_of(token), now)
    return CalendarAddress(token, now)


async def revoke(auth: Auth, person: Caller) -> bool:
    """End a person's address, at once and everywhere; whether there was one."""
    return await auth.users.calendars.remove(person.user_id)


async def created_at(auth: Auth, person: Caller) -> datetime | None:
    """When the person's address was made; None when there is none."""
    return await auth.users.calendars.created_at(person.user_id)


async def whose(auth: Auth, token: str) -> User | None:
    """Whose calendar it is; None for no good token, and for who was banned."""
    if not _TOKEN.fullmatch(token):
        return None
    return await auth.users.calendars.find(hash_of(token))
