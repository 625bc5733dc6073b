"""A booking for somebody in one's team leans on the team: it is off when they left meanwhile."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from pymongo.errors import OperationFailure
from pymongo.read_concern import ReadConcern

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.teams.membership import leave
from slotlock.domain.teams.team import Invitation, Member, Team
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Database, connect
from slotlock.infrastructure.mongo.ids import new_slot_id, new_team_id
from slotlock.infrastructure.mongo.teams import TeamRepository, touch_update, version_filter
from slotlock.services.container import utc_now
from tests.support.apps.processes import database_url


@pytest.fixture
async def database(servers: EmbeddedServers) -> AsyncIterator[Database]:
    """A database with teams in it."""
    client, database = connect(database_url(servers, "teams"))
    try:
        await TeamRepository(database).create_indexes()
        yield database
    finally:
        await client.close()


@pytest.fixture
def teams(database: Database) -> TeamRepository:
    """The store of teams."""
    return TeamRepository(database)


def new_person() -> UserId:
    """Somebody whom nobody knows."""
    return UserId(str(new_slot_id()))


async def kept(
    teams: TeamRepository, *users: UserId, number: int = 0, email: str | None = None
) -> Team:
    """A new team of these people in the store."""
    now = utc_now()
    members = tuple(Member(user_id, now, number) for user_id in users)
    invitations = (Invitation(email, now, users[0], number),) if email else ()
    team = Team(new_team_id(), "Relay", members, invitations, 1, now)
    assert await teams.insert(team)
    return team


def run_without_guards(team: Team, user_id: UserId) -> Team:
    """The team after this person left."""
    after = leave(team, user_id).team
    assert after is not None
    return after


async def test_who_shares_a_team_is_told_with_the_version_that_was_seen(
    teams: TeamRepository,
) -> None:
    ada, ben, cleo, dan = (new_person() for _ in range(4))
    first = await kept(teams, ada, ben)
    second = await kept(teams, ada, cleo, number=1)
    await kept(teams, cleo, dan, number=2)
    found, seen = await teams.find_teammates(ada, [ben, cleo, dan, ada])
    assert (found, set(seen)) == (
        frozenset({ben, cleo}),
        {first.snapshot_version, second.snapshot_version},
    )
    assert await teams.find_teammates(ada, []) == (frozenset(), ())
    assert await teams.update(second, run_without_guards(second, cleo))
    assert await teams.find_teammates(ada, [ben, cleo]) == (
        frozenset({ben}),
        (first.snapshot_version,),
    )


async def test_what_leans_on_a_team_finds_it_changed_when_somebody_left_before(
    teams: TeamRepository, database: Database
) -> None:
    ada, ben = new_person(), new_person()
    team = await kept(teams, ada, ben)
    _, (seen,) = await teams.find_teammates(ada, [ben])
    assert (
        await database["teams"].update_one(version_filter(seen), touch_update())
    ).matched_count == 1
    assert await teams.update(team, run_without_guards(team, ben))
    assert (
        await database["teams"].update_one(version_filter(seen), touch_update())
    ).matched_count == 0


async def test_what_leans_on_a_team_cannot_commit_when_somebody_left_after_it_began(
    teams: TeamRepository, database: Database
) -> None:
    ada, ben = new_person(), new_person()
    team = await kept(teams, ada, ben)

    async def lean_on_it() -> None:
        async with database.client.start_session() as session, await session.start_transaction():
            assert await database["teams"].find_one(
                version_filter(team.snapshot_version), session=session
            )
            assert await teams.update(team, run_without_guards(team, ben))
            # Its snapshot still shows the team as it was, which is why looking is not enough.
            assert await database["teams"].find_one(
                version_filter(team.snapshot_version), session=session
            )
            await database["teams"].update_one(
                version_filter(team.snapshot_version), touch_update(), session=session
            )

    with pytest.raises(OperationFailure) as failed:
        await lean_on_it()
    assert failed.value.has_error_label("TransientTransactionError")


async def waits_for_a_transaction(database: Database) -> bool:
    """Whether a write to a team is held up by another one."""
    admin = database.client.get_database("admin", read_concern=ReadConcern("local"))
    running = await admin.aggregate([{"$currentOp": {}}])
    query = {"op": "update", "ns": f"{database.name}.teams"}
    return any([op.get("writeConflicts") async for op in running if query.items() <= op.items()])


async def test_who_leaves_a_team_that_is_held_waits_and_is_out_afterwards(
    teams: TeamRepository, database: Database
) -> None:
    ada, ben = new_person(), new_person()
    team = await kept(teams, ada, ben)
    async with database.client.start_session() as session, await session.start_transaction():
        await database["teams"].update_one(
            version_filter(team.snapshot_version), touch_update(), session=session
        )
        leaving = asyncio.create_task(teams.update(team, run_without_guards(team, ben)))
        async with asyncio.timeout(20):
            while not await waits_for_a_transaction(database):
                await asyncio.sleep(0.01)
        assert not leaving.done()
    assert await leaving
    assert await teams.find_teammates(ada, [ben]) == (frozenset(), ())


async def test_a_number_that_was_taken_meanwhile_is_a_write_that_came_too_late(
    teams: TeamRepository,
) -> None:
    ada, ben = new_person(), new_person()
    email = f"{ben}@slotlock.test"
    await kept(teams, ada, number=3, email=email)
    now = utc_now()
    same = Team(new_team_id(), "Relay", (Member(ada, now, 3),), (), 1, now)
    assert not await teams.insert(same)
    other = await kept(teams, ada, number=4)
    invitation = Invitation(email, now, ada, 3)
    invited = Team(other.id, other.name, other.members, (invitation,), 2, other.created_at)
    assert not await teams.update(other, invited)
    assert await teams.find(other.id) == other


async def test_a_free_number_is_none_that_is_taken(teams: TeamRepository) -> None:
    ada = new_person()
    email = f"{ada}@slotlock.test"
    for number in range(99):
        await kept(teams, ada, number=number, email=email)
    assert (await teams.free_member_number(ada), await teams.free_invitation_number(email)) == (
        99,
        99,
    )
    last = await kept(teams, ada, number=99, email=email)
    assert (await teams.free_member_number(ada), await teams.free_invitation_number(email)) == (
        None,
        None,
    )
    assert await teams.delete(last)
    assert (await teams.free_member_number(ada), await teams.free_invitation_number(email)) == (
        99,
        99,
    )
