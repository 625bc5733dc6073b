"""Tokens of calendar feeds: a token in the URL gives read access to a user's calendar.

The token is shown once and only its hash is stored, so a leaked database or backup reveals no
calendar. A user who lost the token creates a new one, which replaces the old one.
"""

import re
import secrets
from datetime import datetime

from slotlock.auth.container import Auth
from slotlock.auth.tokens import hash_token
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Caller, User

TOKEN_BYTES = 32
_TOKEN_PATTERN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


@value_object
class CalendarToken:
    """A new calendar token; it is shown only now."""

    token: str
    created_at: datetime


async def create(auth: Auth, caller: Caller) -> CalendarToken:
    """Create a token for the caller's calendar, which replaces the previous one."""
    token, now = secrets.token_urlsafe(TOKEN_BYTES), auth.now()
    await auth.repositories.calendar_tokens.save(caller.user_id, hash_token(token), now)
    return CalendarToken(token, now)


async def revoke(auth: Auth, caller: Caller) -> bool:
    """Delete the caller's token immediately. Return whether there was one."""
    return await auth.repositories.calendar_tokens.delete(caller.user_id)


async def created_at(auth: Auth, caller: Caller) -> datetime | None:
    """Return when the caller's token was created, or None if there is none."""
    return await auth.repositories.calendar_tokens.find_created_at(caller.user_id)


async def user_of(auth: Auth, token: str) -> User | None:
    """Return the owner of a calendar token; None if it is invalid or the owner is banned."""
    if not _TOKEN_PATTERN.fullmatch(token):
        return None
    return await auth.repositories.calendar_tokens.find_user(hash_token(token))
