"""Claims accounts that somebody registered: what that user could still use ends.

A claim of one account has two transactions. The first one ends every way into the account, and the
second one invites its user and removes the mark `selfRegistered`. Between them, the bookings can be
cancelled. A claim that was interrupted can be repeated, because the account still has the mark.
"""

from collections.abc import Callable
from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit.audit_log import NoteAction
from slotlock.domain.notifications.outbox import OutboxEntry
from slotlock.domain.users.user import User, UserId
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxRepository
from slotlock.infrastructure.mongo.transactions import in_transaction
from slotlock.infrastructure.mongo.users.account_admin_writer import AuditInfo, update_user
from slotlock.infrastructure.mongo.users.sessions import end_all_sessions

# What lets the user who registered an account into it, or into a part of it.
WAYS_IN = (
    *("passwordHash", "invitation", "calendar"),
    *("passwordReset", "emailVerification", "identities"),
)
FIELDS_UNSET_BY_CLAIM = (*WAYS_IN, "selfRegistered", "formerLoginNames", "phone")


class AccountClaimWriter:
    """Locks accounts that somebody registered, and invites their users."""

    def __init__(
        self, database: Database, limiter: ConcurrencyLimiter, outbox: OutboxRepository
    ) -> None:
        self.limiter = limiter
        self._database = database
        self._outbox = outbox

    @limited
    async def lock(self, expected: User) -> User | None:
        """End the password, the sessions, the teams and every other way into an account.

        Return the user; None if the user changed meanwhile.
        """
        update = {"$set": {"withoutPassword": True}, "$unset": dict.fromkeys(WAYS_IN, "")}

        async def write(session: AsyncClientSession) -> User | None:
            query = _claimable(expected)
            users = self._database["users"]
            if not (await users.update_one(query, update, session=session)).matched_count:
                return None
            await end_all_sessions(self._database, expected.id, session)
            # The repository of teams imports the outcomes of all commands.
            from slotlock.infrastructure.mongo.team_repository import remove_from_teams

            await remove_from_teams(self._database, [expected.id], session)
            return expected

        return await in_transaction(self._database, write)

    @limited
    async def invite(
        self,
        expected: User,
        token_hash: str,
        until: datetime,
        by: UserId,
        now: datetime,
        to_mail: Callable[[User], OutboxEntry] | None = None,
    ) -> User | None:
        """Invite the user of a locked account, and insert the mail that alone has the token.

        Return the user; None if the user changed meanwhile.
        """
        mailed: Document = {"mailedAt": now, "email": expected.login_name} if to_mail else {}
        update = {
            "$set": {
                "invitation": {"hash": token_hash, "until": until, **mailed},
                "claimed": True,
            },
            "$unset": {"selfRegistered": "", "formerLoginNames": "", "phone": ""},
        }
        query = {**_claimable(expected), "withoutPassword": True, "identities": None}
        info = AuditInfo(NoteAction.CLAIMED, by, now)

        async def write(session: AsyncClientSession) -> User | None:
            user = await update_user(self._database, query, update, info, session)
            if user is not None and to_mail is not None:
                await self._outbox.insert([to_mail(user)], now, session)
            return user

        return await in_transaction(self._database, write)


def _claimable(expected: User) -> Document:
    return {
        "_id": ObjectId(expected.id),
        "role": expected.role.value,
        "email": expected.login_name,
        "selfRegistered": True,
        "banned": None,
        "erasedAt": None,
    }
