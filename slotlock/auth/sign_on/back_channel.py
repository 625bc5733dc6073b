"""Ends sessions when their user signs out at the provider (Back-Channel Logout)."""

import logging

from slotlock.auth.container import Auth
from slotlock.auth.providers.connections import ProviderConnection, SignInRejectedError
from slotlock.auth.sign_on.id_tokens import LEEWAY, MAX_AGE, verify_logout_token
from slotlock.auth.tokens import hash_token
from slotlock.infrastructure.provider_client import ProviderUnavailableError

log = logging.getLogger("slotlock.auth")


async def end_provider_session(auth: Auth, connection: ProviderConnection, token: str) -> bool:
    """End what the session or the user of a logout token opened here.

    Return False for a token that is not valid, or was sent before.
    """
    provider, now, identities = connection.provider, auth.now(), auth.repositories.identities
    try:
        claims = await verify_logout_token(connection, token, now)
    except (SignInRejectedError, ProviderUnavailableError) as error:
        log.warning("a logout token of %s was rejected: %s", provider.id, error)
        return False
    token_hash = hash_token(f"{provider.issuer} {claims['jti']}")
    subject, session_id, until = claims.get("sub"), claims.get("sid"), now + MAX_AGE + 2 * LEEWAY
    user_ids = await identities.end_sessions_once(
        token_hash, until, provider.issuer, subject, session_id
    )
    if user_ids is None:
        log.warning("a logout token of %s was sent again", provider.id)
        return False
    for user_id in user_ids:
        auth.session_streams.session_changed(user_id)
    return True
