"""Links to exports: signed, for one file and one organizer, and valid for minutes.

A browser follows a link without the header that names the caller, so the link contains a token. The
token opens nothing else, and only while the session that created it is open.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from slotlock.auth.authentication import load_caller
from slotlock.auth.container import Auth
from slotlock.auth.tokens import BadTokenError, TokenClaims, new_token_id
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Caller

EXPORT_LINK_TTL = timedelta(minutes=5)
# A download may take so long after the end of its link; the session is checked again before the
# first byte.
DOWNLOAD_TIME = timedelta(minutes=10)


@value_object
class ExportToken:
    """A new token for one export."""

    token: str
    expires_at: datetime


def create(auth: Auth, caller: Caller, export: str) -> ExportToken:
    """Sign a token for an export, such as `slots/slot_....csv`, that the caller may download.

    Parameters may follow, such as `?separator=semicolon&language=de`.
    """
    now = auth.now()
    expires_at = (now + EXPORT_LINK_TTL).replace(microsecond=0)
    claims = TokenClaims(caller.user_id, caller.session_id, new_token_id(), expires_at, export)
    return ExportToken(auth.tokens.sign("export", claims, now), expires_at)


def verify(auth: Auth, token: str) -> TokenClaims | BadTokenError:
    """Return the claims of a token, or why it is rejected. The session may have ended."""
    try:
        return auth.tokens.verify("export", token, auth.now())
    except BadTokenError as error:
        return error


async def load_downloader(auth: Auth, claims: TokenClaims) -> Caller:
    """Return the user of a link with their current role.

    Raises:
        BadTokenError: the session has ended.
    """
    caller = await load_caller(auth, claims)
    if caller is None:
        raise BadTokenError("The session has ended.")
    return replace(caller, expires_at=claims.expires_at + DOWNLOAD_TIME)
