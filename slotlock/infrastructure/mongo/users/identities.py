"""Stores the identities of users at providers, sign-ins in progress, and used logout tokens.

    sign_ins  {_id: hash of the state, provider, nonce, verifier, challenge, redirectUri, expiresAt}
              {_id: hash of the id of a logout token, expiresAt}

The identities are in the documents of the users. A TTL index deletes what has expired.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError

from slotlock.domain.audit.audit_notes import note_sign_in
from slotlock.domain.notifications.outbox import OutboxEntry
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.identity import Identity, LinkedIdentity
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.infrastructure.mongo.audit.audit_note_repository import insert_notes
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.indexes.index import RequiredIndexes, indexes_of
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxRepository
from slotlock.infrastructure.mongo.transactions import in_transaction, insert_unless_taken
from slotlock.infrastructure.mongo.users.account_claims import FIELDS_UNSET_BY_CLAIM
from slotlock.infrastructure.mongo.users.sessions import (
    end_all_sessions,
    serialize_user_sessions,
    user_sessions_query,
)
from slotlock.infrastructure.mongo.users.user_documents import (
    EMAIL_INDEX,
    IDENTITY_INDEX,
    PUBLIC_FIELDS,
    keys_of_issuer,
    to_linked_identities,
    to_new_document,
    to_user,
)

SIGN_IN_INDEXES = indexes_of(
    "sign_ins", {"expiry": ([("expiresAt", 1)], {"expireAfterSeconds": 0})}
)


@value_object
class PendingSignIn:
    """A sign-in that a client has started at a provider.

    `challenge` is that of the client (RFC 7636), and `verifier` that of this server.
    """

    provider_id: str
    nonce: str
    verifier: str
    challenge: str
    redirect_uri: str
    expires_at: datetime


@value_object
class NewIdentity:
    """An identity to store. The provider has verified the address if `email_verified`."""

    identity: Identity
    email: str | None
    email_verified: bool
    at: datetime


class IdentityRepository:
    """Stores the identities of users, and what a sign-in at a provider needs."""

    def __init__(
        self,
        database: Database,
        limiter: ConcurrencyLimiter,
        required: RequiredIndexes,
        outbox: OutboxRepository,
    ) -> None:
        self.limiter = limiter
        self._database = database
        self._users = database["users"]
        self._sessions = database["sessions"]
        self._sign_ins = database["sign_ins"]
        self._required = required
        self._outbox = outbox

    @limited
    async def save_pending(self, state_hash: str, pending: PendingSignIn) -> None:
        """Store a sign-in in progress."""
        document = {
            "_id": state_hash,
            "provider": pending.provider_id,
            "nonce": pending.nonce,
            "verifier": pending.verifier,
            "challenge": pending.challenge,
            "redirectUri": pending.redirect_uri,
            "expiresAt": pending.expires_at,
        }
        await self._sign_ins.insert_one(document)

    @limited
    async def take_pending(self, state_hash: str, now: datetime) -> PendingSignIn | None:
        """Delete a sign-in in progress and return it: of two concurrent calls, one gets it."""
        found = await self._sign_ins.find_one_and_delete(
            {"_id": state_hash, "provider": {"$exists": True}}
        )
        if found is None or found["expiresAt"] <= now:
            return None
        return PendingSignIn(
            found["provider"],
            found["nonce"],
            found["verifier"],
            found["challenge"],
            found["redirectUri"],
            found["expiresAt"],
        )

    @limited
    async def find_user(self, identity: Identity) -> User | None:
        """Return the user with an identity."""
        document = await self._users.find_one({"identities.key": identity.key}, PUBLIC_FIELDS)
        return to_user(document) if document else None

    @limited
    async def find_all(self, user_id: UserId) -> list[LinkedIdentity]:
        """Return the identities of a user."""
        found = await self._users.find_one({"_id": ObjectId(user_id)}, {"identities": 1})
        return list(to_linked_identities(found or {}))

    @limited
    async def find_many(self, user_ids: Sequence[UserId]) -> dict[UserId, list[LinkedIdentity]]:
        """Return the identities of those of the users who exist."""
        query = {"_id": {"$in": [ObjectId(each) for each in user_ids]}}
        found = self._users.find(query, {"identities": 1})
        return {UserId(str(d["_id"])): list(to_linked_identities(d)) async for d in found}

    @limited
    async def insert_user(self, name: str, login_name: str, new: NewIdentity) -> User | None:
        """Insert a member who signs in with an identity; None if it or the name is taken.

        Unless the provider has verified the address, the account has the mark of those that
        somebody registered.
        """
        self._required.require(EMAIL_INDEX, IDENTITY_INDEX)
        document = {
            **to_new_document(name, login_name, Role.MEMBER, None, new.at),
            "identities": [_to_document(new)],
            **({"verifiedEmail": login_name} if new.email_verified else {"selfRegistered": True}),
        }
        is_inserted = await insert_unless_taken(self._database, "users", document)
        return to_user(document) if is_inserted else None

    @limited
    async def link(
        self,
        expected: User,
        new: NewIdentity,
        *,
        by_address: bool,
        session_id: str | None = None,
        mails: Sequence[OutboxEntry] = (),
    ) -> User | None:
        """Add an identity to a user, and insert the mails about it.

        Return None if the user changed, or the session of the request ended, meanwhile, or another
        user has it. A claim, which ends the session, must not leave a way in.

        No address leads to an account with an identity at this provider: its address may have been
        given to another user meanwhile.
        An account that only the address leads to is claimed if somebody registered it without
        showing that it is theirs: what that user could still use ends, as in an import
        (FIELDS_UNSET_BY_CLAIM).
        """
        self._required.require(IDENTITY_INDEX)
        query: Document = {
            "_id": ObjectId(expected.id),
            "email": expected.login_name,
            "role": expected.role.value,
            "banned": None,
            "erasedAt": None,
            "identities.key": {"$ne": new.identity.key},
        }
        verifies = new.email_verified and new.email == expected.login_name
        is_proven = not by_address or expected.email_verified
        claims = verifies and expected.self_registered and not is_proven
        fields: Document = {"verifiedEmail": expected.login_name} if verifies else {}
        linked = {} if by_address else {"linked": True}
        update: Document = {"$push": {"identities": {**_to_document(new), **linked}}}
        if by_address:
            # A claim ends the identity of who registered, but not what an import named.
            other = {"key": keys_of_issuer(new.identity.issuer), **({"at": None} if claims else {})}
            query["identities"] = {"$not": {"$elemMatch": other}}
        if claims:
            query["selfRegistered"] = True
            fields |= {"withoutPassword": True, "identities": [_to_document(new)]}
            unset = set(FIELDS_UNSET_BY_CLAIM) - fields.keys()
            update = {"$unset": dict.fromkeys(unset, "")}
        elif verifies:
            update["$unset"] = {"selfRegistered": "", "invitation": ""}
        if fields:
            update["$set"] = fields

        async def write(session: AsyncClientSession) -> User | None:
            if session_id and not await self._is_open(session_id, expected.id, session):
                return None
            if not (await self._users.update_one(query, update, session=session)).matched_count:
                return None
            note = note_sign_in(None, new.identity, expected.id, expected.id, new.at)
            await insert_notes(self._database, [note], session)
            await self._outbox.insert(mails, new.at, session)
            if claims:
                await end_all_sessions(self._database, expected.id, session)
                # The repository of teams imports the outcomes of all commands.
                from slotlock.infrastructure.mongo.team_repository import remove_from_teams

                await remove_from_teams(self._database, [expected.id], session)
            changed = await self._users.find_one(
                {"_id": ObjectId(expected.id)}, PUBLIC_FIELDS, session=session
            )
            return to_user(changed) if changed else None

        try:
            return await in_transaction(self._database, write)
        except DuplicateKeyError:
            return None

    async def _is_open(self, session_id: str, user_id: UserId, session: AsyncClientSession) -> bool:
        """Return whether a session of a user is open, and stays so until the transaction ends."""
        await serialize_user_sessions(self._database, user_id, session)
        query = {**user_sessions_query(user_id), "_id": session_id}
        return await self._sessions.find_one(query, {"_id": 1}, session=session) is not None

    @limited
    async def note_sign_in(self, user: User, new: NewIdentity) -> User:
        """Store the address that the provider gives now, and the first sign-in of an import.

        Return the user, whose address the provider may have verified. An invitation would let
        someone else into the account.
        """
        key = new.identity.key
        fields = {"identities.$[own].email": new.email, "identities.$[unused].at": new.at}
        unset = [] if user.has_password else ["invitation"]
        if new.email_verified and new.email == user.login_name:
            fields["verifiedEmail"] = new.email
            unset.append("selfRegistered")
            user = replace(user, email_verified=True, self_registered=False)
        user = replace(user, signs_in_at_provider=True)
        await self._users.update_one(
            {"identities.key": key},
            {"$set": fields, **({"$unset": dict.fromkeys(unset, "")} if unset else {})},
            array_filters=[{"own.key": key}, {"unused.key": key, "unused.at": None}],
        )
        return user

    @limited
    async def unlink(
        self,
        user_id: UserId,
        identity: Identity,
        caller: Caller,
        now: datetime,
        *,
        may_be_last: bool,
        mails: Sequence[OutboxEntry] = (),
    ) -> bool:
        """Remove an identity of a user, and end the sessions that it opened, but not the caller's.

        The mails about it are inserted. Return False if it is the last one, unless it may be.
        """
        query: Document = {"_id": ObjectId(user_id), "identities.key": identity.key}
        if not may_be_last:
            query["identities.1"] = {"$exists": True}

        async def write(session: AsyncClientSession) -> bool:
            removal = {"$pull": {"identities": {"key": identity.key}}}
            removed = await self._users.update_one(query, removal, session=session)
            if not removed.matched_count:
                return False
            opened = {**user_sessions_query(user_id), "identity": identity.key}
            others = {**opened, "_id": {"$ne": caller.session_id}}
            await self._sessions.delete_many(others, session=session)
            note = note_sign_in(identity, None, user_id, caller.user_id, now)
            await insert_notes(self._database, [note], session)
            await self._outbox.insert(mails, now, session)
            return True

        return await in_transaction(self._database, write)

    @limited
    async def end_sessions_once(
        self, token_hash: str, until: datetime, issuer: str, subject: str | None, sid: str | None
    ) -> list[UserId] | None:
        """End the sessions that a session or a user of a provider opened. Return their users.

        Return None if the same token did so before: it must not end a later session. It counts as
        used with the end of the sessions, so that a provider can repeat what failed.
        """
        query: Document = {}
        if subject is not None:
            identity = Identity(issuer, subject)
            user = await self._users.find_one({"identities.key": identity.key}, {"_id": 1})
            query |= {"user": user["_id"] if user else None, "identity": identity.key}
        if sid is not None:
            query["providerSession"] = f"{issuer} {sid}"

        async def write(session: AsyncClientSession) -> list[UserId]:
            used = {"_id": token_hash, "expiresAt": until}
            await self._sign_ins.insert_one(used, session=session)
            opened = self._sessions.find(query, {"user": 1}, session=session)
            found = [each async for each in opened]
            ids = [each["_id"] for each in found]
            await self._sessions.delete_many({"_id": {"$in": ids}}, session=session)
            return list({UserId(str(each["user"])) for each in found})

        try:
            return await in_transaction(self._database, write)
        except DuplicateKeyError:
            return None


def _to_document(new: NewIdentity) -> Document:
    email = {"email": new.email} if new.email else {}
    return {"key": new.identity.key, **email, "at": new.at}
