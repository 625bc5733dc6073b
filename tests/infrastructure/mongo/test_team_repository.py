"""Teams: what relies on a team conflicts with a member who leaves, and numbers are unique."""

import asyncio

import pytest
from pymongo.errors import OperationFailure
from pymongo.read_concern import ReadConcern

from slotlock.domain.teams.membership import leave
from slotlock.domain.teams.team import Invitation, Member, Team
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.ids import new_slot_id, new_team_id
from slotlock.infrastructure.mongo.team_repository import (
    TeamRepository,
    touch_update,
    version_filter,
)
from slotlock.services.container import utc_now
from tests.support.polling import eventually
from tests.support.stores.slot_store import SlotStore


@pytest.fixture
def database(store: SlotStore) -> Database:
    """Return a new database."""
    return store.database


@pytest.fixture
def teams(store: SlotStore) -> TeamRepository:
    """Return the repository of teams in this database."""
    return store.repositories.teams


def new_user_id() -> UserId:
    """Return the id of a user without a team."""
    return UserId(str(new_slot_id()))


async def insert_team(
    teams: TeamRepository, *user_ids: UserId, number: int = 0, email: str | None = None
) -> Team:
    """Insert a team of these users with this number, and an invitation if there is an address."""
    now = utc_now()
    members = tuple(Member(user_id, now, number) for user_id in user_ids)
    invitations = (Invitation(email, now, user_ids[0], number),) if email else ()
    team = Team(new_team_id(), "Relay", members, invitations, 1, now)
    assert await teams.insert(team)
    return team


def without(team: Team, user_id: UserId) -> Team:
    """Return the team after this user left."""
    after = leave(team, user_id).team
    assert after is not None
    return after


async def test_teammates_are_found_with_the_versions_of_their_teams(teams: TeamRepository) -> None:
    ada, ben, cleo, dan = (new_user_id() for _ in range(4))
    first = await insert_team(teams, ada, ben)
    second = await insert_team(teams, ada, cleo, number=1)
    await insert_team(teams, cleo, dan, number=2)
    teammates, versions = await teams.find_teammates(ada, [ben, cleo, dan, ada])
    assert teammates == {ben, cleo}
    assert set(versions) == {first.snapshot_version, second.snapshot_version}
    assert await teams.find_teammates(ada, []) == (frozenset(), ())
    assert await teams.update(second, without(second, cleo))
    expected = (frozenset({ben}), (first.snapshot_version,))
    assert await teams.find_teammates(ada, [ben, cleo]) == expected


async def test_a_version_no_longer_matches_after_a_member_left(
    teams: TeamRepository, database: Database
) -> None:
    ada, ben = new_user_id(), new_user_id()
    team = await insert_team(teams, ada, ben)
    _, (version,) = await teams.find_teammates(ada, [ben])
    touched = await database["teams"].update_one(version_filter(version), touch_update())
    assert touched.matched_count == 1
    assert await teams.update(team, without(team, ben))
    touched = await database["teams"].update_one(version_filter(version), touch_update())
    assert touched.matched_count == 0


async def test_a_transaction_that_relies_on_a_team_fails_if_a_member_leaves_meanwhile(
    teams: TeamRepository, database: Database
) -> None:
    ada, ben = new_user_id(), new_user_id()
    team = await insert_team(teams, ada, ben)
    loaded = version_filter(team.snapshot_version)

    async def rely_on_team() -> None:
        async with database.client.start_session() as session, await session.start_transaction():
            assert await database["teams"].find_one(loaded, session=session)
            assert await teams.update(team, without(team, ben))
            # The snapshot still shows the old team, so that only a write has a conflict.
            assert await database["teams"].find_one(loaded, session=session)
            await database["teams"].update_one(loaded, touch_update(), session=session)

    with pytest.raises(OperationFailure) as failed:
        await rely_on_team()
    assert failed.value.has_error_label("TransientTransactionError")


async def has_waiting_update(database: Database) -> bool:
    """Return whether an update of a team waits for a transaction."""
    admin = database.client.get_database("admin", read_concern=ReadConcern("local"))
    operations = await admin.aggregate([{"$currentOp": {}}])
    update = {"op": "update", "ns": f"{database.name}.teams"}
    return any(
        [each.get("writeConflicts") async for each in operations if update.items() <= each.items()]
    )


async def test_a_member_who_leaves_waits_for_a_transaction_that_relies_on_the_team(
    teams: TeamRepository, database: Database
) -> None:
    ada, ben = new_user_id(), new_user_id()
    team = await insert_team(teams, ada, ben)
    loaded = version_filter(team.snapshot_version)
    async with database.client.start_session() as session, await session.start_transaction():
        await database["teams"].update_one(loaded, touch_update(), session=session)
        leaving = asyncio.create_task(teams.update(team, without(team, ben)))
        await eventually(lambda: has_waiting_update(database), "the update waits")
        assert not leaving.done()
    assert await leaving
    assert await teams.find_teammates(ada, [ben]) == (frozenset(), ())


async def test_a_number_that_was_taken_meanwhile_is_a_conflict(teams: TeamRepository) -> None:
    ada, ben = new_user_id(), new_user_id()
    email = f"{ben}@slotlock.test"
    await insert_team(teams, ada, number=3, email=email)
    now = utc_now()
    same_number = Team(new_team_id(), "Relay", (Member(ada, now, 3),), (), 1, now)
    assert not await teams.insert(same_number)
    other = await insert_team(teams, ada, number=4)
    invitation = Invitation(email, now, ada, 3)
    invited = Team(other.id, other.name, other.members, (invitation,), 2, other.created_at)
    assert not await teams.update(other, invited)
    assert await teams.find(other.id) == other


async def test_free_numbers_are_those_that_no_team_and_no_invitation_has(
    teams: TeamRepository,
) -> None:
    ada = new_user_id()
    email = f"{ada}@slotlock.test"

    async def free_numbers() -> tuple[int | None, int | None]:
        return await teams.free_member_number(ada), await teams.free_invitation_number(email)

    for number in range(99):
        await insert_team(teams, ada, number=number, email=email)
    assert await free_numbers() == (99, 99)
    last = await insert_team(teams, ada, number=99, email=email)
    assert await free_numbers() == (None, None)
    assert await teams.delete(last)
    assert await free_numbers() == (99, 99)
