"""An index for every query: each command that the stores send is explained, and none scans."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest
from pymongo import AsyncMongoClient, monitoring

from slotlock.api.embedded import Servers
from slotlock.desk.desk import utc_now
from slotlock.domain import joining
from slotlock.domain.booking import Party, book, cancel
from slotlock.domain.listing import Position, SlotFilter, SlotOrder
from slotlock.domain.people import Caller, Role, UserId
from slotlock.domain.slots import SlotId, SlotKind
from slotlock.domain.team_outcomes import TeamKept
from slotlock.stores.mongo import Database, Document
from slotlock.stores.sessions import Sessions
from slotlock.stores.slots import Slots, new_booking_id, new_slot_id
from slotlock.stores.teams import Teams, new_team_id
from slotlock.stores.users import Users
from tests.domain.test_booking import slot
from tests.support.processes import database_url

ADA = UserId("0" * 24)
EXPLAINED = ("find", "update", "delete", "findAndModify")


class Heard(monitoring.CommandListener):
    """Every command that is sent."""

    def __init__(self) -> None:
        self.commands: list[Document] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if event.command_name in EXPLAINED:
            self.commands.append(dict(event.command))

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Of no interest."""

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Of no interest."""


@pytest.fixture
async def overheard(servers: Servers) -> AsyncIterator[tuple[Database, Heard]]:
    """A database whose commands are heard."""
    heard = Heard()
    url = database_url(servers, "plans")
    client: AsyncMongoClient[Document] = AsyncMongoClient(
        url, tz_aware=True, w="majority", event_listeners=[heard]
    )
    try:
        yield client.get_default_database(), heard
    finally:
        await client.close()


async def keep_slots(slots: Slots) -> SlotId:
    """Slots of every kind, many enough for an index to matter."""
    await slots.prepare()
    ids = [new_slot_id() for _ in range(60)]
    for number, slot_id in enumerate(ids):
        kind = list(SlotKind)[number % 3]
        start = slot().start + timedelta(hours=number)
        await slots.add(slot(5, id=slot_id, kind=kind, start=start, end=start + timedelta(hours=1)))
    return ids[0]


async def use_slots(slots: Slots) -> None:
    """Every way in which slots are read and written."""
    slot_id = await keep_slots(slots)
    now = utc_now()
    before = await slots.look(slot_id, [ADA])
    assert before is not None
    decision = book(before, [Party(ADA, new_booking_id())], now)
    assert await slots.commit(before, decision)
    booking = decision.added[0]
    with_it = await slots.look(slot_id, [], [booking.id])
    assert with_it is not None
    caller = Caller(ADA, Role.MEMBER, "session", now)
    assert await slots.commit(with_it, cancel(with_it, booking.id, caller, now))
    await slots.look_at_roster(slot_id)
    await slots.availability([slot_id])
    assert await slots.ended(booking.id)
    position = Position(before.start, slot_id)
    for order in SlotOrder:
        await slots.page(SlotFilter(), order, 10, None)
        await slots.page(SlotFilter(), order, 10, position)
        await slots.page(SlotFilter(kind=SlotKind.COURSE), order, 10, position)
        await slots.page(SlotFilter(starts_from=now, starts_before=before.end), order, 10, None)
        await slots.page(SlotFilter(with_places_left=True), order, 10, None)
        await slots.page(SlotFilter(text="yog"), order, 10, None)
    await slots.page_of(ADA, 10, None)
    await slots.page_of(ADA, 10, position)


async def use_people(users: Users, sessions: Sessions) -> None:
    """Every way in which people and their sessions are read and written."""
    await users.prepare()
    await sessions.prepare()
    now = utc_now()
    email = f"{new_slot_id()}@slotlock.test"
    user = await users.add("Ada", email, Role.MEMBER, "hash", now)
    assert user is not None
    await users.with_password(email)
    await users.by_ids([user.id])
    assert [found async for found in users.all()]
    await users.set_role(email, Role.ADMIN)
    session_id = await sessions.open(user.id, user.role, "first", now + timedelta(days=1))
    assert await sessions.role_in(session_id)
    assert await sessions.rotate(session_id, "first", "second", now + timedelta(days=1))
    await sessions.set_role(user.id, Role.ADMIN)
    await sessions.end(session_id)


async def use_teams(teams: Teams) -> None:
    """Every way in which teams are read and written."""
    await teams.prepare()
    now = utc_now()
    created = joining.create(new_team_id(), "Relay", ADA, await teams.number_for(ADA), now)
    assert isinstance(created, TeamKept)
    before = created.team
    assert await teams.add(before)
    assert await teams.look(before.id) == before
    email = f"{before.id}@slotlock.test"
    number = await teams.number_to(email)
    after = joining.invite(before, ADA, email, (), number, now).team
    assert after is not None
    assert await teams.replace(before, after)
    assert await teams.of_person(ADA) == await teams.invited(email) == (after,)
    assert await teams.shared(ADA, [UserId("1" * 24)]) == (frozenset(), ())
    assert await teams.remove(after)


def stages(plan: Any) -> Iterator[str]:
    """The names of all stages of a plan."""
    if isinstance(plan, dict):
        if "stage" in plan:
            yield plan["stage"]
        for part in plan.values():
            yield from stages(part)
    elif isinstance(plan, list):
        for part in plan:
            yield from stages(part)


async def plan_of(database: Database, command: Document) -> set[str]:
    """The stages of the plan that MongoDB chose for a command."""
    sent = {"lsid", "txnNumber", "$clusterTime", "$db", "writeConcern", "autocommit"}
    sent |= {"startTransaction", "maxTimeMS", "readConcern", "$readPreference"}
    plain = {name: value for name, value in command.items() if name not in sent}
    explained = await database.command("explain", plain, verbosity="queryPlanner")
    return set(stages(explained["queryPlanner"]["winningPlan"]))


async def test_no_query_of_the_stores_scans_a_collection(
    overheard: tuple[Database, Heard],
) -> None:
    database, heard = overheard
    await use_slots(Slots(database))
    await use_people(Users(database), Sessions(database))
    await use_teams(Teams(database))
    commands = list(heard.commands)
    assert len(commands) > 25
    for command in commands:
        plan = await plan_of(database, command)
        assert "COLLSCAN" not in plan, (command, plan)
        # Only a search for words sorts what it found; every list comes in order from its index.
        if "SORT" in plan:
            assert "words" in str(command["filter"]), (command, plan)


async def test_control_a_query_without_an_index_is_seen_to_scan(
    overheard: tuple[Database, Heard],
) -> None:
    database, heard = overheard
    await database["slots"].find_one({"title": "Yoga"})
    assert "COLLSCAN" in await plan_of(database, heard.commands[-1])
