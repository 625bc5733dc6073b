"""Stores teams.

    {_id, name, members: [{user, since, number}], invitations: [{email, at, by, number, user?}],
     version, createdAt, schemaVersion, touchedBy?}

A unique index gives a user's teams different numbers, and likewise the open invitations to an
address. There are 100 numbers. That limits both, however many are created at once; a count could be
right when it is read and wrong when the team is written.
"""

import random
from collections.abc import Collection, Iterable, Sequence

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError

from slotlock.domain.teams.team import (
    MAX_INVITATIONS_PER_ADDRESS,
    MAX_TEAMS_PER_USER,
    Invitation,
    Member,
    Team,
    TeamId,
    TeamVersion,
    shared_with,
)
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.mongo.client import (
    TEAMS_CONCURRENCY,
    Database,
    Document,
    is_unavailable,
)
from slotlock.infrastructure.mongo.commands import find_each
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.document_parts import unknown_fields, with_schema_version
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord
from slotlock.infrastructure.mongo.indexes.index import RequiredIndexes, indexes_of
from slotlock.infrastructure.mongo.transactions import insert_unless_taken

# Without the filter, two teams without invitations would violate the unique index.
PARTIAL_INVITATIONS = {"partialFilterExpression": {"invitations.email": {"$exists": True}}}
TEAM_INDEXES = indexes_of(
    "teams",
    {
        "members": ([("members.user", 1), ("members.number", 1)], {"unique": True}),
        "invitations": (
            [("invitations.email", 1), ("invitations.number", 1)],
            {"unique": True, **PARTIAL_INVITATIONS},
        ),
        # Few invitations have a user.
        "invited_users": ([("invitations.user", 1)], {"sparse": True}),
    },
)
MEMBER_FIELDS = ("user", "since", "number")
INVITATION_FIELDS = ("email", "at", "by", "number", "user")
UNIQUE_INDEXES = ("teams.members", "teams.invitations")


def version_filter(team_version: TeamVersion) -> Document:
    """Return the filter for a team in the version that was loaded.

    A transaction that relies on it has to apply `touch_update` as well. A transaction reads from a
    snapshot: if it only read the team, it could commit although a member leaves.
    """
    return {"_id": ObjectId(team_version.team_id), "version": team_version.version}


def touch_update() -> Document:
    """Return the update that conflicts with every change of the team, and changes nothing."""
    return {"$set": {"touchedBy": ObjectId()}}


class TeamRepository:
    """Stores teams with their members and open invitations."""

    def __init__(self, database: Database, required: RequiredIndexes) -> None:
        self.limiter = ConcurrencyLimiter(TEAMS_CONCURRENCY)
        self._required = required
        self._database = database
        self._teams = database["teams"]
        self._find_batcher = Batcher(self._find_batch, is_outage=is_unavailable)

    @limited
    async def insert(self, team: Team, record: IdempotencyRecord | None = None) -> bool:
        """Insert a team, and the record of its idempotency key in the same transaction.

        Return False if the creator's number was taken, or the key has a record, in the meantime.
        """
        self._required.require(*UNIQUE_INDEXES)
        document = with_schema_version("teams", {"_id": ObjectId(team.id), **_to_fields(team)})
        return await insert_unless_taken(self._database, "teams", document, record=record)

    async def find(self, team_id: TeamId) -> Team | None:
        """Return a team; None if there is none."""
        return await self._find_batcher.submit(team_id)

    async def _find_batch(self, team_ids: list[TeamId]) -> list[Team | None]:
        return await find_each(self._teams, team_ids, _to_team)

    @limited
    async def update(self, before: Team, after: Team) -> bool:
        """Update a team. Return False if it changed, or a number was taken, in the meantime."""
        self._required.require(*UNIQUE_INDEXES)
        try:
            result = await self._teams.update_one(
                version_filter(before.snapshot_version), {"$set": _to_fields(after)}
            )
        except DuplicateKeyError:
            return False
        return result.modified_count == 1

    @limited
    async def delete(self, before: Team) -> bool:
        """Delete a team. Return False if it changed in the meantime."""
        result = await self._teams.delete_one(version_filter(before.snapshot_version))
        return result.deleted_count == 1

    @limited
    async def find_by_user(self, user_id: UserId) -> tuple[Team, ...]:
        """Return the teams of a user, the oldest first; at most 100."""
        return await self._find_all({"members.user": ObjectId(user_id)})

    @limited
    async def find_by_invited_email(self, email: str) -> tuple[Team, ...]:
        """Return the teams that invited this address, the oldest first; at most 100."""
        return await self._find_all({"invitations.email": email})

    @limited
    async def find_by_invited_user(self, user_id: UserId, login_name: str) -> tuple[Team, ...]:
        """Return the teams that invited a user with this login name, the oldest first.

        Some may have invited somebody else who had it: see `Team.invitations_of`.
        """
        return await self._find_all(
            {"$or": [{"invitations.user": ObjectId(user_id)}, {"invitations.email": login_name}]}
        )

    async def free_member_number(self, user_id: UserId) -> int | None:
        """Return a number that none of the user's teams has; None if all are taken."""
        teams = await self.find_by_user(user_id)
        taken = {m.number for team in teams for m in team.members if m.user_id == user_id}
        return _random_free_number(taken, MAX_TEAMS_PER_USER)

    async def free_invitation_number(self, email: str) -> int | None:
        """Return a number that no open invitation to the address has; None if all are taken."""
        invitations = [
            team.invitation_to(email) for team in await self.find_by_invited_email(email)
        ]
        return _random_free_number(
            {found.number for found in invitations if found}, MAX_INVITATIONS_PER_ADDRESS
        )

    async def find_teammates(
        self, user_id: UserId, other_user_ids: Collection[UserId]
    ) -> tuple[frozenset[UserId], tuple[TeamVersion, ...]]:
        """Return those of the others who share a team with this user, and these teams' versions.

        A write that relies on the result has to be conditional on each of these versions.
        """
        return (
            shared_with(await self.find_by_user(user_id), user_id, other_user_ids)
            if other_user_ids
            else _NO_TEAMMATES
        )

    async def _find_all(self, query: Document) -> tuple[Team, ...]:
        teams = [_to_team(document) async for document in self._teams.find(query)]
        return tuple(sorted(teams, key=lambda team: (team.created_at, team.id)))


async def remove_from_teams(
    database: Database, user_ids: Sequence[UserId], session: AsyncClientSession
) -> None:
    """Remove users from all their teams, and delete the teams that have no other member."""
    ids = [ObjectId(user_id) for user_id in user_ids]
    of_users: Document = {"members.user": {"$in": ids}}
    others = {"$elemMatch": {"user": {"$nin": ids}}}
    # A team without members would violate the unique index.
    await database["teams"].delete_many({**of_users, "members": {"$not": others}}, session=session)
    removal = {"$pull": {"members": {"user": {"$in": ids}}}, "$inc": {"version": 1}}
    await database["teams"].update_many(of_users, removal, session=session)


async def assign_invitations(
    database: Database, user_id: UserId, login_name: str, session: AsyncClientSession
) -> None:
    """Let the open invitations to a login name follow its user, who has another one from now on."""
    own = {"email": login_name, "user": {"$exists": False}}
    await database["teams"].update_many(
        # The index needs the first condition.
        {"invitations.email": login_name, "invitations": {"$elemMatch": own}},
        {"$set": {"invitations.$[own].user": ObjectId(user_id)}, "$inc": {"version": 1}},
        array_filters=[{f"own.{name}": value for name, value in own.items()}],
        session=session,
    )


_NO_TEAMMATES: tuple[frozenset[UserId], tuple[TeamVersion, ...]] = (frozenset(), ())


def _random_free_number(taken: Iterable[int], limit: int) -> int | None:
    # Random, so that concurrent commands rarely choose the same number.
    free = list(set(range(limit)).difference(taken))
    return random.choice(free) if free else None  # noqa: S311


def _to_fields(team: Team) -> Document:
    return {
        "name": team.name,
        "members": [
            {
                **unknown_fields(m.stored, MEMBER_FIELDS),
                "user": ObjectId(m.user_id),
                "since": m.since,
                "number": m.number,
            }
            for m in team.members
        ],
        "invitations": [
            {
                **unknown_fields(i.stored, INVITATION_FIELDS),
                "email": i.email,
                "at": i.at,
                "by": ObjectId(i.by),
                "number": i.number,
                **({"user": ObjectId(i.user_id)} if i.user_id else {}),
            }
            for i in team.invitations
        ],
        "version": team.version,
        "createdAt": team.created_at,
    }


def _to_team(document: Document) -> Team:
    return Team(
        id=TeamId(str(document["_id"])),
        name=document["name"],
        members=tuple(
            Member(UserId(str(m["user"])), m["since"], m["number"], m) for m in document["members"]
        ),
        invitations=tuple(
            Invitation(
                i["email"],
                i["at"],
                UserId(str(i["by"])),
                i["number"],
                UserId(str(i["user"])) if "user" in i else None,
                i,
            )
            for i in document["invitations"]
        ),
        version=document["version"],
        created_at=document["createdAt"],
    )
