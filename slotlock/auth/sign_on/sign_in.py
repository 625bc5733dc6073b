"""Sign in at a provider: start it, finish it, and link what a user has there to an account.

The client makes a secret, the verifier, and starts with its SHA-256, the challenge. It finishes
with the verifier, so that no other browser can finish the sign-in (RFC 9700, 4.7).
"""

import hmac
import logging
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from datetime import timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

from slotlock.auth.accounts import (
    Banned,
    InvalidCredentials,
    RegistrationClosed,
    TooManyAttempts,
    busy_if_overloaded,
    check_own_password,
    limited_notices,
    notice_mails,
    throttle_login,
)
from slotlock.auth.container import Auth
from slotlock.auth.providers.connections import ProviderConnection, SignInRejectedError
from slotlock.auth.providers.provider import Provider
from slotlock.auth.sessions import open_session
from slotlock.auth.sign_on.claims import UserClaims, read_claims, role_of
from slotlock.auth.sign_on.id_tokens import verify_id_token
from slotlock.auth.sign_on.identities import identity_id_of
from slotlock.auth.sign_on.sign_in_outcomes import (
    FinishRefusal,
    FinishSignInOutcome,
    LinkRequired,
    LinkSignInOutcome,
    ProviderUnavailable,
    ReauthenticationRequired,
    SignInFailed,
    SignInLinked,
    SignInStarted,
    SignInTaken,
    StartSignInOutcome,
)
from slotlock.auth.tokens import hash_token
from slotlock.domain.notifications.mail_kinds import SIGN_IN_LINKED
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.users.groups import validate_groups
from slotlock.domain.users.identity import managed_groups
from slotlock.domain.users.user import Caller, Role, User
from slotlock.infrastructure.fair_scheduler import Priority
from slotlock.infrastructure.mongo.client import after_write
from slotlock.infrastructure.mongo.users.identities import NewIdentity, PendingSignIn
from slotlock.infrastructure.provider_client import ProviderUnavailableError
from slotlock.infrastructure.request_deadline import untimed

log = logging.getLogger("slotlock.auth")

PENDING_TTL = timedelta(minutes=10)
# A session of this age proves who a user without a password is.
FRESH_SESSION_AGE = timedelta(minutes=10)
# The SHA-256 in Base64 without padding (RFC 7636, 4.2), and what it is of (4.1).
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_CODE = re.compile(r"[ -~]{1,10000}", re.ASCII)
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}", re.ASCII)
# How often an account is looked for again, if another request changes it meanwhile.
ATTEMPTS = 3


@busy_if_overloaded
async def start_sign_in(
    auth: Auth,
    provider_id: str,
    challenge: str,
    redirect_uri: str | None = None,
    client_address: str | None = None,
) -> StartSignInOutcome:
    """Start a sign-in of the client that made the challenge."""
    connection = auth.sign_on.find(provider_id) if auth.sign_on else None
    if auth.sign_on is None or connection is None:
        return _invalid("provider", ProblemCode.UNKNOWN_PROVIDER.problem())
    if not _CHALLENGE.fullmatch(challenge):
        return _invalid("challenge", ProblemCode.INVALID_CHALLENGE.problem())
    allowed = auth.sign_on.redirect_uris(connection.provider)
    redirect_uri = redirect_uri or next(iter(allowed), "")
    # Each other address could take the code (RFC 9700, 4.1.3).
    if redirect_uri not in allowed:
        return _invalid("redirectUri", ProblemCode.UNKNOWN_REDIRECT.problem())
    random_state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    state = f"{connection.provider.id}.{random_state}"
    try:
        with untimed():  # nothing has happened yet
            metadata = await connection.metadata()
    except ProviderUnavailableError as error:
        return _unavailable(connection.provider, error)
    connection.expect_sign_in()
    # Behind those who come back: their codes expire.
    async with connection.scheduler.permit(client_address, priority=Priority.NORMAL):
        expires_at = auth.now() + PENDING_TTL
        pending = PendingSignIn(
            connection.provider.id, nonce, verifier, challenge, redirect_uri, expires_at
        )
        await auth.repositories.identities.save_pending(hash_token(state), pending)
    query = {
        "response_type": "code",
        "client_id": connection.provider.client_id,
        "redirect_uri": redirect_uri,
        "scope": " ".join(connection.provider.scopes),
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge_of(verifier),
        "code_challenge_method": "S256",
    }
    endpoint = str(metadata["authorization_endpoint"])
    separator = "&" if "?" in endpoint else "?"
    return SignInStarted(f"{endpoint}{separator}{urlencode(query)}", state, expires_at)


@busy_if_overloaded
async def finish_sign_in(
    auth: Auth,
    state: str,
    code: str,
    verifier: str,
    issuer: str | None = None,
    user_agent: str | None = None,
    client_address: str | None = None,
) -> FinishSignInOutcome:
    """Open a session for the user who came back from the provider with a code.

    A sign-in that finds no place in the queue, or no keys of the provider, is not used up: it can
    be finished later.
    """
    connection = auth.sign_on.find_for_state(state) if auth.sign_on else None
    if connection is None:
        return SignInFailed()
    if refusal := await _readiness_refusal(connection):
        return refusal
    async with connection.scheduler.permit(client_address, priority=Priority.HIGH):
        claims = await _redeem(auth, connection, state, code, verifier, issuer)
        if not isinstance(claims, UserClaims):
            return claims
        user = await _find_or_create(auth, connection.provider, claims)
        if not isinstance(user, User):
            return user
        if user.banned:
            return Banned()
        with after_write():
            user = await _follow_claims(auth, connection.provider, claims, user, is_proven=False)
            key = claims.identity.key
            return await open_session(auth, user, None, user_agent, key, claims.provider_session)


@busy_if_overloaded
async def link_sign_in(
    auth: Auth,
    caller: Caller,
    state: str,
    code: str,
    verifier: str,
    issuer: str | None = None,
    client_address: str | None = None,
    current_password: str | None = None,
) -> LinkSignInOutcome:
    """Let the caller sign in as the user who came back from the provider with a code.

    It needs a fresh proof of who the caller is: who has stolen a session must not get another way
    into the account, which would outlast it. The sign-in is not used up before.
    """
    connection = auth.sign_on.find_for_state(state) if auth.sign_on else None
    if connection is None:
        return SignInFailed()
    provider = connection.provider
    user = (await auth.repositories.users.find_many([caller.user_id]))[caller.user_id]
    if refusal := await _proof_refusal(auth, caller, user, current_password, client_address):
        return refusal
    if unavailable := await _readiness_refusal(connection):
        return unavailable
    async with connection.scheduler.permit(client_address, priority=Priority.HIGH):
        claims = await _redeem(auth, connection, state, code, verifier, issuer)
        if not isinstance(claims, UserClaims):
            return claims
        user = (await auth.repositories.users.find_many([caller.user_id]))[caller.user_id]
        owner = await auth.repositories.identities.find_user(claims.identity)
        if owner is None:
            new = _new_identity(auth, claims)
            data = {"provider": provider.name}
            mails = await limited_notices(auth, SIGN_IN_LINKED, user, client_address, data=data)
            owner = await auth.repositories.identities.link(
                user, new, by_address=False, session_id=caller.session_id, mails=mails
            )
        if owner is None or owner.id != user.id:
            return SignInTaken()
        with after_write():
            return SignInLinked(await _follow_claims(auth, provider, claims, owner, is_proven=True))


async def _proof_refusal(
    auth: Auth,
    caller: Caller,
    user: User,
    current_password: str | None,
    client_address: str | None,
) -> ReauthenticationRequired | InvalidCredentials | TooManyAttempts | None:
    """Return why it is not proven that the caller is the user; None if it is."""
    if not (user.has_password and auth.accepts_password(user)):
        since = auth.now() - FRESH_SESSION_AGE
        is_fresh = await auth.repositories.sessions.was_opened_at_provider(caller.session_id, since)
        return None if is_fresh else ReauthenticationRequired()
    if current_password is None:
        return ReauthenticationRequired()
    return await throttle_login(
        auth,
        user.login_name,
        client_address,
        lambda _attempt: check_own_password(auth, user, current_password, client_address),
    )


def challenge_of(verifier: str) -> str:
    """Return the challenge of a verifier by the method S256 (RFC 7636, 4.2)."""
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("=")


async def _readiness_refusal(connection: ProviderConnection) -> ProviderUnavailable | None:
    """Return a refusal if the keys that a sign-in needs cannot be read.

    Slow keys hold up all sign-ins at once, and none of them has begun: it is not their time.
    """
    try:
        with untimed():
            await connection.keys()
    except ProviderUnavailableError as error:
        return _unavailable(connection.provider, error)
    return None


async def _redeem(
    auth: Auth,
    connection: ProviderConnection,
    state: str,
    code: str,
    verifier: str,
    issuer: str | None,
) -> UserClaims | FinishRefusal:
    """Return what the provider of a sign-in in progress says about its user. It works once."""
    provider = connection.provider
    pending = await auth.repositories.identities.take_pending(hash_token(state), auth.now())
    if pending is None or pending.provider_id != provider.id:
        return SignInFailed()
    try:
        _check_client(pending, verifier, code)
        await _check_issuer(connection, issuer)
        tokens = await connection.redeem(code, pending.verifier, pending.redirect_uri)
        claims = await verify_id_token(connection, tokens, pending.nonce, auth.now())
        user_info = await _more_claims(connection, claims, tokens.get("access_token"))
    except SignInRejectedError as error:
        log.warning("a sign-in at %s was rejected: %s", provider.id, error)
        return SignInFailed()
    except ProviderUnavailableError as error:
        return _unavailable(provider, error)
    return read_claims(provider, claims, user_info)


def _check_client(pending: PendingSignIn, verifier: str, code: str) -> None:
    """Check that the client is the one that started. Raises: SignInRejectedError."""
    if not _VERIFIER.fullmatch(verifier) or not hmac.compare_digest(
        challenge_of(verifier), pending.challenge
    ):
        raise SignInRejectedError("another client started it")
    if not _CODE.fullmatch(code):
        raise SignInRejectedError("it has no code")


async def _check_issuer(connection: ProviderConnection, issuer: str | None) -> None:
    """Check who sent the user back (RFC 9207, 2.4). Raises: SignInRejectedError."""
    metadata = await connection.metadata()
    is_named = metadata.get("authorization_response_iss_parameter_supported") is True
    if issuer != connection.provider.issuer and (issuer is not None or is_named):
        raise SignInRejectedError(f"{issuer!r} sent the user back")


async def _more_claims(
    connection: ProviderConnection, claims: Mapping[str, Any], access_token: object
) -> Mapping[str, Any]:
    """Return the claims that the ID token may lack: some providers give most of them apart."""
    provider = connection.provider
    needed = {"email", "name"} | ({provider.groups_claim} if provider.maps_values else set())
    if all(claims.get(name) is not None for name in needed):
        return {}
    user_info = await connection.user_info(access_token)
    # The token may be another user's (OpenID Connect Core, 5.3.2).
    if user_info and user_info.get("sub") != claims["sub"]:
        raise SignInRejectedError("the claims are about another user")
    return user_info


async def _find_or_create(
    auth: Auth, provider: Provider, claims: UserClaims
) -> User | LinkRequired | RegistrationClosed | SignInFailed:
    """Return the account of a user, which may be new.

    An account with the address is the user's if the provider has verified it. It is no proof that
    is good enough for an organizer or admin, or if the account has another subject at the provider:
    schools give the address of one who left to the next user of this name.
    """
    users, identities = auth.repositories.users, auth.repositories.identities
    for _ in range(ATTEMPTS):
        if (user := await identities.find_user(claims.identity)) is not None:
            return user
        found = await users.find_with_password_hash(claims.email) if claims.email else None
        if found is not None and claims.email is not None:
            account, _hash = found
            if not claims.email_verified or account.role is not Role.MEMBER:
                return LinkRequired(claims.email)
            # What somebody registered without an address that is verified is claimed.
            is_claimed = account.self_registered and not account.email_verified
            linked = await identities.find_all(account.id)
            if any(each.bars_others_of(provider.issuer, is_claimed=is_claimed) for each in linked):
                log.warning("the account of a sign-in at %s has another subject", provider.id)
                return LinkRequired(claims.email)
            if account.banned:
                return account
            # It is no news to a user whose first sign-in this is.
            is_used = account.has_password and not account.self_registered
            data = {"provider": provider.name}
            mails = notice_mails(auth, SIGN_IN_LINKED, account, data=data) if is_used else ()
            new = _new_identity(auth, claims)
            user = await identities.link(account, new, by_address=True, mails=mails)
            if user is not None and account.self_registered:
                auth.session_streams.session_changed(user.id)
        elif not provider.create_accounts:
            return RegistrationClosed()
        else:
            user = await _create(auth, provider, claims)
        if user is not None:
            return user
    log.warning("a sign-in at %s was rejected: its account changed all the time", provider.id)
    return SignInFailed()


async def _create(auth: Auth, provider: Provider, claims: UserClaims) -> User | None:
    """Create an account under the address, the user name, or else a name that nobody has."""
    other = f"{provider.id}-{identity_id_of(claims.identity.key)[:12]}"
    names = [claims.email] if claims.email else [claims.username, other]
    for login_name in filter(None, names):
        user = await auth.repositories.identities.insert_user(
            claims.name, login_name, _new_identity(auth, claims)
        )
        if user is not None:
            return user
    return None


async def _follow_claims(
    auth: Auth, provider: Provider, claims: UserClaims, user: User, *, is_proven: bool
) -> User:
    """Change the groups and the role that the settings map to what the provider says now.

    Unless it `is_proven` that the password is the user's, it ends with a promotion: who imported or
    registered the account for the user may know it.
    """
    user = await auth.repositories.identities.note_sign_in(user, _new_identity(auth, claims))
    if claims.values is None:
        return user
    groups = managed_groups(user.groups, provider.groups, claims.values)
    if problem := validate_groups(groups):
        log.warning("the groups of %s stay as they are: %s", user.id, problem)
    elif groups != user.groups:
        users = auth.repositories.users
        user = await users.set_groups(user.id, groups, None, auth.now()) or user
    role = role_of(provider, claims.values, user.role)
    if role is not user.role:
        writer = auth.repositories.account_admin_writer
        is_promoted = not is_proven and (user.role is Role.MEMBER or role is Role.ADMIN)
        changed = await writer.set_role(
            user.id, role, None, auth.now(), ends_other_ways=is_promoted
        )
        if isinstance(changed, User):
            auth.session_streams.session_changed(user.id)
            return changed
        reason = "is the last admin" if user.role is Role.ADMIN else "has guardians"
        log.warning("the role of %s stays %s: the user %s", user.id, user.role.value, reason)
    return user


def _new_identity(auth: Auth, claims: UserClaims) -> NewIdentity:
    return NewIdentity(claims.identity, claims.email, claims.email_verified, auth.now())


def _unavailable(provider: Provider, error: ProviderUnavailableError) -> ProviderUnavailable:
    log.warning("the provider %s is unavailable: %s", provider.id, error)
    return ProviderUnavailable()


def _invalid(field: str, problem: Problem) -> InvalidInput:
    return InvalidInput((FieldProblem(field, problem),))
